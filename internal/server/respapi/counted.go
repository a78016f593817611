package respapi

import (
	"strings"
	"time"

	"github.com/firn-id/firn/internal/server"
)

// A command may cost less than the clock that would time it. So the clock is read once after each reading from the
// network and once after each command that takes IDs, or run of such commands that are answered together: what lies
// between two readings is how long the command took, with those before it that are not timed. The others are only counted.

// counters has each command counted: those that are about IDs by their names, the others together.
func (s *Server) counters() {
	s.metered, s.other = s.service.Metered(), s.service.Call("redis", "other")
	for name, k := range s.commands {
		k.calls = s.other
		if k.timed = k.key > 0; k.timed {
			k.calls = s.service.Call("redis", strings.ToUpper(name))
		}
		s.commands[name] = k
	}
}

// tally is what is known of the command that is answered.
type tally struct {
	calls server.Call
	timed bool
	code  server.Code   // what came of it
	times int           // how often it was sent, and is answered now
	since time.Duration // when the last reading was, from the server's start
}

// comes begins the time of the commands that have come.
func (c *tally) comes(s *Server) {
	if s.metered {
		c.since = time.Since(s.started)
	}
}

// starts is for each command.
func (c *tally) starts(s *Server, k command) {
	c.calls, c.timed, c.code, c.times = k.calls, k.timed, server.OK, 1
	if c.calls == nil { // there is no such command
		c.calls = s.other
	}
}

// counts counts the command as often as it was sent and not counted yet.
func (c *tally) counts(s *Server) {
	if !s.metered || c.times == 0 {
		return
	}
	took := server.Untimed
	if c.timed {
		now := time.Since(s.started)
		took, c.since = now-c.since, now
	}
	c.calls.Done(c.code, c.times, took)
	c.times = 0
}
