// Package proxytest is a TCP proxy that tests put between clients and a server, to
// interrupt, delay and reset their connections. It is not for production code.
package proxytest

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"
)

// Direction is that of what is sent.
type Direction int

// The directions: what clients send, and what the server answers.
const (
	ToServer Direction = iota
	ToClient
)

// Fate is what the proxy does with a piece of data, see Proxy.Inspect.
type Fate int

const (
	// Forward sends the piece on.
	Forward Fate = iota

	// ResetBefore drops the piece and resets its connection.
	ResetBefore

	// ResetAfter sends the piece on, and then resets the connection to the client. The
	// server sees its end after the piece, and what it answers is lost.
	ResetAfter
)

// Proxy forwards connections from clients to a server, and can interrupt or delay them.
// Its methods are safe for concurrent use.
type Proxy struct {
	listener net.Listener
	server   string
	running  sync.WaitGroup

	mu      sync.Mutex // guards what follows
	flowing *sync.Cond // woken when cut or closed changes
	cut     [2]bool    // by direction
	inspect func(Direction, []byte) Fate
	delay   time.Duration
	closed  bool
	conns   []net.Conn // all that there were
}

// New listens on a loopback port and forwards to the server's address, until the
// test ends.
func New(t testing.TB, server string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("proxytest: %v", err)
	}
	p := &Proxy{listener: listener, server: server}
	p.flowing = sync.NewCond(&p.mu)
	p.running.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

// Address is where clients connect to, as host:port.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Cut begins or ends a partition. During it connections stay open and silent; what was
// sent meanwhile arrives when it ends.
func (p *Proxy) Cut(cut bool) {
	p.CutOneWay(ToServer, cut)
	p.CutOneWay(ToClient, cut)
}

// CutOneWay is Cut for one direction. New connections are made all the same.
func (p *Proxy) CutOneWay(d Direction, cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut[d] = cut
	p.flowing.Broadcast()
}

// Inspect has hook decide about each piece of data from now on, before it is forwarded.
// A piece is what one read has found: often a message, but it may be a part of one, or
// several. The hook is called by several goroutines at once, and must not keep the data.
// Nil: all is forwarded.
func (p *Proxy) Inspect(hook func(d Direction, data []byte) Fate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inspect = hook
}

// Disturb has the proxy reset connections at random, before or after what was sent on them
// has arrived; false: no more. It takes the place of Inspect.
func (p *Proxy) Disturb(disturbed bool) {
	if !disturbed {
		p.Inspect(nil)
		return
	}
	p.Inspect(func(Direction, []byte) Fate {
		switch rand.IntN(60) {
		case 0:
			return ResetBefore
		case 1:
			return ResetAfter
		default:
			return Forward
		}
	})
}

// Delay delays everything sent from now on, in each direction, as a network with twice
// that round-trip time does. Connecting takes a round trip, too.
func (p *Proxy) Delay(delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = delay
}

// Drop closes every connection. Clients can connect again, unless the proxy is cut.
func (p *Proxy) Drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range p.conns {
		_ = conn.Close()
	}
}

// Reset resets every connection, as a system does when a program has crashed. Clients can
// connect again, unless the proxy is cut.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range p.conns {
		reset(conn)
	}
}

// reset closes a connection so that the other side reads an error and not its end.
func reset(conn net.Conn) {
	_ = conn.(*net.TCPConn).SetLinger(0)
	_ = conn.Close()
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		if !p.keep(client, server) {
			_, _ = client.Close(), server.Close()
			return
		}
		made := time.Now().Add(2 * p.delayed())
		p.running.Go(func() { p.forward(ToServer, server, client, made) })
		p.running.Go(func() { p.forward(ToClient, client, server, made) })
	}
}

func (p *Proxy) delayed() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.delay
}

// keep registers connections, which end with the proxy; false when it is closed.
func (p *Proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.conns = append(p.conns, conns...)
	}
	return !p.closed
}

// piece is the data of one read, and when it arrives.
type piece struct {
	data []byte
	err  error // of the last read
	due  time.Time
}

// read reads one direction to its end. Data sent before the connection is made leave at
// that moment.
func (p *Proxy) read(from net.Conn, made time.Time, pieces chan<- piece) {
	defer close(pieces)
	for {
		buf := make([]byte, 32<<10)
		n, err := from.Read(buf)
		sent := time.Now()
		if sent.Before(made) {
			sent = made
		}
		pieces <- piece{buf[:n], err, sent.Add(p.delayed())}
		if err != nil {
			return
		}
	}
}

// forward copies one direction, and holds back what it has read during a partition.
func (p *Proxy) forward(d Direction, to, from net.Conn, made time.Time) {
	pieces := make(chan piece, 1024)
	p.running.Go(func() { p.read(from, made, pieces) })
	for piece := range pieces {
		time.Sleep(time.Until(piece.due))
		switch p.fate(d, piece.data) {
		case Forward:
			piece.err = deliver(to, piece)
		case ResetBefore:
			reset(from)
			reset(to)
			piece.err = io.ErrClosedPipe
		case ResetAfter:
			if d == ToServer {
				reset(from) // first, so that no answer comes before it
			}
			_ = deliver(to, piece)
			if d == ToServer {
				_ = to.Close()
			} else {
				reset(to)
				_ = from.Close()
			}
			piece.err = io.ErrClosedPipe
		}
		if piece.err != nil {
			if piece.err != io.EOF {
				_ = from.Close()
			}
			_ = to.Close()
			break
		}
	}
	for range pieces { // drop what can't be delivered
	}
}

// fate waits while the direction is cut, and says what happens to a piece.
func (p *Proxy) fate(d Direction, data []byte) Fate {
	p.mu.Lock()
	for p.cut[d] && !p.closed {
		p.flowing.Wait()
	}
	inspect := p.inspect
	p.mu.Unlock()
	if inspect == nil || len(data) == 0 {
		return Forward
	}
	return inspect(d, data)
}

// deliver sends a piece, and returns the error with which the direction ends.
func deliver(to net.Conn, p piece) error {
	if len(p.data) > 0 {
		if _, err := to.Write(p.data); err != nil {
			return err
		}
	}
	return p.err
}

func (p *Proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.flowing.Broadcast()
	for _, conn := range p.conns {
		_ = conn.Close()
	}
	p.mu.Unlock()
	_ = p.listener.Close()
	p.running.Wait()
}

// FixedAddress is a free loopback address for a server that stops and starts again, until the
// test ends. No other program gets its port meanwhile, since it lies below those that the
// system assigns (Linux begins at 32768). No other test does, of any process: it belongs to
// whoever has it for UDP.
func FixedAddress(t testing.TB) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000))
		held, err := net.ListenPacket("udp", address)
		if err != nil {
			continue
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			_ = held.Close()
			continue
		}
		_ = l.Close()
		t.Cleanup(func() { _ = held.Close() })
		return address
	}
	t.Fatal("proxytest: no free port found")
	return ""
}
