package respapi

import (
	"strings"
	"time"

	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/codes"
)

// A command may cost less than reading the clock. So the clock is read after each read from the network, and after each
// command about IDs, or run of such commands that are answered together: the command took the time between two
// readings, with untimed commands before it. Other commands are counted, and not timed. Deadlines are set by the last
// reading.

// counted returns the commands by name, with what counts each: those about IDs by their names, the others together.
func (s *Server) counted() map[string]command {
	commands := map[string]command{}
	for _, k := range all() {
		k.calls = s.other
		if k.timed = k.key > 0; k.timed {
			k.calls = s.service.Call("redis", strings.ToUpper(k.name))
		}
		commands[k.name] = k
	}
	return commands
}

// tally is about the command being served.
type tally struct {
	calls calls.Call
	timed bool
	code  codes.Code    // its result
	times int           // how many equal commands are answered together
	since time.Duration // the last reading of the clock, from the server's start
}

// comes starts the time of the commands that were read.
func (c *tally) comes(s *Server) { c.since = time.Since(s.started) }

// starts begins a command.
func (c *tally) starts(s *Server, k command) {
	c.calls, c.timed, c.code, c.times = k.calls, k.timed, codes.OK, 1
	if c.calls == nil { // there is no such command
		c.calls = s.other
	}
}

// counts counts the command, with its equal ones, if it was not counted yet.
func (c *tally) counts(s *Server) {
	if c.times == 0 {
		return
	}
	took := calls.Untimed
	if c.timed {
		now := time.Since(s.started)
		took, c.since = now-c.since, now
	}
	c.calls.Done(c.code, c.times, took)
	c.times = 0
}
