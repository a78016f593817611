package storetest

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"strings"

	"github.com/anishathalye/porcupine"

	"github.com/firn-id/firn/store"
)

// logKind is the kind of a call that is about the log.
type logKind int

const (
	appending logKind = iota
	reading
	checkpointing
)

// logCall is a call that is about the log. That of an append begins with the first try and
// ends with the last.
type logCall struct {
	span
	kind       logKind
	id         string           // of an append
	after      store.Position   // of a read
	checkpoint store.Checkpoint // that is written
	outcome    outcome
	position   store.Position // of the entry
	batch      store.Batch    // what was read
}

func (c *logCall) String() string {
	switch c.kind {
	case appending:
		return fmt.Sprintf("Append %s: %v, position %d", c.id, c.outcome, c.position)
	case checkpointing:
		return fmt.Sprintf("Checkpoint at %d, %.20q: %v", c.checkpoint.Position, c.checkpoint.Value, c.outcome)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "Read after %d:", c.after)
	if at := c.batch.Checkpoint; at != nil {
		fmt.Fprintf(&text, " checkpoint at %d, %.20q,", at.Position, at.Value)
	}
	last := c.batch.Entries[max(0, len(c.batch.Entries)-5):]
	fmt.Fprintf(&text, " %d entries", len(c.batch.Entries))
	for i, e := range last {
		text.WriteString([]string{", the last ", ", "}[min(i, 1)])
		fmt.Fprintf(&text, "%s at %d", e.ID, e.Position)
	}
	return text.String()
}

// dataOf is the data of the entry with this ID.
func dataOf(id string) []byte { return []byte("data of " + id) }

// logOperations are the calls for the log. What was in doubt and somebody saw took effect
// before that; what nobody saw is left out, as it made no difference.
func logOperations(all []*logCall) []porcupine.Operation {
	type sight struct {
		position store.Position
		by       int64
	}
	seen := make(map[string]sight) // by the ID of an entry, or the value of a checkpoint
	see := func(what string, at store.Position, by int64) {
		if first, ok := seen[what]; !ok || by < first.by {
			seen[what] = sight{at, by}
		}
	}
	for _, c := range all {
		if at := c.batch.Checkpoint; at != nil {
			see(string(at.Value), at.Position, c.end)
		}
		for _, e := range c.batch.Entries {
			see(e.ID, e.Position, c.end)
		}
	}
	var calls []porcupine.Operation
	for _, c := range all {
		if c.outcome == inDoubt {
			what := c.id
			if c.kind == checkpointing {
				what = string(c.checkpoint.Value)
			}
			first, ok := seen[what]
			if !ok {
				continue
			}
			c.position, c.end = first.position, first.by
		}
		calls = append(calls, porcupine.Operation{ClientId: c.worker, Input: c, Call: c.call, Return: c.end})
	}
	return calls
}

// logState is the log; entries that a checkpoint stands for count as there.
type logState struct {
	last       *logged // the last entry; nil: none
	checkpoint store.Position
	value      string
}

// logged is an entry, and all before it.
type logged struct {
	before   *logged
	position store.Position
	id       string
	hash     uint64 // of this and all before
}

func (s logState) hash() uint64 {
	if s.last == nil {
		return 0
	}
	return s.last.hash
}

func (s logState) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "a checkpoint at %d, %.20q", s.checkpoint, s.value)
	for e, n := s.last, 0; e != nil && n < 5; e, n = e.before, n+1 {
		fmt.Fprintf(&text, ", %s at %d", e.id, e.position)
	}
	return text.String() + ", backwards"
}

var logModel = describe(porcupine.Model{
	Init: func() any { return logState{} },
	Step: func(state, call, _ any) (bool, any) { return state.(logState).step(call.(*logCall)) },
	Equal: func(a, b any) bool {
		one, other := a.(logState), b.(logState)
		return one.hash() == other.hash() && one.checkpoint == other.checkpoint && one.value == other.value
	},
	Hash: func(state any) uint64 { return state.(logState).hash() ^ uint64(state.(logState).checkpoint) },
})

func (s logState) step(c *logCall) (bool, logState) {
	switch c.kind {
	case reading:
		return s.reads(c), s
	case checkpointing:
		if c.checkpoint.Position > s.checkpoint {
			s.checkpoint, s.value = c.checkpoint.Position, string(c.checkpoint.Value)
		} else if c.outcome == inDoubt {
			return false, s // somebody saw it
		}
		return true, s
	}
	if s.last != nil && c.position <= s.last.position || c.position <= 0 {
		return false, s
	}
	hash := binary.BigEndian.AppendUint64(nil, s.hash())
	hash = binary.BigEndian.AppendUint64(hash, uint64(c.position))
	s.last = &logged{s.last, c.position, c.id, maphash.Bytes(hashSeed, append(hash, c.id...))}
	return true, s
}

// reads tells whether a read finds all entries that there are, and no other.
func (s logState) reads(c *logCall) bool {
	after := c.after
	at := c.batch.Checkpoint
	if (at != nil) != (after < s.checkpoint) {
		return false
	}
	if at != nil {
		if at.Position != s.checkpoint || string(at.Value) != s.value {
			return false
		}
		after = at.Position
	}
	e := s.last
	for i := len(c.batch.Entries) - 1; i >= 0; i-- {
		found := c.batch.Entries[i]
		if e == nil || e.position <= after || found.Position != e.position || found.ID != e.id {
			return false
		}
		e = e.before
	}
	return e == nil || e.position <= after
}
