package grpcapi

import (
	"context"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec within ours
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"
)

// gRPC keeps an answer for as long as its caller does not take it, also when the call has ended long ago. So that it is known for how
// long that is, an answer with several IDs lies in a buffer that says when it is freed; and as gRPC frees nothing of a connection that ends,
// the connection says that too.

// listener has connections that know what their callers have not taken.
type listener struct{ net.Listener }

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newConn(c), nil
}

// conn is a connection. Calls find it by its remote address.
type conn struct {
	net.Conn
	remote remote
	at     string // the same, as text

	mu      sync.Mutex // guards what follows
	untaken map[*message]struct{}
	closed  bool
}

// remote is the address of a connection's other end, and the connection.
type remote struct {
	net.Addr
	conn *conn
}

func newConn(c net.Conn) *conn {
	own := &conn{Conn: c, untaken: map[*message]struct{}{}}
	own.remote = remote{c.RemoteAddr(), own}
	own.at = own.remote.String()
	return own
}

func (c *conn) RemoteAddr() net.Addr { return &c.remote }

func (c *conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for m := range c.untaken {
		m.late.Stop()
		m.release()
	}
	clear(c.untaken)
	return c.Conn.Close()
}

// connOf is the connection of a call.
func connOf(ctx context.Context) *conn {
	if p, ok := peer.FromContext(ctx); ok {
		if r, ok := p.Addr.(*remote); ok {
			return r.conn
		}
	}
	return nowhere
}

// nowhere is that of calls which came over none that a listener has accepted.
var nowhere = &conn{closed: true}

// message is an answer with several IDs that the caller has not taken yet.
type message struct {
	conn    *conn
	release func()      // what was made room for
	late    *time.Timer // closes the connection
	done    func()      // to be called once it is taken; nil: nobody wants to know
}

// keep holds the room for an answer until the caller has taken it, or has no connection any more, which it loses when it takes too long.
// The answer is to be sent.
func (s *Server) keep(c *conn, answer any, release, done func()) {
	m := &message{conn: c, release: release, done: done}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed { // nobody takes it
		release()
		if done != nil {
			done()
		}
		return
	}
	m.late = time.AfterFunc(takeWithin, func() { _ = c.Close() })
	c.untaken[m] = struct{}{}
	s.answers.Store(answer, m)
}

// taken is called when gRPC frees the answer.
func (m *message) taken() {
	m.conn.mu.Lock()
	_, there := m.conn.untaken[m]
	delete(m.conn.untaken, m)
	m.conn.mu.Unlock()
	if there {
		m.late.Stop()
		m.release()
	}
	if m.done != nil {
		m.done()
	}
}

// codec is gRPC's own, but for answers that are kept.
type codec struct {
	encoding.CodecV2
	answers *sync.Map // each that is kept and not encoded yet to its *message
}

func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	kept, ok := c.answers.LoadAndDelete(v)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	m, answer := kept.(*message), v.(proto.Message)
	b := buffers.Get(max(proto.Size(answer), leastBuffer))
	var err error
	if *b, err = (proto.MarshalOptions{UseCachedSize: true}).MarshalAppend((*b)[:0], answer); err != nil {
		m.Put(b)
		return nil, err
	}
	return mem.BufferSlice{mem.NewBuffer(b, m)}, nil
}

// leastBuffer is more bytes than what gRPC leaves to the garbage collector without telling.
const leastBuffer = 2 << 10

// buffers are what answers lie in. gRPC's own would have one of a megabyte for all above 32 KiB.
var buffers = mem.NewTieredBufferPool(leastBuffer, 8<<10, 16<<10, 32<<10, 128<<10)

// Get and Put make a message the pool of its own buffer: gRPC puts that back when it is done with it.
func (m *message) Get(length int) *[]byte { return buffers.Get(length) }

// Put implements [mem.BufferPool].
func (m *message) Put(b *[]byte) {
	buffers.Put(b)
	m.taken()
}
