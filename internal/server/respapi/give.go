package respapi

import (
	"fmt"
	"math"
	"strconv"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/server"
	"github.com/firn-id/firn/member"
)

// atOnce is how many equal commands for one ID in a row one call to the service answers.
const atOnce = 256

// of is the sequencer that an argument names. It costs no memory while a connection names the same one.
func (c *conn) of(name []byte) string {
	if c.sequencer != string(name) {
		c.sequencer = string(name)
	}
	return c.sequencer
}

// write appends an ID to the replies in one of the ways that follow.
type write func(c *conn, id firn.ID)

func (c *conn) number(id firn.ID) { c.integer(int64(id)) }

func (c *conn) decimal(id firn.ID) {
	var digits [20]byte
	text := firn.Decimal.Append(digits[:0], id)
	c.head('$', len(text))
	c.out = append(append(c.out, text...), "\r\n"...)
}

// incr is INCR.
func (c *conn) incr(args [][]byte) { c.single("INCR", c.of(args[0]), (*conn).number) }

// takeID is FIRN.ID.
func (c *conn) takeID(args [][]byte) { c.single("FIRN.ID", c.of(args[0]), (*conn).decimal) }

// takeIDs is FIRN.IDS.
func (c *conn) takeIDs(args [][]byte) { c.several("FIRN.IDS", c.of(args[0]), args[1], (*conn).decimal) }

// next is FIRN.NEXT.
func (c *conn) next(args [][]byte) {
	name := c.of(args[0])
	if len(args) == 1 {
		c.one("FIRN.NEXT", name, (*conn).number)
		return
	}
	c.several("FIRN.NEXT", name, args[1], (*conn).number)
}

// single answers a command for one ID, and equal commands that follow and were read already.
func (c *conn) single(command, name string, write write) {
	count := 1 + c.repeats(atOnce-1)
	if count == 1 {
		c.one(command, name, write)
		return
	}
	err := c.s.service.Many(c.s.context, c.who, c.at, name, count, func(ids *server.Batch) error {
		for some := range ids.All() {
			for _, id := range some {
				write(c, id)
			}
		}
		return nil
	})
	if c.times = count; err == nil {
		return
	}
	code := server.CodeOf(err)
	c.code = code
	// What is too many together can be fine one by one.
	singly := code == server.RateLimited || code == server.Overloaded
	for range count {
		if c.quit {
			return
		}
		if singly {
			c.code, c.times = server.OK, 1
			c.one(command, name, write)
			c.counts(c.s)
			c.flush() // the next may take its time
		} else {
			c.refuse(command, err)
		}
	}
}

func (c *conn) one(command, name string, write write) {
	id, err := c.s.service.Next(c.s.context, c.who, name)
	if err != nil {
		c.refuse(command, err)
		return
	}
	write(c, id)
}

// several answers a command for an array of IDs.
func (c *conn) several(command, name string, wanted []byte, write write) {
	count, err := strconv.Atoi(string(wanted))
	if err != nil {
		c.fail("ERR", fmt.Sprintf("count is '%.30s'; want a number from 1 to %d", wanted, server.MaxCount))
		return
	}
	err = c.s.service.Many(c.s.context, c.who, c.at, name, count, func(ids *server.Batch) error {
		defer c.stream()()
		c.array(ids.Len())
		for some := range ids.All() {
			for _, id := range some {
				write(c, id)
			}
			if len(c.out) >= piece {
				if c.flush(); c.quit {
					return nil
				}
			}
		}
		c.flush()
		return nil
	})
	if err != nil {
		c.refuse(command, err)
	}
}

// incrBy is INCRBY.
func (c *conn) incrBy(args [][]byte) {
	n, err := strconv.ParseInt(string(args[1]), 10, 64)
	switch {
	case err != nil:
		c.fail("ERR", fmt.Sprintf("value is not an integer or out of range: '%.30s'; want a number from 1 to %d", args[1], server.MaxCount))
		return
	case n < 1:
		c.fail("ERR", fmt.Sprintf("can't increment by %d: IDs can't be given back; want a number from 1 to %d", n, server.MaxCount))
		return
	}
	name := c.of(args[0])
	id, err := c.s.service.Consecutive(c.s.context, c.who, c.at, name, int(min(n, math.MaxInt32)))
	switch {
	case err == nil:
		c.integer(int64(id))
	case server.CodeOf(err) == server.BadRequest && n <= server.MaxCount:
		c.refuse("INCRBY", server.Input(fmt.Errorf("%w: FIRN.IDS %.100s %d", err, name, n)))
	default:
		c.refuse("INCRBY", err)
	}
}

// decode is FIRN.DECODE.
func (c *conn) decode(args [][]byte) {
	name := member.DefaultSequencer
	if len(args) == 2 {
		name = c.of(args[0])
	}
	p, err := c.s.service.Decode(c.s.context, c.who, name, server.Decoding{Text: string(args[len(args)-1])})
	if err != nil {
		c.refuse("FIRN.DECODE", err)
		return
	}
	numbers := []struct {
		name  string
		value int64
	}{
		{"id", p.ID},
		{"unix_ms", p.UnixMS},
		{"tick", p.Tick},
		{"datacenter", p.Datacenter},
		{"node", p.Node},
		{"node_id", p.NodeID},
		{"sequence", p.Sequence},
	}
	c.pairs(1 + len(numbers))
	c.bulk("time")
	c.bulk(p.Time)
	for _, n := range numbers {
		c.bulk(n.name)
		c.integer(n.value)
	}
}
