package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/firn-id/firn/internal/server/conns"
)

// front is a server of the node that listens on an address, for one protocol.
type front struct {
	name     string // of the protocol
	listener net.Listener
	serve    func(net.Listener) error        // until it is shut down or closed; then the error does not matter
	shutdown func(ctx context.Context) error // listens no more, and lets what was asked finish
	close    func()                          // at once
}

// aDoor is one of the addresses that a node has, by the names that its log and its metrics use.
type aDoor struct{ log, metrics string }

var (
	publicDoor  = aDoor{"addr", "public"}
	adminDoor   = aDoor{"admin_addr", "admin"}
	grpcDoor    = aDoor{"grpc_addr", "grpc"}
	redisDoor   = aDoor{"redis_addr", "redis"}
	metricsDoor = aDoor{"metrics_addr", "metrics"}
)

// fronts are all servers of a node.
type fronts struct {
	all    []*front
	failed chan error // why the first of them ended, if not by stop
	ending chan struct{}
	once   sync.Once
}

// listenOn listens on the address that a flag gives. Callers share the places for connections; who administers or watches
// the node has some of their own.
func (n *node) listenOn(d aDoor, flag, address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) {
			err = op.Err
		}
		return nil, fmt.Errorf("can't listen on %s: %w; --%s sets another address", address, err, flag)
	}
	listener = untaken{listener}
	if n.gate != nil {
		listener = gated{listener, n.gate}
	}
	limiter := n.callers
	if d == adminDoor || d == metricsDoor {
		limiter = n.admins
	}
	listener = limiter.Limit(listener)
	n.doors[d.metrics] = listener.(conns.Counter)
	return listener, nil
}

// untaken is a listener whose connections keep little of what their callers do not take: the kernel would keep megabytes for each, which count as
// this process's.
type untaken struct{ net.Listener }

func (l untaken) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(maxUntaken) // or it stays what it is
	}
	return c, err
}

// maxUntaken is how many bytes the kernel keeps of what a caller does not take. Linux takes it twice.
const maxUntaken = 64 << 10

// listen opens every front of the node. When one can't be opened, none is left open.
func (n *node) listen() (_ *fronts, err error) {
	f := &fronts{failed: make(chan error, 1), ending: make(chan struct{})}
	defer func() {
		if err != nil {
			for _, one := range f.all {
				_ = one.listener.Close() // nobody has been served
			}
		}
	}()
	for _, open := range []func() (*front, error){n.publicFront, n.adminFront, n.grpcFront, n.redisFront, n.metricsFront} {
		one, err := open()
		if err != nil {
			return nil, err
		}
		if one != nil {
			f.all = append(f.all, one)
		}
	}
	return f, nil
}

// start has them all serve.
func (f *fronts) start() {
	for _, one := range f.all {
		go func() {
			err := one.serve(one.listener)
			select {
			case <-f.ending:
				return
			default:
			}
			select {
			case f.failed <- fmt.Errorf("serving %s: %w", one.name, err):
			default: // another has failed already
			}
		}()
	}
}

// stop listens no more and lets what was asked finish within the time given, which may be zero. Only the first
// call counts.
func (f *fronts) stop(n *node, within time.Duration) {
	f.once.Do(func() {
		close(f.ending)
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		var all sync.WaitGroup
		for _, one := range f.all {
			all.Go(func() {
				if one.shutdown(ctx) == nil {
					return
				}
				if within > 0 {
					n.log.Warn("calls were cut off: they took too long to finish", "protocol", one.name, "shutdown_timeout", within)
				}
				one.close()
			})
		}
		all.Wait()
	})
}

// at is where a node listens for some; empty: nowhere.
func (f *fronts) at(d aDoor) string {
	for _, one := range f.all {
		if one.name == d.log {
			return one.listener.Addr().String()
		}
	}
	return ""
}

// addresses are where the node listens, for its log.
func (f *fronts) addresses() []any {
	var all []any
	for _, one := range f.all {
		all = append(all, one.name, one.listener.Addr().String())
	}
	return all
}
