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

// gRPC keeps an answer until the caller has read it, even long after the call has ended. To know how long that is, an
// answer with several IDs is in a buffer that reports when gRPC frees it. As gRPC frees nothing of a connection that
// ends, the connection reports its end too.

// listener makes connections know what their callers have not read.
type listener struct{ net.Listener }

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return newConn(c), nil
}

// conn is a connection. A call finds it by the remote address.
type conn struct {
	net.Conn
	remote remote
	at     string // the same, as text

	mu      sync.Mutex // guards what follows
	untaken map[*message]struct{}
	late    *time.Timer // calls check; nil: it does not run
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
		m.release()
	}
	clear(c.untaken)
	if c.late != nil {
		c.late.Stop()
	}
	return c.Conn.Close()
}

// check closes the connection if an answer was not read in time. One timer does for all answers of a connection: a
// stream has tens of thousands a second.
func (c *conn) check() {
	c.mu.Lock()
	var left time.Duration
	for m := range c.untaken {
		left = max(left, time.Since(m.since))
	}
	if left = takeWithin - left; len(c.untaken) == 0 || c.closed {
		c.late = nil
	} else if left > 0 {
		c.late.Reset(left)
	}
	c.mu.Unlock()
	if left <= 0 {
		_ = c.Close() // the caller sees it
	}
}

// connOf returns the connection of a call.
func connOf(ctx context.Context) *conn {
	if p, ok := peer.FromContext(ctx); ok {
		if r, ok := p.Addr.(*remote); ok {
			return r.conn
		}
	}
	return nowhere
}

// nowhere is the connection of calls that came by another way than a listener.
var nowhere = &conn{closed: true}

// message is an answer that the caller has not read yet.
type message struct {
	conn    *conn
	encoded *[]byte // the answer, of buffers; nil: to be encoded
	since   time.Time
	release func() // gives back its memory
	done    func() // to be called once it is read; may be nil
}

// keep calls release when the caller has read an answer, or its connection has ended, which happens when that takes too
// long, and done when gRPC is done with the answer. The answer must then be sent. Encoded is what is sent for it; nil:
// its own encoding.
func (s *Server) keep(c *conn, answer any, encoded *[]byte, release, done func()) {
	m := &message{conn: c, encoded: encoded, release: release, done: done}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed { // nobody will read it
		release()
	} else {
		if m.since = time.Now(); c.late == nil {
			c.late = time.AfterFunc(takeWithin, c.check)
		}
		c.untaken[m] = struct{}{}
	}
	s.answers.Store(answer, m)
}

// taken is called when gRPC frees the answer.
func (m *message) taken() {
	m.conn.mu.Lock()
	_, there := m.conn.untaken[m]
	delete(m.conn.untaken, m)
	m.conn.mu.Unlock()
	if there {
		m.release()
	}
	if m.done != nil {
		m.done()
	}
}

// codec is that of gRPC, except for answers that are kept.
type codec struct {
	encoding.CodecV2
	answers *sync.Map // the *message of each answer that is kept and not encoded yet
}

func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	kept, ok := c.answers.LoadAndDelete(v)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	m := kept.(*message)
	if m.encoded != nil {
		return mem.BufferSlice{mem.NewBuffer(m.encoded, m)}, nil
	}
	answer := v.(proto.Message)
	b := buffers.Get(max(proto.Size(answer), leastBuffer))
	var err error
	if *b, err = (proto.MarshalOptions{UseCachedSize: true}).MarshalAppend((*b)[:0], answer); err != nil {
		m.Put(b)
		return nil, err
	}
	return mem.BufferSlice{mem.NewBuffer(b, m)}, nil
}

// leastBuffer is more bytes than gRPC leaves to the garbage collector without reporting it.
const leastBuffer = 2 << 10

// buffers are for answers. gRPC's own use a megabyte for each above 32 KiB.
var buffers = mem.NewTieredBufferPool(leastBuffer, 8<<10, 16<<10, 32<<10, 128<<10)

// Get and Put make a message the pool of its own buffer, into which gRPC puts it back when it is done with it.
func (m *message) Get(length int) *[]byte { return buffers.Get(length) }

// Put implements [mem.BufferPool].
func (m *message) Put(b *[]byte) {
	buffers.Put(b)
	m.taken()
}
