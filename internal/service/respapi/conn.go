package respapi

import (
	"cmp"
	"net"
	"runtime"
	"time"

	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/admit/conns"
	"github.com/firn-id/firn/internal/service/calls"
)

// conn is a connection. It belongs to one goroutine, except for net.
type conn struct {
	s   *Server
	net net.Conn
	at  string // the other end of net
	id  int64

	in         []byte        // of maxCommand bytes, so that every command fits
	begin, end int           // of the bytes in it that are read and not served yet
	begun      time.Duration // when the incomplete command began to come; 0: there is none
	readBy     time.Duration // the deadline that was set
	args       [][]byte      // of the command being served
	size       int           // of that command, which ends at begin
	pipelined  bool          // several commands were read together last time

	out     []byte        // replies not written yet
	writeBy time.Duration // the deadline that was set
	long    *calls.Taking // by when the client must take a long reply; nil: there is none

	resp3 bool   // the client uses RESP3
	name  string // of the client, as it says
	quit  bool   // serve no other command

	crowded bool // the connection is beyond the limit, and serves PING only

	who       *auth.Caller // nil: a token is required
	token     string       // that the client sent; empty: none
	admitted  time.Time    // when the token was last checked
	sequencer string       // that the client named last

	tally
}

func newConn(s *Server, accepted net.Conn, id int64) *conn {
	return &conn{
		s: s, net: accepted, at: accepted.RemoteAddr().String(), id: id, in: make([]byte, maxCommand),
		crowded: conns.ProbesOnly(accepted),
	}
}

// serve answers commands until the client or the server ends the connection. It writes the replies to all commands that
// were read together.
func (c *conn) serve() {
	conns.Begin(c.net) // until it waits for a command
	c.reset()
	c.comes(c.s)
	for !c.quit && c.fill() {
		c.comes(c.s)
		c.admit()
		for !c.quit && c.step() {
			if len(c.out) >= piece {
				c.flush()
				c.comes(c.s) // the client may have taken its time
			}
		}
		c.flush()
	}
}

// step answers one command, or a run of equal ones, and tells whether there was a complete one.
func (c *conn) step() bool {
	args, size, err := parse(c.in[c.begin:c.end], c.args[:0])
	if err != nil {
		c.fail("ERR", err.Error())
		c.quit = true
		return false
	}
	if size == 0 {
		return false
	}
	c.args, c.size = args, size
	c.begin += size
	c.pipelined = c.pipelined || c.begin < c.end
	if len(args) > 0 {
		c.do(args)
	}
	return true
}

// fill reads more bytes, and tells whether any came.
func (c *conn) fill() bool {
	if c.begin > 0 {
		c.end = copy(c.in, c.in[c.begin:c.end])
		c.begin, c.begun = 0, 0
	}
	by := c.since + idleFor
	if c.end > 0 {
		c.begun = cmp.Or(c.begun, c.since)
		by = c.begun + readWithin
	}
	if by < c.readBy || by > c.readBy+slack {
		c.readBy = by
		_ = c.net.SetReadDeadline(c.s.started.Add(by)) // if it fails, so does reading
	}
	if c.s.closing.Load() { // checked after the deadline was set, as stop sets another deadline later
		return false
	}
	if !c.pipelined { // a client that pipelines first reads all replies
		runtime.Gosched() // more may come meanwhile: then this goroutine need not be parked and woken
	}
	c.pipelined = false
	conns.End(c.net)
	n, err := c.net.Read(c.in[c.end:])
	conns.Begin(c.net)
	c.end += n
	return n > 0 || err == nil
}

// slack is by how much a deadline may be too early, so that it need not be set for each command.
const slack = time.Second

// piece is how much is written at once, about.
const piece = 16 << 10

// flush writes the replies. If the client does not read them, the connection ends.
func (c *conn) flush() {
	if len(c.out) == 0 {
		return
	}
	switch by := c.since + writeWithin; {
	case c.long != nil:
		_ = c.net.SetWriteDeadline(c.long.Deadline(time.Now(), len(c.out))) // if it fails, so does writing
		c.writeBy = 0
	case by > c.writeBy+slack:
		c.writeBy = by
		_ = c.net.SetWriteDeadline(c.s.started.Add(by))
	}
	if _, err := c.net.Write(c.out); err != nil {
		c.quit = true
	}
	c.out = c.out[:0]
}

// stream makes the client read in time what is written until end, as memory is held meanwhile.
func (c *conn) stream() (end func()) {
	c.long = new(calls.Taking)
	return func() { c.long = nil }
}

// repeats takes up to most of the commands that follow and are equal, byte for byte, to the one being served, and
// counts them. Only arrays are compared: an inline command was changed when it was parsed.
func (c *conn) repeats(most int) (n int) {
	command := c.in[c.begin-c.size : c.begin]
	if command[0] != '*' {
		return 0
	}
	for n < most && c.end-c.begin >= c.size && string(c.in[c.begin:c.begin+c.size]) == string(command) {
		c.begin += c.size
		n++
	}
	return n
}
