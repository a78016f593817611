// Package port is the one port of a machine of a quorum: it accepts connections of mutual TLS from whoever has the key,
// and gives each to the handler of its protocol; to that of etcd's peers, and to the places of machines, only those of
// machines, which their certificates tell from clients. Strangers get no further than the handshake, and can't crowd
// out others.
package port

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/firn-id/firn/internal/base/host"
	"github.com/firn-id/firn/internal/base/throttle"
	"github.com/firn-id/firn/store/quorum/internal/keyring"
)

// The protocols that a connection can be for; no protocol, and HTTP/1.1, is that of etcd's peers.
const (
	Peers    = ""              // of etcd's server, to another one
	Clients  = "h2"            // of etcd's server: gRPC
	Exchange = "firn-quorum/1" // of firn: what the machines are, and what is asked of them
)

// ByMachine returns the name under which a machine of the quorum connects for Clients or Exchange: the same protocol,
// and one of the places that clients can't take.
func ByMachine(protocol string) string { return byMachine + protocol }

const byMachine = "machine/"

// MaxClients is how many connections of processes that are no machines there may be for Clients, and how many for
// Exchange.
const MaxClients = 1024

const (
	maxMachines    = 256 // connections of machines, of etcd's servers included: each has about a dozen
	maxHandshakes  = 256
	maxRefusals    = 64 // that are being told at a time
	refusalLimit   = time.Second
	handshakeLimit = 5 * time.Second
	lowestPause    = 5 * time.Millisecond // after an error of Accept
	highestPause   = time.Second
)

// Port listens for the machines and the clients of a quorum. Make it with Listen. Its methods are safe for concurrent
// use.
type Port struct {
	listener net.Listener
	ring     *keyring.Ring
	config   *tls.Config
	log      *throttle.Log

	all     sync.WaitGroup // goroutines
	closing context.Context
	close   context.CancelFunc

	mu          sync.Mutex // guards what follows
	handlers    map[string]func(*tls.Conn)
	handshakes  []handshake         // the oldest first
	established map[net.Conn]string // for which places
	places      map[string]int      // how many are free
}

// placesOf are those of the connections for a protocol.
func placesOf(protocol string) string {
	if protocol == Peers || strings.HasPrefix(protocol, byMachine) {
		return byMachine
	}
	return protocol
}

// handshake is a connection whose handshake has not ended.
type handshake struct {
	net.Conn
	host netip.Prefix
}

// Listen listens on an address, host:port. Until there are handlers, connections are closed after their handshake.
func Listen(address string, ring *keyring.Ring, log *slog.Logger) (*Port, error) {
	config := net.ListenConfig{KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 15 * time.Second,
		Interval: 5 * time.Second, Count: 3,
	}}
	l, err := config.Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, err
	}
	return serve(l, ring, log), nil
}

func serve(l net.Listener, ring *keyring.Ring, log *slog.Logger) *Port {
	p := &Port{
		listener: l, ring: ring, config: ring.Server(), log: throttle.NewOnce(log),
		handlers: map[string]func(*tls.Conn){}, established: map[net.Conn]string{},
		places: map[string]int{
			byMachine: maxMachines, Clients: MaxClients, Exchange: MaxClients,
			keyring.Refused: maxRefusals,
		},
	}
	p.config.NextProtos = []string{Clients, "http/1.1", Exchange, ByMachine(Clients), ByMachine(Exchange)}
	refusing := p.config.Clone()
	refusing.NextProtos = []string{keyring.Refused}
	p.config.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		if slices.Contains(hello.SupportedProtos, keyring.Refused) && p.full(hello.SupportedProtos[0]) {
			return refusing, nil
		}
		return nil, nil //nolint:nilnil // as it is
	}
	p.closing, p.close = context.WithCancel(context.Background())
	p.all.Go(p.accept)
	return p
}

// full reports whether there is no place for another connection for a protocol.
func (p *Port) full(protocol string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.places[placesOf(protocol)] <= 0
}

// crowded says of how many connections for a protocol there can't be more.
func crowded(protocol string) string {
	if placesOf(protocol) == byMachine {
		return fmt.Sprintf("it has %d connections of machines, which is the limit", maxMachines)
	}
	return fmt.Sprintf("it has the connections of %d clients, which is the limit: want fewer nodes on this quorum",
		MaxClients)
}

// Addr returns the host:port that it listens on.
func (p *Port) Addr() string { return p.listener.Addr().String() }

// Handle has connections for a protocol served from now on; nil: they are closed from now on. It does not change what
// becomes of those that are being served. A connection is closed when serve returns, and the other way round: serve
// must return when the connection is closed.
func (p *Port) Handle(protocol string, serve func(*tls.Conn)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handlers[protocol] = serve
}

// Close stops listening, closes all connections and waits until their handlers have returned.
func (p *Port) Close() {
	p.mu.Lock()
	p.close()
	_ = p.listener.Close()
	for _, c := range p.handshakes {
		_ = c.Close()
	}
	for c := range p.established {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.all.Wait()
	p.log.Flush()
}

// accept never gives up: what is missing, such as file descriptors, may be there again later.
func (p *Port) accept() {
	pause := lowestPause
	for {
		c, err := p.listener.Accept()
		switch {
		case p.closing.Err() != nil:
			if err == nil {
				_ = c.Close()
			}
			return
		case err != nil:
			p.log.Write(slog.LevelError, "", "can't accept connections of the quorum; trying again", "err", err)
			select {
			case <-time.After(pause):
			case <-p.closing.Done():
			}
			pause = min(2*pause, highestPause)
		default:
			pause = lowestPause
			p.begin(c)
		}
	}
}

// begin starts the handshake of a connection. Of too many at a time, the oldest of the host with the most makes room:
// an honest one takes a moment, and comes from a host with few.
func (p *Port) begin(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing.Err() != nil {
		_ = c.Close()
		return
	}
	if len(p.handshakes) >= maxHandshakes {
		i := oldestOfMost(p.handshakes)
		_ = p.handshakes[i].Close()
		p.handshakes = slices.Delete(p.handshakes, i, i+1)
	}
	p.handshakes = append(p.handshakes, handshake{c, host.Of(c.RemoteAddr())})
	p.all.Go(func() { p.serve(c) })
}

// oldestOfMost returns the index of the oldest handshake of the host that has the most.
func oldestOfMost(all []handshake) (index int) {
	hosts, most := map[netip.Prefix]int{}, 0
	for _, h := range all {
		hosts[h.host]++
	}
	for i, h := range all {
		if n := hosts[h.host]; n > most {
			index, most = i, n
		}
	}
	return index
}

// serve takes a connection from its first byte to its end.
func (p *Port) serve(c net.Conn) {
	defer func() { _ = c.Close() }()
	setUserTimeout(c)
	_ = c.SetDeadline(time.Now().Add(handshakeLimit))
	conn := tls.Server(c, p.config)
	err := conn.HandshakeContext(p.closing)
	_ = c.SetDeadline(time.Time{})
	handle, refused := p.establish(c, conn, err)
	switch {
	case p.closing.Err() != nil:
	case refused != "":
		p.refuse(c, refused)
	case err != nil:
		why, key := p.ring.Refusal(err)
		said := []any{"err", fmt.Sprintf("%.200v", err)} // a stranger may have written some of it
		if key != "" {
			said = append(said, "key", key)
		}
		p.refuse(c, why, said...)
	case handle != nil:
		defer p.leave(c)
		handle(conn)
		_ = conn.Close() // tells the other side that it was not cut off
	}
}

// establish ends a handshake that failed or not. It returns what is to become of the connection, or why it is refused;
// neither: it is to be closed.
func (p *Port) establish(c net.Conn, conn *tls.Conn, failed error) (handle func(*tls.Conn), refused string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.handshakes, func(h handshake) bool { return h.Conn == c })
	if i < 0 {
		return nil, "there are too many handshakes at a time"
	}
	p.handshakes = slices.Delete(p.handshakes, i, i+1)
	if failed != nil || p.closing.Err() != nil { // after Close, nobody would close it
		return nil, ""
	}
	protocol := conn.ConnectionState().NegotiatedProtocol
	if protocol == "http/1.1" {
		protocol = Peers
	}
	handle = p.handlers[strings.TrimPrefix(protocol, byMachine)]
	if protocol == keyring.Refused {
		handle = p.tell
	}
	places := placesOf(protocol)
	switch {
	case handle == nil:
		return nil, ""
	case places == byMachine && !p.ring.IsMachine(conn.ConnectionState()):
		return nil, "it is a client, and asks for what only machines may"
	case p.places[places] <= 0:
		return nil, crowded(protocol)
	}
	p.places[places]--
	p.established[c] = places
	return handle, ""
}

// tell says why a client gets no place. It is one for Clients or Exchange: machines have enough.
func (p *Port) tell(c *tls.Conn) {
	p.refuse(c, crowded(Clients))
	_ = c.SetDeadline(time.Now().Add(refusalLimit))
	_, _ = io.WriteString(c, crowded(Clients))
}

// leave gives the place of an established connection back.
func (p *Port) leave(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.places[p.established[c]]++
	delete(p.established, c)
}

// refuse logs why a connection is closed: one line a minute for each reason, and how many others there were.
func (p *Port) refuse(c net.Conn, why string, args ...any) {
	p.log.Write(slog.LevelWarn, why, "refused a connection to the quorum",
		append([]any{"remote", c.RemoteAddr().String(), "why", why}, args...)...)
}
