package journal

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Report is what Check has found.
type Report struct {
	Lines      int         `json:"lines"`
	Members    int         `json:"members"`
	Owners     int         `json:"owners"`   // fences
	NodeIDs    int         `json:"node_ids"` // that they owned
	IDs        int64       `json:"ids"`
	Lost       bool        `json:"lost"` // a member has found that the store has lost data
	Violations []Violation `json:"violations"`
}

// Violation is a line that is no step of the model, or that repeats an ID.
type Violation struct {
	Line string `json:"line"` // as file:line
	Rule string `json:"rule"` // the step of the model whose condition does not hold, or the theorem that is untrue
	What string `json:"what"`

	orders bool // it rests on the order of versions, which says nothing once the store has lost data
}

func (v Violation) String() string { return fmt.Sprintf("%s: %s: %s", v.Line, v.Rule, v.What) }

// The rules are named after the steps and theorems of formal/Fence.v and formal/Ids.v.
const (
	ruleRead    = "Read"
	ruleSend    = "Send"
	ruleApply   = "Apply"
	ruleLearn   = "Learn"
	ruleUse     = "Use"
	ruleStop    = "Stop"
	ruleRelease = "Release"
	ruleInstant = "no_instant_has_two_owners"
	ruleID      = "no_id_is_given_twice"
)

// Check replays journals against the model of formal/Fence.v. They should be those of all members of a cluster that had
// node IDs. Versions put the lines of different members in order, so that no clock matters.
//
// When the store has lost data, versions say nothing any more. Check then compares each member with itself alone, and
// the instants and IDs of all.
//
// An error is returned when a file can't be read, or is no journal.
func Check(files ...File) (Report, error) {
	c := &checker{
		Report: Report{Violations: []Violation{}}, keys: map[key]*history{}, owners: map[string]*owner{},
		given: map[string][]run{},
	}
	for _, f := range files {
		if err := f.read(c.replay); err != nil {
			return Report{}, err
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(c.keys), key.compare) {
		c.checkChain(k, c.keys[k])
		c.checkInstants(k, c.keys[k])
	}
	for _, name := range slices.Sorted(maps.Keys(c.given)) {
		c.checkIDs(name, c.given[name])
	}
	r := c.Report
	r.Owners, r.NodeIDs = len(c.owners), len(c.keys)
	if r.Lost {
		r.Violations = slices.DeleteFunc(r.Violations, func(v Violation) bool { return v.orders })
	}
	return r, nil
}

// key is a node ID of a sequencer.
type key struct {
	sequencer string
	node      int64
}

func (k key) String() string { return fmt.Sprintf("node ID %d of %s", k.node, k.sequencer) }

func (k key) compare(other key) int {
	return cmp.Or(cmp.Compare(k.sequencer, other.sequencer), cmp.Compare(k.node, other.node))
}

// checker is what has been replayed so far.
type checker struct {
	Report
	keys   map[key]*history
	owners map[string]*owner
	held   map[key][]*owner // those of the member whose lines are replayed, the latest last
	given  map[string][]run // by sequencer
}

// history is the key of a node ID, and its owners.
type history struct {
	written map[uint64]written // by version
	owners  []*owner
}

type written struct {
	by      string
	horizon int64
	at      place
}

// owner is a fence: what the record of this name in the model has, what it has sent, and the time that it has used.
type owner struct {
	key          key
	at           place // where it began
	ended        bool
	known        uint64
	floor, bound int64
	last         int64
	sent         map[transaction]bool
	from, until  int64 // the same if it has made no ID
}

type transaction struct {
	expects uint64
	horizon int64
}

// run is IDs that are equally far apart.
type run struct {
	first, last, count int64
	at                 place
}

func (c *checker) violates(at place, rule, format string, args ...any) {
	c.Violations = append(c.Violations, Violation{Line: at.String(), Rule: rule, What: fmt.Sprintf(format, args...)})
}

// disorders is violates for what rests on the order of versions.
func (c *checker) disorders(at place, rule, format string, args ...any) {
	c.violates(at, rule, format, args...)
	c.Violations[len(c.Violations)-1].orders = true
}

// replay replays a line.
func (c *checker) replay(at place, l Line) error {
	c.Lines++
	k := key{l.Sequencer, l.Node}
	switch l.Do {
	case Begin:
		c.Members++
		c.held = map[key][]*owner{}
		return nil
	case Loss:
		c.Lost = true
		return nil
	case Read:
		c.replayRead(at, k, l)
		return nil
	case Given:
		c.replayGiven(at, k, l)
		return nil
	case Send, Applied, Conflict, Doubt, Seen, Bound, Stop:
	default:
		return fmt.Errorf("%v: no journal of version %d has a line that does %q", at, Version, l.Do)
	}
	o := c.owners[l.Owner]
	if o == nil || o.key != k {
		c.violates(at, ruleRead, "the owner %s of %v has not read the key", l.Owner, k)
		return nil
	}
	switch l.Do {
	case Send:
		c.replaySend(at, o, l)
	case Applied:
		c.learn(at, o, l.Version, l.Horizon)
		c.writes(at, k, l.Version, l.Owner, l.Horizon)
	case Seen:
		if l.By == l.Owner {
			c.learn(at, o, l.Version, l.Horizon)
		}
		c.writes(at, k, l.Version, l.By, l.Horizon)
	case Bound:
		if l.Until > o.bound {
			c.violates(at, ruleUse, "the generator of %v may make IDs up to %v; the store has confirmed %v", k,
				instant(l.Until), instant(o.bound))
		}
	case Stop:
		c.replayStop(at, o, l)
	}
	return nil
}

func (c *checker) replayRead(at place, k key, l Line) {
	c.writes(at, k, l.Version, l.By, l.Horizon)
	if before := c.owners[l.Owner]; before != nil {
		c.violates(at, ruleRead, "the owner %s has begun before, at %v", l.Owner, before.at)
	}
	if l.Floor < l.Horizon {
		c.violates(at, ruleRead, "the floor of %v is %v; the horizon that was read is later, %v", k, instant(l.Floor),
			instant(l.Horizon))
	}
	o := &owner{key: k, at: at, known: l.Version, floor: l.Floor, bound: l.Floor, sent: map[transaction]bool{}}
	c.owners[l.Owner] = o
	c.held[k] = append(c.held[k], o)
	h := c.history(k)
	h.owners = append(h.owners, o)
}

func (c *checker) replaySend(at place, o *owner, l Line) {
	rule := ruleSend
	if o.ended {
		rule = ruleRelease
	}
	if l.Version != o.known {
		c.violates(at, rule, "the owner of %v expects version %d; the last version that it knows is %d", o.key,
			l.Version, o.known)
	}
	switch {
	case o.ended && l.Horizon != o.last:
		c.violates(at, rule, "the owner of %v sends the horizon %v; its use ended at %v", o.key, instant(l.Horizon),
			instant(o.last))
	case !o.ended && l.Horizon < o.bound:
		c.violates(at, rule, "the owner of %v sends the horizon %v; it may use time up to %v", o.key,
			instant(l.Horizon), instant(o.bound))
	}
	o.sent[transaction{l.Version, l.Horizon}] = true
}

// learn has an owner know that a write of its own was applied.
func (c *checker) learn(at place, o *owner, version uint64, horizon int64) {
	if version < o.known {
		c.disorders(at, ruleLearn, "the owner of %v learns of version %d, and knows version %d already", o.key,
			version, o.known)
	}
	o.known, o.bound = version, max(o.bound, horizon)
}

func (c *checker) replayStop(at place, o *owner, l Line) {
	switch {
	case o.ended:
		c.violates(at, ruleStop, "the generator of %v had stopped before", o.key)
	case l.Until < o.floor:
		c.violates(at, ruleStop, "the use of %v ended at %v, before its floor, %v", o.key, instant(l.Until),
			instant(o.floor))
	case l.Until < o.until:
		c.violates(at, ruleStop, "the use of %v ended at %v; it has made IDs up to %v", o.key, instant(l.Until),
			instant(o.until))
	}
	o.ended, o.last = true, l.Until
}

// limit is where an owner's use ends.
func (o *owner) limit() int64 {
	if o.ended {
		return o.last
	}
	return o.bound
}

func (c *checker) replayGiven(at place, k key, l Line) {
	c.IDs += l.Count
	c.given[l.Sequencer] = append(c.given[l.Sequencer], run{l.First, l.Last, l.Count, at})
	held := c.held[k]
	for _, o := range slices.Backward(held) {
		if o.floor > l.From || l.Until > o.limit() {
			continue
		}
		if o.from == o.until {
			o.from = l.From
		}
		o.from, o.until = min(o.from, l.From), max(o.until, l.Until)
		return
	}
	if len(held) == 0 {
		c.violates(at, ruleUse, "an ID of %v is given; this member has not read its key", k)
		return
	}
	o := held[len(held)-1]
	c.violates(at, ruleUse, "IDs of %v are given from %v to %v; its last owner here may use %v to %v", k,
		instant(l.From), instant(l.Until), instant(o.floor), instant(o.limit()))
}

func (c *checker) history(k key) *history {
	h := c.keys[k]
	if h == nil {
		h = &history{written: map[uint64]written{}}
		c.keys[k] = h
	}
	return h
}

// writes notes that a line shows what was written under a version.
func (c *checker) writes(at place, k key, version uint64, by string, horizon int64) {
	if version == 0 {
		return // the key does not exist
	}
	h := c.history(k)
	before, known := h.written[version]
	if known && (before.by != by || before.horizon != horizon) {
		c.disorders(at, ruleApply, "version %d of %v is the horizon %v by %s; at %v it was %v by %s", version, k,
			instant(horizon), by, before.at, instant(before.horizon), before.by)
	}
	if !known {
		h.written[version] = written{by, horizon, at}
	}
}

// checkChain checks that each version was written by an owner that had sent that, and expected the version before.
func (c *checker) checkChain(k key, h *history) {
	before := uint64(0)
	for _, version := range slices.Sorted(maps.Keys(h.written)) {
		w := h.written[version]
		if o := c.owners[w.by]; o != nil && !o.sent[transaction{before, w.horizon}] {
			c.disorders(w.at, ruleApply,
				"version %d of %v follows version %d, and has the horizon %v; its owner %s has sent no such "+
					"transaction",
				version, k, before, instant(w.horizon), w.by)
		}
		before = version
	}
}

// checkInstants checks what the theorem says.
func (c *checker) checkInstants(k key, h *history) {
	users := slices.DeleteFunc(slices.Clone(h.owners), func(o *owner) bool { return o.from == o.until })
	slices.SortFunc(users, func(a, b *owner) int { return cmp.Compare(a.from, b.from) })
	for i, furthest := 1, 0; i < len(users); i++ {
		a, b := users[furthest], users[i]
		if b.from < a.until {
			c.violates(b.at, ruleInstant,
				"the owner that begins here has made IDs of %v from %v on; the one that began at %v, up to %v", k,
				instant(b.from), a.at, instant(a.until))
		}
		if b.until > a.until {
			furthest = i
		}
	}
}

// checkIDs checks that no ID comes twice.
func (c *checker) checkIDs(sequencer string, runs []run) {
	slices.SortFunc(runs, func(a, b run) int { return cmp.Compare(a.first, b.first) })
	var open []run // those that may reach the next one
	for _, b := range runs {
		open = slices.DeleteFunc(open, func(a run) bool { return a.last < b.first })
		for _, a := range open {
			if id, ok := a.meets(b); ok {
				c.violates(b.at, ruleID, "the ID %d of %s was given before, at %v", id, sequencer, a.at)
			}
		}
		open = append(open, b)
	}
}

// has reports whether an ID is one of a run.
func (r run) has(id int64) bool {
	return id == r.first || id > r.first && id <= r.last && (id-r.first)%r.step() == 0
}

func (r run) step() int64 { return (r.last - r.first) / max(r.count-1, 1) }

// meets returns an ID that two runs have.
func (r run) meets(other run) (int64, bool) {
	few, many := r, other
	if few.count > many.count {
		few, many = many, few
	}
	if few.count == 1 || few.step() == many.step() {
		id := max(few.first, many.first)
		return id, few.has(id) && many.has(id)
	}
	for i := range few.count { // of two layouts
		if id := few.first + i*few.step(); many.has(id) {
			return id, true
		}
	}
	return 0, false
}

// instant is a time in Unix milliseconds, as a message shows it.
func instant(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000") }
