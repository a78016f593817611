package node

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/firn-id/firn/internal/base/unixsocket"
	"github.com/firn-id/firn/internal/service/admit/conns"
)

// Address names an address that a node listens on, as settings, its log and its metrics do.
type Address struct{ setting, log, metrics string }

// The addresses of a node.
var (
	Public  = Address{"http-addr", "addr", "public"}
	Admin   = Address{"admin-addr", "admin_addr", "admin"}
	GRPC    = Address{"grpc-addr", "grpc_addr", "grpc"}
	Redis   = Address{"redis-addr", "redis_addr", "redis"}
	Metrics = Address{"metrics-addr", "metrics_addr", "metrics"}
)

// protocolServer serves one protocol on one address.
type protocolServer struct {
	Address
	listener net.Listener
	serve    func(net.Listener) error        // returns once it is shut down or closed; ignore its error then
	shutdown func(ctx context.Context) error // stops listening, and waits for calls in progress
	close    func()                          // stops at once
}

// servers has all protocol servers of a node.
type servers struct {
	log    *slog.Logger
	all    []*protocolServer
	failed chan error // error of the first that ended, other than by stop
	ending chan struct{}
	once   sync.Once
}

// listenOn listens on an address. Callers share one limit of connections; administrators and probes have another.
func (n *Node) listenOn(a Address, address string) (net.Listener, error) {
	listener, err := n.config.Listen(a, address)
	if err != nil {
		return nil, err
	}
	if a == Admin && listener.Addr().Network() != "unix" { // systemd may have passed it
		if err := n.config.checkReach(listener.Addr().String()); err != nil {
			_ = listener.Close() // no caller was served
			return nil, err
		}
	}
	listener = untaken{listener}
	if n.config.Wrap != nil {
		listener = n.config.Wrap(listener)
	}
	limiter := n.callers
	if a == Admin || a == Metrics {
		limiter = n.admins
	}
	listener = limiter.Limit(listener)
	n.counts[a.metrics] = listener.(conns.Counter)
	return listener, nil
}

// untaken is a listener whose connections buffer few bytes that callers do not read: the kernel would buffer
// megabytes for each, which count as this process's memory.
type untaken struct{ net.Listener }

func (l untaken) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if buffered, ok := c.(interface{ SetWriteBuffer(bytes int) error }); ok {
		_ = buffered.SetWriteBuffer(maxUntaken) // on failure the buffer stays as it is
	}
	return unixsocket.WithPeer(c), nil
}

// maxUntaken is how many unread bytes the kernel buffers for a caller. Linux doubles it.
const maxUntaken = 64 << 10

// Listen listens on every address of the node, and starts its part in the quorum. If it can't listen on one, it
// returns a SettingError and listens on none.
func (n *Node) Listen() (err error) {
	s := &servers{log: n.log, failed: make(chan error, 1), ending: make(chan struct{})}
	defer func() {
		if err != nil {
			n.end()
			for _, one := range s.all {
				_ = one.listener.Close() // no caller was served
			}
		}
	}()
	if err := n.begin(); err != nil {
		return err
	}
	serves := map[Address]func(*tls.Config) *protocolServer{
		Public: n.public, Admin: n.admin, GRPC: n.grpc,
		Redis: n.redis, Metrics: n.probes,
	}
	for _, one := range n.config.addresses() {
		l, err := n.listenOn(one.Address, one.at)
		if err != nil {
			return err
		}
		secure := n.tls
		if l.Addr().Network() == "unix" {
			secure = nil // the mode of its file says who can connect, and nobody between can listen in
		}
		p := serves[one.Address](secure)
		p.Address, p.listener = one.Address, l
		s.all = append(s.all, p)
	}
	if names := leftOver(); len(names) > 0 {
		n.log.Warn("systemd passes sockets that no flag names", "names", names)
	}
	if n.quorum != nil { // the last thing that can fail: from now on other machines reach this one
		if err := n.startQuorum(); err != nil {
			return err
		}
	}
	n.servers = s
	n.reached = n.reachedAt()
	return nil
}

// start starts all servers.
func (s *servers) start() {
	for _, one := range s.all {
		go func() {
			err := one.serve(one.listener)
			select {
			case <-s.ending:
				return
			default:
			}
			select {
			case s.failed <- fmt.Errorf("serving %s: %w", one.log, err):
			default: // another has failed already
			}
		}()
	}
}

// stop stops listening, and lets calls in progress end within the time given, which may be zero. Only the first
// call counts.
func (s *servers) stop(within time.Duration) {
	s.once.Do(func() {
		close(s.ending)
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		var all sync.WaitGroup
		for _, one := range s.all {
			all.Go(func() {
				if one.shutdown(ctx) == nil {
					return
				}
				if within > 0 {
					s.log.Warn("cut off calls that took too long to finish", "protocol", one.log,
						"shutdown_timeout", within)
				}
				one.close()
			})
		}
		all.Wait()
	})
}

// addresses returns the addresses of the node, for its log.
func (s *servers) addresses() []any {
	var all []any
	for _, one := range s.all {
		all = append(all, one.log, unixsocket.AddressOf(one.listener.Addr()))
	}
	return all
}

// Addr returns the host:port of an address, or unix:PATH; empty: the node does not listen there.
func (n *Node) Addr(a Address) string {
	for _, one := range n.servers.all {
		if one.Address == a {
			return unixsocket.AddressOf(one.listener.Addr())
		}
	}
	return ""
}

// Stop stops serving at once. Otherwise the node goes on.
func (n *Node) Stop() { n.servers.stop(0) }
