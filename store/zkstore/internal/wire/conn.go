package wire

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

var (
	// ErrNotSent means that the connection ended before the request was sent: it has no effect.
	ErrNotSent = errors.New("not sent")

	// ErrLost means that the connection ended, or the context, before the request was answered: it may take
	// effect, even later.
	ErrLost = errors.New("no answer")

	// ErrExpired means that the session that a connection was to continue has ended.
	ErrExpired = errors.New("the session has expired")

	errSilent = errors.New("the server is silent")
	errClosed = errors.New("the connection was closed")
)

// Limits on what a server may send, in bytes: when a connection begins, to log in, of an event, and around what an
// answer holds. Those of the answers to one call are answers.Max together.
const (
	maxGreeting = 1 << 10
	maxLogin    = 64 << 10
	maxEvent    = 64 << 10
	headerSize  = 16 // of each frame after the greeting
)

const (
	xidEvent = -1
	xidPing  = -2
)

// Options say how a connection begins.
type Options struct {
	// Connect makes the connection below, with TLS if there is to be any.
	Connect func(ctx context.Context) (net.Conn, error)

	// Session is the session to continue; the zero value begins another.
	Session Session

	// Timeout is how long the session is to live without a request. The server may grant another.
	Timeout time.Duration

	// Silence ends a connection on which a request waits for that long. Positive.
	Silence time.Duration

	// Login is whom to log in as; nil: nobody.
	Login *Login

	// Event is called with the path of each event that a watch asked for, by one goroutine. Nil: no events.
	Event func(path string)
}

// Session is what a server knows a session by.
type Session struct {
	ID       int64
	Password []byte
}

// Conn is one connection to one server. Dial makes it. It is safe for concurrent use.
type Conn struct {
	options Options
	conn    net.Conn
	session Session
	granted time.Duration
	running sync.WaitGroup
	done    chan struct{} // closed when the connection has ended

	mu      sync.Mutex // guards what follows
	wake    *sync.Cond // for the sending goroutine
	queue   []*Call
	waiting map[int32]*Call // sent, and not answered
	pings   []time.Time     // when those were sent that are not answered
	xid     int32
	heard   time.Time // when the latest request was sent that has been answered
	used    time.Time // when the latest request was sent
	err     error     // why the connection has ended
}

// Call is a request on its way.
type Call struct {
	request  Request
	left     *int // how many bytes more its answer may have, and those that were sent with it; owned by receive
	xid      int32
	sent     time.Time // zero: it was not sent; guarded by Conn.mu until answered is closed
	answered chan struct{}
	reply    Reply
	err      error
}

// Dial connects to one server, within ctx, and logs in. ErrExpired is returned when the session has ended.
func Dial(ctx context.Context, o Options) (*Conn, error) {
	began := time.Now()
	conn, err := o.Connect(ctx)
	if err != nil {
		return nil, err
	}
	c := &Conn{
		options: o, conn: conn, done: make(chan struct{}), waiting: make(map[int32]*Call),
		heard: began, used: began,
	}
	c.wake = sync.NewCond(&c.mu)
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	err = c.greet()
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", err, ctx.Err())
		}
		return nil, err
	}
	c.running.Go(c.receive)
	c.running.Go(c.send)
	c.running.Go(c.tick)
	if o.Login != nil {
		if err := c.login(ctx, *o.Login); err != nil {
			c.Abandon()
			return nil, err
		}
	}
	return c, nil
}

// greet begins or continues the session.
func (c *Conn) greet() error {
	var w writer
	w.int(0)  // the protocol's version
	w.long(0) // the last transaction seen: callers compare themselves, as a server that is behind would not say so
	w.int(int32(max(1, c.options.Timeout.Milliseconds())))
	w.long(c.options.Session.ID)
	password := c.options.Session.Password
	if password == nil {
		password = make([]byte, 16)
	}
	w.bytes(password)
	w.bool(false) // a server that only reads is of no use
	if err := writeFrame(c.conn, w.buf); err != nil {
		return err
	}
	n, err := readLength(c.conn)
	var frame []byte
	if err == nil {
		frame, err = readBytes(c.conn, n, maxGreeting)
	}
	if err != nil {
		return fmt.Errorf("the server did not accept a session: %w", err)
	}
	in := reader{buf: frame}
	in.int()
	granted := in.int()
	c.session = Session{ID: in.long(), Password: in.bytes()}
	if in.err != nil {
		return in.err
	}
	if granted <= 0 || c.session.ID == 0 {
		return ErrExpired
	}
	c.granted = time.Duration(granted) * time.Millisecond
	return nil
}

// Session is the session of the connection.
func (c *Conn) Session() Session { return c.session }

// Granted is how long the session lives without a request.
func (c *Conn) Granted() time.Duration { return c.granted }

// Done is closed when the connection has ended.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err is why the connection has ended; nil: it has not.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Heard is when the latest request was sent that has been answered.
func (c *Conn) Heard() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heard
}

// Send sends requests one after another, without other requests between them. The server handles the requests of
// a connection in order.
func (c *Conn) Send(requests ...Request) []*Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	calls := make([]*Call, len(requests))
	left := allowance(requests)
	for i, request := range requests {
		call := &Call{request: request, left: &left, answered: make(chan struct{})}
		calls[i] = call
		if c.err != nil {
			call.fail(c.err)
			continue
		}
		c.xid++
		if c.xid < 0 {
			c.xid = 1
		}
		call.xid = c.xid
		c.queue = append(c.queue, call)
	}
	c.wake.Signal()
	return calls
}

// Do sends requests as Send does, and waits for all answers. Its error is that of the first one without an answer.
func (c *Conn) Do(ctx context.Context, requests ...Request) ([]Reply, error) {
	replies := make([]Reply, len(requests))
	for i, call := range c.Send(requests...) {
		reply, err := c.wait(ctx, call)
		if err != nil {
			return nil, err
		}
		replies[i] = reply
	}
	return replies, nil
}

// wait waits for the answer to a call. Its error is ErrNotSent or ErrLost, with the cause; what the server answers
// is in Reply.Err.
func (c *Conn) wait(ctx context.Context, call *Call) (Reply, error) {
	select {
	case <-call.answered:
		return call.reply, call.err
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, queued := range c.queue {
		if queued == call {
			c.queue = append(c.queue[:i:i], c.queue[i+1:]...)
			return Reply{}, fmt.Errorf("%w: %w", ErrNotSent, ctx.Err())
		}
	}
	return Reply{}, fmt.Errorf("%w: %w", ErrLost, ctx.Err())
}

// fail ends a call without an answer.
func (call *Call) fail(cause error) {
	call.err = fmt.Errorf("%w: %w", ErrLost, cause)
	if call.sent.IsZero() {
		call.err = fmt.Errorf("%w: %w", ErrNotSent, cause)
	}
	close(call.answered)
}

// Close ends the session and the connection.
func (c *Conn) Close(ctx context.Context) error {
	replies, err := c.Do(ctx, Request{code: codeClose})
	c.Abandon()
	if err != nil {
		return err
	}
	if replies[0].Err != 0 {
		return replies[0].Err
	}
	return nil
}

// Abandon ends the connection, and leaves the session to continue elsewhere or to expire.
func (c *Conn) Abandon() {
	c.end(errClosed)
	c.running.Wait()
}

// end ends the connection, and all calls that wait.
func (c *Conn) end(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = cause
	for _, call := range c.waiting {
		call.fail(cause)
	}
	for _, call := range c.queue {
		call.fail(cause)
	}
	c.waiting, c.queue = nil, nil
	_ = c.conn.Close()
	close(c.done)
	c.wake.Broadcast()
}

// send writes what is queued.
func (c *Conn) send() {
	for {
		c.mu.Lock()
		for len(c.queue) == 0 && c.err == nil {
			c.wake.Wait()
		}
		if c.err != nil {
			c.mu.Unlock()
			return
		}
		batch, now := c.queue, time.Now()
		c.queue, c.used = nil, now
		for _, call := range batch {
			call.sent = now
			if call.xid == xidPing {
				c.pings = append(c.pings, now)
			} else {
				c.waiting[call.xid] = call
			}
		}
		c.mu.Unlock()
		var buf []byte
		for _, call := range batch {
			body := call.request.encode(call.xid)
			buf = binary.BigEndian.AppendUint32(buf, uint32(len(body)))
			buf = append(buf, body...)
		}
		if _, err := c.conn.Write(buf); err != nil {
			c.end(err)
			return
		}
	}
}

// tick keeps the session alive, and ends a connection that is silent.
func (c *Conn) tick() {
	pingEvery := c.granted / 6
	ticker := time.NewTicker(max(time.Millisecond, min(pingEvery, c.options.Silence/4)))
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-c.done:
			return
		}
		c.mu.Lock()
		oldest := c.oldest()
		if c.err == nil && time.Since(c.used) >= pingEvery && len(c.pings) == 0 {
			c.queue = append(c.queue,
				&Call{request: Request{code: codePing}, xid: xidPing, answered: make(chan struct{})})
			c.wake.Signal()
		}
		c.mu.Unlock()
		if !oldest.IsZero() && time.Since(oldest) >= c.options.Silence {
			c.end(errSilent)
		}
	}
}

// oldest is when the oldest request was sent that has no answer; zero: all have one.
func (c *Conn) oldest() (oldest time.Time) {
	if len(c.pings) > 0 {
		oldest = c.pings[0]
	}
	for _, call := range c.waiting {
		if oldest.IsZero() || call.sent.Before(oldest) {
			oldest = call.sent
		}
	}
	return oldest
}

func writeFrame(conn net.Conn, body []byte) error {
	_, err := conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
	return err
}
