package wire

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/firn-id/firn/store/internal/answers"
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

// receive reads answers and events until the connection ends.
func (c *Conn) receive() {
	from := bufio.NewReader(c.conn)
	for {
		if err := c.next(from); err != nil {
			c.end(err)
			return
		}
	}
}

// next reads one answer or event. It takes no memory for more than the request has room for.
func (c *Conn) next(from io.Reader) error {
	n, err := readLength(from)
	if err != nil {
		return err
	}
	var header [headerSize]byte
	if n < headerSize {
		return fmt.Errorf("the server answers %d bytes; want at least %d", n, headerSize)
	}
	if _, err := io.ReadFull(from, header[:]); err != nil {
		return err
	}
	in := reader{buf: header[:]}
	xid, zxid, code := in.int(), in.long(), Code(in.int())
	most, left, err := c.room(xid)
	if err != nil {
		return err
	}
	body, err := readBytes(from, n-headerSize, most)
	if err != nil {
		return err
	}
	if left != nil {
		*left -= len(body)
	}
	return c.handle(xid, zxid, code, &reader{buf: body})
}

// allowance is how many bytes the answers to requests may have together.
func allowance(requests []Request) int {
	if len(requests) > 0 && requests[0].code == codeSASL {
		return maxLogin
	}
	return answers.Max
}

// room is how many bytes an answer may have, or an event.
func (c *Conn) room(xid int32) (most int, left *int, err error) {
	if xid == xidEvent || xid == xidPing {
		return maxEvent, nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	call := c.waiting[xid] // it waits until all of its answer is here
	if call == nil {
		return 0, nil, fmt.Errorf("the server answers a request %d that was not sent", xid)
	}
	return *call.left, call.left, nil
}

func (c *Conn) handle(xid int32, zxid int64, code Code, in *reader) error {
	switch xid {
	case xidEvent:
		in.take(8) // its type, and the state
		if path := in.string(); in.err == nil && c.options.Event != nil {
			c.options.Event(path)
		}
		return in.err
	case xidPing:
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.pings) > 0 {
			c.hear(c.pings[0])
			c.pings = c.pings[1:]
		}
		return nil
	}
	c.mu.Lock()
	call := c.waiting[xid]
	delete(c.waiting, xid)
	if call != nil {
		c.hear(call.sent)
	}
	c.mu.Unlock()
	if call == nil { // the connection has ended meanwhile
		return errClosed
	}
	call.reply = Reply{Zxid: zxid, Err: code}
	if code == 0 {
		call.request.decode(in, &call.reply)
	}
	if in.err != nil {
		call.fail(in.err)
		return in.err
	}
	close(call.answered)
	return nil
}

// hear notes that a request was answered that was sent then.
func (c *Conn) hear(sent time.Time) {
	if sent.After(c.heard) {
		c.heard = sent
	}
}

func writeFrame(conn net.Conn, body []byte) error {
	_, err := conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
	return err
}

// readLength reads how long the next frame is.
func readLength(from io.Reader) (int64, error) {
	var length [4]byte
	_, err := io.ReadFull(from, length[:])
	return int64(binary.BigEndian.Uint32(length[:])), err
}

// readBytes reads n bytes, if they are no more than that, and takes memory as they come.
func readBytes(from io.Reader, n int64, most int) (all []byte, err error) {
	const atOnce = 64 << 10
	if n > int64(most) {
		return nil, fmt.Errorf("the server answers %d bytes; want at most %d", n, most)
	}
	for len(all) < int(n) && err == nil {
		more := min(int(n)-len(all), max(len(all), atOnce))
		all = append(all, make([]byte, more)...)
		_, err = io.ReadFull(from, all[len(all)-more:])
	}
	return all, err
}
