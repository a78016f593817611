package fence

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/test/testenv"
	"github.com/firn-id/firn/store"
)

// This file explores the protocol exhaustively: it runs Step itself, for up to three owners of
// one node ID, through every order of everything that can happen. Transactions are
// applied late or never, answers are lost, leases are revoked at any moment, owners crash,
// leave, and have clocks that show anything. A process is copied at any moment, with all that its owner knows.
//
// The promise: no instant of ID time is usable by two owners, and none that lies further ahead of the clocks than a
// window. If a process was copied, what was reserved or being reserved at that moment may be used twice, and nothing
// beyond.

// world is the store, the owners, and the transactions that are under way.
type world struct {
	live, reported           store.Version
	liveOwner, reportedOwner int8
	reportedMine             [3]bool // who knows that it has sent the write of the horizon
	horizon                  int64
	owners                   [3]owner

	original, twin int8  // whose process was copied, and who that made; both 0: none
	reserved       int64 // what the original had reserved then, or was reserving
}

type owner struct {
	state   State
	mode    mode
	dead    bool
	stopped bool      // its generator has stopped
	flights [2]flight // its transactions that were sent and not yet settled
}

type mode int8

const (
	idle mode = iota // has not read the keys yet
	ready
	waiting // for the answer to a transaction
	looking // for what became of one
	stopping
)

type flight struct {
	fate    fate
	awaited bool // its owner still waits for the answer
	both    bool // it was sent, or about to be, when the process was copied: both may send it
	write   Write
	version store.Version
}

type fate int8

const (
	none fate = iota
	sent
	wasApplied
	wasRefused
)

// scope is how much of everything there is.
type scope struct {
	owners  int
	clocks  []int64
	elapsed []int64
	limits  Limits
	copies  bool // one of the owners is a copy of another
}

// newVersion is greater than any that canonical leaves in a world.
const newVersion = store.Version(4)

// move is one thing that happened, as a trace shows it.
type move struct {
	owner int
	what  string
	arg   int64
}

func (m move) String() string { return fmt.Sprintf("owner %d: %s (%d)", m.owner, m.what, m.arg) }

// usable is the stretch of time that an owner may use, or may have used.
func (o *owner) usable() (from, to int64) {
	if o.stopped {
		return o.state.Floor, o.state.End
	}
	return o.state.Floor, o.state.Horizon
}

func (w *world) overlap() string {
	for i := range w.owners {
		for j := range i {
			from1, to1 := w.owners[i].usable()
			from2, to2 := w.owners[j].usable()
			from, to := max(from1, from2), min(to1, to2)
			if w.copied(i) || w.copied(j) {
				from = max(from, w.reserved)
			}
			if from < to {
				return fmt.Sprintf("owners %d and %d may both use %d to %d", j, i, from, to)
			}
		}
	}
	return ""
}

// tooFar reports an owner that may use time further ahead of all clocks than a window: what is written after the store
// has lost data relies on this.
func (w *world) tooFar(sc scope) string {
	for i, o := range w.owners {
		if s := o.state; s.Horizon > s.Floor && s.Horizon > slices.Max(sc.clocks)+sc.limits.Window {
			return fmt.Sprintf("owner %d may use %d to %d, further ahead than a window", i, s.Floor, s.Horizon)
		}
	}
	return ""
}

func (w *world) view(i int) View {
	same := func(owner int8) bool { return owner == int8(i) || w.copied(i) && w.copied(int(owner)) } // operation
	return View{
		Live: w.live, LiveMine: w.live != 0 && same(w.liveOwner),
		Reported: w.reported, ReportedMine: w.reportedMine[i], Horizon: w.horizon,
		ReportedCopy: w.reported != 0 && same(w.reportedOwner) && !w.reportedMine[i],
	}
}

// copied reports whether an owner is one of the two that a copy made of one.
func (w *world) copied(i int) bool { return w.twin != 0 && (i == int(w.original) || i == int(w.twin)) }

// copy copies the process of an owner.
func (w *world) copy(i, to int) {
	for k := range w.owners[i].flights {
		f := &w.owners[i].flights[k]
		f.both = f.fate == sent
		if f.fate != none {
			w.reserved = max(w.reserved, f.write.Horizon)
		}
	}
	w.original, w.twin, w.owners[to], w.reportedMine[to] = int8(i), int8(to), w.owners[i], w.reportedMine[i]
	w.reserved = max(w.reserved, w.owners[i].state.Horizon)
	if w.reportedMine[i] { // though it may not have been told
		w.reserved = max(w.reserved, w.horizon)
	}
}

// next calls visit with everything that can happen next.
func (w world) next(sc scope, visit func(move, world)) {
	if w.live != 0 {
		n := w
		n.live, n.liveOwner = 0, 0
		visit(move{int(w.liveOwner), "its lease is revoked", 0}, n)
	}
	for i := range sc.owners {
		w.nextOfFlights(i, visit)
		if w.owners[i].dead {
			continue
		}
		if w.owners[i].mode != idle {
			n := w
			n.owners[i].dead = true
			visit(move{i, "crashes", 0}, n)
		}
		if to := slices.IndexFunc(w.owners[:sc.owners], func(o owner) bool {
			return o.mode == idle
		}); sc.copies && w.twin == 0 && w.owners[i].mode != idle && to >= 0 {
			n := w
			n.copy(i, to)
			visit(move{i, "is copied, as owner", int64(to)}, n)
		}
		w.nextOf(i, sc, visit)
	}
}

// nextOfFlights is what can happen to transactions that were sent.
func (w world) nextOfFlights(i int, visit func(move, world)) {
	for k, f := range w.owners[i].flights {
		if f.fate == sent {
			n := w
			n.apply(i, &n.owners[i].flights[k])
			visit(move{i, "its transaction reaches the store", f.write.Horizon}, n)
		}
		if f.fate == sent && !f.awaited {
			n := w
			n.owners[i].flights[k] = flight{}
			visit(move{i, "its transaction is dropped", f.write.Horizon}, n)
		}
	}
}

func (w *world) apply(i int, f *flight) {
	if w.live != f.write.IfLive || w.reported != f.write.IfReported {
		f.fate = wasRefused
		return
	}
	f.fate, f.version = wasApplied, newVersion
	w.reported, w.reportedOwner, w.horizon = f.version, int8(i), f.write.Horizon
	for j := range w.reportedMine {
		w.reportedMine[j] = j == i || f.both && w.copied(j)
	}
	switch f.write.Live {
	case Take:
		w.live, w.liveOwner = f.version, int8(i)
	case Drop:
		w.live, w.liveOwner = 0, 0
	}
}

// nextOf is what a living owner can do or be told.
func (w world) nextOf(i int, sc scope, visit func(move, world)) {
	step := func(what string, arg int64, e Event, to mode) {
		n := w
		o := &n.owners[i]
		state, action := Step(o.state, e, sc.limits)
		o.state, o.mode = state, to
		switch action.Kind {
		case Commit:
			for k := range o.flights {
				if o.flights[k].fate == none {
					o.flights[k] = flight{fate: sent, awaited: true, write: action.Write}
					o.mode = waiting
					break
				}
			}
			if o.mode != waiting {
				return // too many in flight for this exploration
			}
		case Look:
			o.mode = looking
		case Stop:
			o.mode = stopping
		}
		visit(move{i, what, arg}, n)
	}
	o := w.owners[i]
	switch o.mode {
	case idle:
		last := sc.copies && w.twin == 0 && i == sc.owners-1                // kept for the copy
		if w.live == 0 && (i == 0 || w.owners[i-1].mode != idle) && !last { // the owners are alike
			n := w
			n.owners[i].mode = ready
			n.owners[i].state = Begin(w.view(i))
			visit(move{i, "begins, with the floor", w.horizon}, n)
		}
	case ready:
		for _, now := range sc.clocks {
			for _, elapsed := range sc.elapsed {
				step("sends a transaction at", now, Due{Now: now, Elapsed: elapsed}, ready)
			}
		}
		if o.state.Phase == Held || o.state.Phase == Lost {
			step("wants to leave", 0, Leave{}, ready)
		}
	case waiting:
		for k, f := range o.flights {
			if !f.awaited {
				continue
			}
			w.owners[i].flights[k].awaited = false
			step("gets no answer", f.write.Horizon, Doubt{}, ready)
			switch f.fate {
			case wasApplied:
				step("is told that it was applied", f.write.Horizon, Applied{f.write, f.version}, ready)
			case wasRefused:
				step("is told of a conflict", 0, Conflict{}, ready)
			}
		}
	case looking:
		step("looks and sees the horizon", w.horizon, Seen{w.view(i)}, ready)
		n := w
		n.owners[i].mode = ready
		visit(move{i, "looks in vain", 0}, n)
	case stopping:
		for end := o.state.Floor; end <= o.state.Horizon; end++ {
			w.owners[i].stopped = true
			step("has stopped its generator at", end, Stopped{end}, ready)
		}
	}
}

// canonical makes worlds equal that differ only in what can never matter again: what an owner
// that is gone believed, transactions that can no longer be applied, and which old version a
// version is, since versions do not come back.
func (w *world) canonical() {
	live, reported := w.live, w.reported
	if reported != 0 {
		w.reported = 2
	}
	if live != 0 {
		w.live = 3
	}
	if live == reported {
		w.live = w.reported
	}
	renamed := func(v store.Version) store.Version {
		switch v {
		case 0:
			return 0
		case live:
			return w.live
		case reported:
			return w.reported
		default:
			return 1
		}
	}
	for i := range w.owners {
		o := &w.owners[i]
		if gone := o.mode == ready && (o.state.Phase == Failed || o.state.Phase == Released); o.dead || gone {
			from, to := o.usable()
			o.dead, o.stopped, o.mode, o.state = true, false, ready, State{}
			if from < to {
				o.state = State{Phase: Released, Floor: from, Horizon: to}
			}
			w.reportedMine[i] = false
		}
		o.state.Live, o.state.Reported = renamed(o.state.Live), renamed(o.state.Reported)
		for k := range o.flights {
			f := &o.flights[k]
			hopeless := f.write.IfReported != reported || f.write.IfLive != 0 && f.write.IfLive != live
			if f.awaited = f.awaited && !o.dead; f.fate == sent && hopeless {
				f.fate = wasRefused
			}
			switch {
			case f.fate == none, f.fate != sent && !f.awaited:
				*f = flight{}
			case f.fate == wasRefused:
				*f = flight{fate: wasRefused, awaited: true}
			case f.fate == wasApplied:
				f.both = false
				fallthrough
			default:
				f.version, f.write.IfLive, f.write.IfReported = renamed(f.version), renamed(f.write.IfLive),
					renamed(f.write.IfReported)
			}
		}
		if f := &o.flights; f[0].order() < f[1].order() {
			f[0], f[1] = f[1], f[0]
		}
	}
}

func (f *flight) order() int64 {
	return flag(f.both)<<40 | int64(f.fate)<<32 | int64(f.write.Live)<<24 | int64(f.write.IfLive)<<16 |
		int64(f.write.IfReported)<<8 | f.write.Horizon
}

// key is the world in a few bytes; every number in it is small.
type key [64]byte

func (w *world) key() (k key) {
	n := 0
	put := func(high, low int64) {
		if high|low < 0 || high > 15 || low > 15 {
			panic(fmt.Sprintf("%d and %d do not fit the key", high, low))
		}
		k[n] = byte(high<<4 | low)
		n++
	}
	put(int64(w.live), int64(w.reported))
	put(int64(w.liveOwner), int64(w.reportedOwner))
	put(w.reserved, w.horizon)
	put(int64(w.original), int64(w.twin))
	for i := range w.owners {
		o := &w.owners[i]
		put(flag(w.reportedMine[i])<<2|flag(o.dead)<<1|flag(o.stopped), int64(o.mode))
		put(flag(o.state.Copied)<<3|int64(o.state.Phase), o.state.Floor)
		put(o.state.Horizon, o.state.End)
		put(int64(o.state.Live), int64(o.state.Reported))
		for j := range o.flights {
			f := &o.flights[j]
			put(int64(f.fate), flag(f.both)<<1|flag(f.awaited))
			put(int64(f.version), int64(f.write.Live))
			put(int64(f.write.IfLive), int64(f.write.IfReported))
			put(0, f.write.Horizon)
		}
	}
	return k
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// explore visits every world that can be reached, breadth first, and stops at the first in
// which two owners may use the same instant.
func explore(sc scope, visited func(m move, from, to *world)) (worlds int, violation string) {
	type step struct {
		from int32
		move
	}
	seen := map[key]struct{}{(&world{}).key(): {}}
	steps := []step{{}} // how each world was reached, for the trace
	level, number := []world{{}}, []int32{0}
	for len(level) > 0 {
		var deeper []world
		var numbers []int32
		for i := range level {
			level[i].next(sc, func(m move, n world) {
				if visited != nil {
					visited(m, &level[i], &n)
				}
				n.canonical()
				k := n.key()
				if _, ok := seen[k]; ok || violation != "" {
					return
				}
				seen[k] = struct{}{}
				steps = append(steps, step{number[i], m})
				deeper, numbers = append(deeper, n), append(numbers, int32(len(steps)-1))
				violation = cmp.Or(n.overlap(), n.tooFar(sc))
			})
			if violation != "" {
				trace := []string{violation}
				for at := int32(len(steps) - 1); at != 0; at = steps[at].from {
					trace = append(trace, steps[at].String())
				}
				slices.Reverse(trace)
				return len(seen), strings.Join(trace, "\n")
			}
		}
		level, number = deeper, numbers
	}
	return len(seen), ""
}

// scopes are what is explored.
var scopes = []scope{
	{owners: 2, clocks: []int64{0, 1, 4}, elapsed: []int64{0, 2}, limits: Limits{Window: 2, MaxStep: 1}},
	{owners: 3, clocks: []int64{0, 2}, elapsed: []int64{1}, limits: Limits{Window: 1, MaxStep: 1}},
	{owners: 2, clocks: []int64{0, 2}, elapsed: []int64{1}, limits: Limits{Window: 1, MaxStep: 1}, copies: true},
}

// scopesOfCopies are larger: in them an owner follows upon the two that a copy made of one.
var scopesOfCopies = []scope{
	{owners: 3, clocks: []int64{0, 2}, elapsed: []int64{1}, limits: Limits{Window: 1, MaxStep: 1}, copies: true},
}

func TestNoInstantIsUsableByTwoOwners(t *testing.T) { noInstantIsUsableByTwo(t, scopes) }

func TestNoInstantIsUsableAfterACopy(t *testing.T) {
	testenv.Exploration(t)
	noInstantIsUsableByTwo(t, scopesOfCopies)
}

func noInstantIsUsableByTwo(t *testing.T, scopes []scope) {
	for _, sc := range scopes {
		reached, copied := map[Phase]int{}, 0
		worlds, violation := explore(sc, func(_ move, _, to *world) {
			for _, o := range to.owners {
				reached[o.state.Phase]++
				copied += int(flag(o.state.Copied))
			}
		})
		t.Logf("%d owners: %d worlds", sc.owners, worlds)
		if violation != "" {
			t.Fatalf("%+v: after %d worlds:\n%s", sc, worlds, violation)
		}
		for p := Claiming; p <= Released; p++ {
			if reached[p] == 0 {
				t.Errorf("%+v: no owner was ever %s", sc, p)
			}
		}
		if sc.copies != (copied > 0) {
			t.Errorf("%+v: %d times an owner found out that there is a copy", sc, copied)
		}
	}
}
