package respapi

import (
	"net"
	"runtime"
	"time"

	"github.com/firn-id/firn/internal/server"
	"github.com/firn-id/firn/internal/server/auth"
	"github.com/firn-id/firn/internal/server/conns"
)

// conn is a connection. It belongs to one goroutine, except for net.
type conn struct {
	s   *Server
	net net.Conn
	at  string // the other end of net
	id  int64

	in         []byte    // of maxCommand bytes, so that every command fits
	begin, end int       // what was read into in, and is not served yet
	begun      time.Time // since when a command is not complete; zero: there is none
	waits      time.Time // when the deadline of an idle connection was set last
	args       [][]byte  // of the command that is served
	size       int       // of it, in bytes before begin

	out    []byte         // replies that are not written yet
	writes time.Time      // when the deadline for writing was set last
	long   *server.Taking // by when a long reply must be taken; nil: there is none

	resp3 bool   // the client understands RESP3
	name  string // that the client gave itself
	quit  bool   // there will be no other command

	crowded bool // it got no place, and is told how the node is, but no more

	who       *auth.Caller // nil: a token is wanted
	token     string       // that was shown; empty: none
	admitted  time.Time    // when who was asked last
	sequencer string       // the last that was named

	tally
}

func newConn(s *Server, accepted net.Conn, id int64) *conn {
	return &conn{
		s: s, net: accepted, at: accepted.RemoteAddr().String(), id: id, in: make([]byte, maxCommand), crowded: conns.ProbesOnly(accepted),
	}
}

// serve answers commands until the client goes away, or must go. Replies are written when all is answered that was read.
func (c *conn) serve() {
	conns.Begin(c.net) // until it waits for a command
	c.reset()
	for !c.quit && c.fill() {
		c.comes(c.s)
		c.admit()
		for !c.quit && c.step() {
			if len(c.out) >= piece {
				c.flush()
			}
		}
		c.flush()
	}
}

// step answers one command, or a run of equal ones, and tells whether there was a whole one.
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
	if len(args) > 0 {
		c.do(args)
	}
	return true
}

// fill reads more, after what there is of a command. It tells whether something came.
func (c *conn) fill() bool {
	if c.begin > 0 {
		c.end = copy(c.in, c.in[c.begin:c.end])
		c.begin, c.begun = 0, time.Time{}
	}
	switch now := time.Now(); {
	case c.end > 0 && c.begun.IsZero():
		c.begun, c.waits = now, time.Time{}
		_ = c.net.SetReadDeadline(now.Add(readWithin)) // if it fails, so does reading
	case c.end == 0 && now.Sub(c.waits) > slack:
		c.waits = now
		_ = c.net.SetReadDeadline(now.Add(idleFor))
	}
	if c.s.closing.Load() { // looked at after the deadline was set: whoever ends it sets another later
		return false
	}
	runtime.Gosched() // while others answer, more may come: then this goroutine need not be put to sleep and woken
	conns.End(c.net)
	n, err := c.net.Read(c.in[c.end:])
	conns.Begin(c.net)
	c.end += n
	return n > 0 || err == nil
}

// slack is how much too early a deadline may be, so that it need not be set for each command.
const slack = time.Second

// piece is how much is written at once, about.
const piece = 16 << 10

// flush writes the replies. When the client does not take them, the connection ends.
func (c *conn) flush() {
	if len(c.out) == 0 {
		return
	}
	switch now := time.Now(); {
	case c.long != nil:
		c.deadline(c.long.Deadline(now, len(c.out)))
		c.writes = time.Time{}
	case now.Sub(c.writes) > slack:
		c.deadline(now.Add(writeWithin))
		c.writes = now
	}
	if _, err := c.net.Write(c.out); err != nil {
		c.quit = true
	}
	c.out = c.out[:0]
}

func (c *conn) deadline(t time.Time) {
	_ = c.net.SetWriteDeadline(t) // if it fails, so does writing
}

// stream has all that is written until end taken in time: what is held meanwhile is held for no longer.
func (c *conn) stream() (end func()) {
	c.long = new(server.Taking)
	return func() { c.long = nil }
}

// repeats counts and takes the commands that follow, byte by byte the same as the one that is served, up to most.
// Only arrays are looked at: what they say does not depend on what they were made of.
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
