package storetest

import (
	"fmt"
	"hash/maphash"
	"strings"

	"github.com/anishathalye/porcupine"

	"github.com/firn-id/firn/store"
)

// groups are what the keys of a history begin with. A transaction and a List stay within
// one, so that each group has an order of its own. Only those of the last are put under
// sessions.
var groups = []string{"x/", "y/", "pulse/"}

// groupKeys are the keys of each group, without the beginning.
var groupKeys = [...]string{"a", "b", "c"}

// keyKind is the kind of a call that is about keys.
type keyKind int

const (
	getting keyKind = iota
	listing
	committing
	firing // the key was absent at a moment of the call
	ending // the session ended
)

// keyCall is a call that is about keys.
type keyCall struct {
	span
	kind    keyKind
	group   string
	key     string // of get and gone
	txn     store.Txn
	value   string // what the transaction puts, which no other does
	session int    // that the transaction puts keys under, or which ended; zero: none

	outcome outcome
	gaveUp  bool          // the session was done when the commit had ended
	found   []store.KV    // by get and list
	version store.Version // that a commit gave; below zero: it is in doubt and nobody saw it
}

func (c *keyCall) String() string {
	switch c.kind {
	case getting:
		return fmt.Sprintf("Get %s: %s", c.key, c.finds())
	case listing:
		return fmt.Sprintf("List %s: %s", c.group, c.finds())
	case firing:
		return fmt.Sprintf("Gone %s fires", c.key)
	case ending:
		return fmt.Sprintf("session %d ends", c.session)
	}
	var text strings.Builder
	text.WriteString("Commit")
	for i, condition := range c.txn.If {
		text.WriteString([]string{" if ", ", "}[min(i, 1)])
		fmt.Fprintf(&text, "%s has version %d", condition.Key, condition.Version)
	}
	for _, op := range c.txn.Then {
		switch {
		case op.Delete:
			fmt.Fprintf(&text, ", delete %s", op.Key)
		case op.Session != nil:
			fmt.Fprintf(&text, ", put %s=%s under session %d", op.Key, op.Value, c.session)
		default:
			fmt.Fprintf(&text, ", put %s=%s", op.Key, op.Value)
		}
	}
	fmt.Fprintf(&text, ": %v", c.outcome)
	switch {
	case c.version > 0:
		fmt.Fprintf(&text, ", version %d", c.version)
	case c.outcome == inDoubt:
		text.WriteString(", and nobody saw it")
	}
	return text.String()
}

func (c *keyCall) finds() string {
	var all []string
	for _, kv := range c.found {
		all = append(all, fmt.Sprintf("%s=%s version %d", kv.Key, kv.Value, kv.Version))
	}
	return strings.Join(all, ", ")
}

// keyOperations are the calls for one group, with what they tell of each other: the fewer
// places a call can have, the shorter the search.
//
// A commit in doubt that somebody saw the value of took effect before that. Another may take
// effect at any time until one of its conditions can never hold again, and if there is no
// such time at the very end, which is never.
func keyOperations(all []*keyCall, group string, last int64) []porcupine.Operation {
	seen, beyond := sights(all)
	alive := make(map[int]int64) // a moment at which a session lived
	for _, c := range all {
		if c.kind == committing && c.session != 0 {
			alive[c.session] = max(alive[c.session], seen[c.value].last)
			if c.outcome == applied {
				alive[c.session] = max(alive[c.session], c.call)
			}
		}
	}
	var calls []porcupine.Operation
	for i, c := range all {
		switch {
		case c.group != group:
			continue
		case c.kind == ending:
			c.call = max(c.call, min(alive[c.session], c.end-1))
		case c.kind != committing || c.outcome != inDoubt:
		case seen[c.value].version != 0:
			c.version, c.end = seen[c.value].version, seen[c.value].first
		default:
			c.version, c.end = store.Version(-1-i), last
			for _, condition := range c.txn.If {
				if condition.Version != 0 {
					c.end = min(c.end, beyond(condition, c.call, last))
				}
			}
		}
		calls = append(calls, porcupine.Operation{ClientId: c.worker, Input: c, Call: c.call, Return: c.end})
	}
	return calls
}

// sight is when a value was seen.
type sight struct {
	version store.Version
	first   int64 // the first end of a call that saw it
	last    int64 // the last beginning of one
}

// sights returns when each value was seen. The function returns the first moment, from one
// on, at which a call had ended that found the key absent or later than a condition says.
func sights(all []*keyCall) (map[string]sight, func(condition store.Condition, from, otherwise int64) int64) {
	seen := make(map[string]sight)
	for _, c := range all {
		for _, kv := range c.found {
			if kv.Version == 0 {
				continue
			}
			s, ok := seen[string(kv.Value)]
			if !ok || c.end < s.first {
				s.version, s.first = kv.Version, c.end
			}
			s.last = max(s.last, c.call)
			seen[string(kv.Value)] = s
		}
	}
	return seen, func(condition store.Condition, from, otherwise int64) int64 {
		for _, c := range all {
			// A call that began before may have found it so before the condition held.
			if version, ok := c.finding(condition.Key); ok && c.call > from &&
				(version == 0 || version > condition.Version) {
				otherwise = min(otherwise, c.end)
			}
		}
		return otherwise
	}
}

// finding is the version at which a read found a key; false: it is not about the key.
func (c *keyCall) finding(key string) (store.Version, bool) {
	if c.kind != getting && c.kind != listing || c.group != key[:strings.Index(key, "/")+1] ||
		c.kind == getting && c.key != key {
		return 0, false
	}
	for _, kv := range c.found {
		if kv.Key == key {
			return kv.Version, true
		}
	}
	return 0, true
}

// cell is a key. The zero value is one that was never put.
type cell struct {
	value   string
	version store.Version // zero: absent
	highest store.Version // that it ever had, as far as is known
	session int
}

// keyState is a group of keys, and which sessions have ended, as bits.
type keyState struct {
	cells [len(groupKeys)]cell
	ended uint64
}

// maxSessions is how many sessions a history may have.
const maxSessions = 63

func (s keyState) String() string {
	var all []string
	for i, c := range s.cells {
		if c.version != 0 {
			all = append(all, fmt.Sprintf("%s=%s version %d", groupKeys[i], c.value, c.version))
		} else {
			all = append(all, fmt.Sprintf("%s absent, was version %d", groupKeys[i], c.highest))
		}
		if c.session != 0 {
			all[i] += fmt.Sprintf(" under session %d", c.session)
		}
	}
	return strings.Join(all, ", ")
}

func (s *keyState) cell(group, key string) *cell {
	for i, name := range groupKeys {
		if group+name == key {
			return &s.cells[i]
		}
	}
	panic("a key of no group: " + key)
}

var (
	hashSeed = maphash.MakeSeed()

	keyModel = describe(porcupine.Model{
		Init: func() any { return keyState{} },
		Step: func(state, call, _ any) (bool, any) {
			s := state.(keyState)
			ok := s.step(call.(*keyCall))
			return ok, s
		},
		Hash: func(state any) uint64 { return maphash.Comparable(hashSeed, state.(keyState)) },
	})
)

// step applies a call; false: it can't have its answer in this state.
func (s *keyState) step(c *keyCall) bool {
	switch c.kind {
	case getting:
		have := s.cell(c.group, c.key)
		return len(c.found) == 1 && c.found[0].Key == c.key && have.is(c.found[0])
	case listing:
		return s.lists(c)
	case firing:
		return s.cell(c.group, c.key).version == 0
	case ending:
		s.ended |= 1 << c.session
		for i := range s.cells {
			if s.cells[i].session == c.session {
				s.cells[i].clear()
			}
		}
		return true
	default:
		return s.commits(c)
	}
}

// commits applies a transaction, if it has taken effect; false: it can't have its outcome in this state.
func (s *keyState) commits(c *keyCall) bool {
	holds := true
	for _, condition := range c.txn.If {
		holds = holds && s.cell(c.group, condition.Key).version == condition.Version
	}
	over := c.session != 0 && s.ended&(1<<c.session) != 0
	switch c.outcome {
	case conflicting:
		return !holds
	case sessionEnded:
		return holds && (over || c.gaveUp)
	case inDoubt:
		if c.version < 0 && (!holds || over) {
			return true // it did nothing
		}
	}
	return holds && !over && s.apply(c)
}

func (c *cell) is(kv store.KV) bool {
	return c.version == kv.Version && c.value == string(kv.Value)
}

func (c *cell) clear() { *c = cell{highest: c.highest} }

// lists tells whether a List finds all keys that there are, and no other.
func (s *keyState) lists(c *keyCall) bool {
	next := 0
	for i, name := range groupKeys {
		if s.cells[i].version == 0 {
			continue
		}
		if next == len(c.found) || c.found[next].Key != c.group+name || !s.cells[i].is(c.found[next]) {
			return false
		}
		next++
	}
	return next == len(c.found)
}

// apply applies the operations; false: the version can't be this one.
func (s *keyState) apply(c *keyCall) bool {
	for _, op := range c.txn.Then {
		have := s.cell(c.group, op.Key)
		if op.Delete {
			have.clear()
			continue
		}
		if c.version >= 0 && c.version <= have.highest {
			return false
		}
		*have = cell{value: string(op.Value), version: c.version, highest: max(have.highest, c.version)}
		if op.Session != nil {
			have.session = c.session
		}
	}
	return true
}
