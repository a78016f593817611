package respapi

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/codes"
	"github.com/firn-id/firn/internal/service/idtext"
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

// texted writes what idtext appends. IDs of the sequencer have a text.
func texted(text idtext.Append) write {
	return func(c *conn, id firn.ID) {
		var place [48]byte
		b, _ := text(place[:0], id)
		c.head('$', len(b))
		c.out = append(append(c.out, b...), "\r\n"...)
	}
}

// writing is how a command writes IDs.
type writing struct {
	after firn.ID // the IDs exceed this one; zero: any
	write write
	texts *calls.Texts // says what write is, once there are IDs; nil: it is known
}

var decimals = writing{write: (*conn).decimal}

// numbers is how the commands write IDs that reply with integers.
func (s *Server) numbers() writing {
	if s.Texts {
		return decimals
	}
	return writing{write: (*conn).number}
}

// of is what writes these IDs.
func (as writing) of(ids *calls.Batch) (write, error) {
	if as.texts == nil {
		return as.write, nil
	}
	text, err := as.texts.Of(ids)
	return texted(text), err
}

// inForm is how a command writes new IDs of a sequencer whose last arguments are the form, if there is one, and AFTER
// and an ID, if they are to exceed one.
func (c *conn) inForm(command, name string, rest [][]byte) (as writing, err error) {
	as = decimals
	form, after, err := splitAfter(command, rest)
	if as.after = after; err != nil || len(form) == 0 {
		return as, err
	}
	f, err := idtext.ParseForm(strings.ToLower(string(form[0])))
	if err != nil {
		return as, calls.Input(err)
	}
	if f == idtext.Decimal {
		return as, nil
	}
	texts, err := c.s.service.Texts(c.s.context, c.who, name, f)
	return writing{texts: &texts, after: after}, err
}

// splitAfter splits the last arguments of a command into one at most and, if AFTER and an ID follow, that ID.
func splitAfter(command string, rest [][]byte) (one [][]byte, after firn.ID, err error) {
	if n := len(rest); n >= 2 && equal(rest[n-2], "after") {
		if after, err = calls.ReadAfter(string(rest[n-1])); err != nil {
			return nil, 0, err
		}
		rest = rest[:n-2]
	}
	if len(rest) > 1 {
		return nil, 0, calls.Input(fmt.Errorf("the arguments of %s end with '%.40s'; want AFTER and an ID there, or "+
			"none", command, rest[len(rest)-1]))
	}
	return rest, after, nil
}

// incr is INCR.
func (c *conn) incr(args [][]byte) { c.single("INCR", c.of(args[0]), c.s.numbers()) }

// takeID is FIRN.ID.
func (c *conn) takeID(args [][]byte) {
	name := c.of(args[0])
	as, err := c.inForm("FIRN.ID", name, args[1:])
	if err != nil {
		c.refuse("FIRN.ID", err)
		return
	}
	c.single("FIRN.ID", name, as)
}

// takeIDs is FIRN.IDS.
func (c *conn) takeIDs(args [][]byte) {
	name := c.of(args[0])
	as, err := c.inForm("FIRN.IDS", name, args[2:])
	if err != nil {
		c.refuse("FIRN.IDS", err)
		return
	}
	c.several("FIRN.IDS", name, args[1], as)
}

// next is FIRN.NEXT.
func (c *conn) next(args [][]byte) {
	name := c.of(args[0])
	count, after, err := splitAfter("FIRN.NEXT", args[1:])
	as := c.s.numbers()
	as.after = after
	switch {
	case err != nil:
		c.refuse("FIRN.NEXT", err)
	case len(count) == 0:
		c.one("FIRN.NEXT", name, as)
	default:
		c.several("FIRN.NEXT", name, count[0], as)
	}
}

// single answers a command for one ID, and equal commands that follow and were read already.
func (c *conn) single(command, name string, as writing) {
	count := 1 + c.repeats(atOnce-1)
	if count == 1 {
		c.one(command, name, as)
		return
	}
	err := c.s.service.ManyAfter(c.s.context, c.who, c.at, name, as.after, count, func(ids *calls.Batch) error {
		write, err := as.of(ids)
		if err != nil {
			return err
		}
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
	code := calls.CodeOf(err)
	c.code = code
	// What is too many together can be fine one by one.
	singly := code == codes.RateLimited || code == codes.Overloaded
	for range count {
		if c.quit {
			return
		}
		if singly {
			c.code, c.times = codes.OK, 1
			c.one(command, name, as)
			c.counts(c.s)
			c.flush() // the next may take its time
		} else {
			c.refuse(command, err)
		}
	}
}

func (c *conn) one(command, name string, as writing) {
	if as.texts != nil || as.after != 0 {
		c.oneAs(command, name, as)
		return
	}
	id, _, err := c.s.service.Next(c.s.context, c.who, name)
	if err != nil {
		c.refuse(command, err)
		return
	}
	as.write(c, id)
}

// oneAs answers a command for an ID that exceeds another one, or is written in a form.
func (c *conn) oneAs(command, name string, as writing) {
	err := c.s.service.ManyAfter(c.s.context, c.who, c.at, name, as.after, 1, func(ids *calls.Batch) error {
		write, err := as.of(ids)
		if err == nil {
			write(c, ids.Last())
		}
		return err
	})
	if err != nil {
		c.refuse(command, err)
	}
}

// several answers a command for an array of IDs.
func (c *conn) several(command, name string, wanted []byte, as writing) {
	count, err := strconv.Atoi(string(wanted))
	if err != nil {
		c.fail("ERR", fmt.Sprintf("count is '%.30s'; want a number from 1 to %d", wanted, calls.MaxCount))
		return
	}
	err = c.s.service.ManyAfter(c.s.context, c.who, c.at, name, as.after, count, func(ids *calls.Batch) error {
		write, err := as.of(ids)
		if err != nil {
			return err
		}
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

// incrBy is INCRBY: by 1 or, of a counter, by more.
func (c *conn) incrBy(args [][]byte) {
	name := c.of(args[0])
	if string(args[1]) == "1" {
		c.single("INCRBY", name, c.s.numbers())
		return
	}
	counts, err := c.s.service.Counts(c.s.context, c.who, name)
	if err != nil {
		c.refuse("INCRBY", err)
		return
	}
	if !counts {
		c.fail("ERR",
			fmt.Sprintf("can't increment by '%.30s': a call gives one ID, and IDs can't be given back; want 1, or "+
				"FIRN.IDS %.100s count for several IDs", args[1], name))
		return
	}
	n, err := strconv.Atoi(string(args[1]))
	if err != nil || n < 1 || n > calls.MaxCount {
		c.fail("ERR", fmt.Sprintf("can't increment by '%.30s': numbers can't be given back; want a number from 1 to %d",
			args[1], calls.MaxCount))
		return
	}
	last, err := c.s.service.Take(c.s.context, c.who, name, n)
	if err != nil {
		c.refuse("INCRBY", err)
		return
	}
	c.s.numbers().write(c, last)
}

// decode is FIRN.DECODE.
func (c *conn) decode(args [][]byte) {
	name := peer.DefaultSequencer
	if len(args) > 1 {
		name = c.of(args[0])
		args = args[1:]
	}
	d := calls.Decoding{Text: string(args[0])}
	for i, into := range []**idtext.Form{&d.Form, &d.As} {
		if len(args) < i+2 {
			break
		}
		f, err := idtext.ParseForm(strings.ToLower(string(args[i+1])))
		if err != nil {
			c.refuse("FIRN.DECODE", calls.Input(err))
			return
		}
		*into = &f
	}
	p, err := c.s.service.Decode(c.s.context, c.who, name, d)
	if err != nil {
		c.refuse("FIRN.DECODE", err)
		return
	}
	texts := []string{"id_str", p.IDStr}
	if p.Text != "" {
		texts = append(texts, "text", p.Text)
	}
	numbers := []number{{"id", p.ID}}
	if p.Kind == cluster.Counter {
		texts = append(texts, "kind", p.Kind.String())
		if p.Date != "" {
			texts, numbers = append(texts, "date", p.Date), append(numbers, number{"number", p.Number})
		}
	} else {
		texts = append([]string{"time", p.Time}, texts...)
		numbers = append(numbers, number{"unix_ms", p.UnixMS}, number{"tick", p.Tick},
			number{"datacenter", p.Datacenter}, number{"node", p.Node}, number{"node_id", p.NodeID},
			number{"sequence", p.Sequence})
	}
	c.pairs(len(texts)/2 + len(numbers))
	c.bulks(texts...)
	for _, n := range numbers {
		c.bulk(n.name)
		c.integer(n.value)
	}
}

// number is a number with its name in a map.
type number struct {
	name  string
	value int64
}
