//go:build unix

package etcdtest

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy forwards connections from clients to a server, and can interrupt or delay them.
// Its methods are safe for concurrent use.
type Proxy struct {
	listener net.Listener
	server   string
	running  sync.WaitGroup

	mu      sync.Mutex // guards what follows
	flowing *sync.Cond // woken when cut or closed changes
	cut     bool
	delay   time.Duration
	closed  bool
	conns   []net.Conn // all that there were
}

// NewProxy listens on a loopback port and forwards to the server's address, until the
// test ends.
func NewProxy(t testing.TB, server string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("etcdtest: %v", err)
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
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = cut
	p.flowing.Broadcast()
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
		p.running.Go(func() { p.forward(server, client, made) })
		p.running.Go(func() { p.forward(client, server, made) })
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
func (p *Proxy) forward(to, from net.Conn, made time.Time) {
	pieces := make(chan piece, 1024)
	p.running.Go(func() { p.read(from, made, pieces) })
	for piece := range pieces {
		time.Sleep(time.Until(piece.due))
		p.mu.Lock()
		for p.cut && !p.closed {
			p.flowing.Wait()
		}
		p.mu.Unlock()
		if len(piece.data) > 0 {
			if _, err := to.Write(piece.data); err != nil {
				piece.err = err
			}
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
