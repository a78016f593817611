package counter

import (
	"fmt"
	"hash/maphash"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/test/testenv"
	"github.com/firn-id/firn/store"
)

// This file explores the protocol exhaustively: it runs Step itself, for up to three owners of one counter, through
// every order of everything that can happen. Transactions are applied late or never, answers are lost, owners crash and
// stop at any number, and the store goes back to an earlier state.
//
// The promise: no number is reserved twice. A number that nobody can give any more was left by an owner that crashed,
// that stopped when others had claimed above it, or whose answer was lost when others had; or the store lost it.
//
// What is assumed of a loss: the next answer of the store tells it to each owner that had read the store before, and
// nobody begins before one of them has told the others; and an operator says a number that is at least the record's and
// what those had reserved that are gone, once all the living have told and raised the record.

// set is a set of numbers: bit n stands for the number n.
type set uint16

func setOf(b Block) (s set) {
	for n := b.From; n <= b.To && b.Size() > 0; n++ {
		s |= 1 << n
	}
	return s
}

func (s set) last() int64 { return int64(bits.Len16(uint16(s))) - 1 }

// saved is what the store has.
type saved struct {
	version store.Version
	record  Record
	era     int64
	author  int8    // whose write the record is; -1: nobody's or an operator's
	mine    [3]bool // who has sent it
}

// world is the store, the owners, and the transactions that are under way.
type world struct {
	saved
	backup  saved // that the store may go back to
	backed  bool
	lost    bool    // it has gone back
	resumed int64   // above which number an operator had it go on
	told    bool    // somebody has noticed
	behind  [3]bool // who has not
	eras    int64   // how many there were

	owners [3]owner

	gone      set // what owners had reserved that are gone
	left      set // what nobody can give any more, for a good reason
	ever      set // what was ever reserved
	crashed   bool
	violation string
}

type owner struct {
	state   State
	mode    mode
	own     set // what it has reserved, but for what it has not given when it stopped
	past    set // what it had reserved when it dropped its blocks
	freed   set // of that, what it has given back
	flights [2]flight
}

type mode int8

const (
	idle mode = iota // has not begun
	ready
	waiting // for the answer to a transaction
	looking // for what became of one
	stopping
	gone
)

type flight struct {
	fate    fate
	awaited bool // its owner still waits for the answer
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
	owners   int
	sizes    []int64
	limits   Limits
	crashes  bool
	unsure   bool // answers are lost
	losses   bool // the store goes back once
	operator bool // resumes
}

// Versions in a world, as canonical renames them: those that can no longer come, the backup's, the present one, and the
// next.
const (
	oldVersion store.Version = iota + 1
	backupVersion
	presentVersion
	newVersion
)

type move struct {
	owner int
	what  string
	arg   int64
}

func (m move) String() string { return fmt.Sprintf("owner %d: %s (%d)", m.owner, m.what, m.arg) }

func (w *world) view(i int) View {
	return View{
		Version: w.version, Record: w.record, Mine: w.mine[i], StoreEra: w.era, IfEra: store.Version(w.era),
	}
}

// reserves notes that an owner may give the numbers of a block.
func (w *world) reserves(i int, b Block, l Limits) {
	if b.From <= l.After || b.To > l.Last {
		w.violation = fmt.Sprintf("owner %d reserves %d to %d; there are %d to %d", i, b.From, b.To, l.After+1, l.Last)
	}
	s := setOf(b)
	taken := w.gone
	for _, o := range w.owners {
		taken |= o.own | o.past
	}
	if s&taken != 0 {
		w.violation = fmt.Sprintf("owner %d reserves %d to %d, of which some are reserved already", i, b.From, b.To)
	}
	w.owners[i].own |= s
	w.ever |= s
}

// next calls visit with everything that can happen next.
func (w world) next(sc scope, visit func(move, world)) {
	if sc.losses && !w.backed && !w.lost {
		n := w
		n.backed, n.backup = true, w.saved
		visit(move{-1, "the store is backed up", 0}, n)
	}
	if w.backed && !w.lost {
		n := w
		n.saved, n.lost, n.backed = w.backup, true, false
		for i := range n.owners {
			n.behind[i] = n.owners[i].mode != idle && n.owners[i].mode != gone
		}
		visit(move{-1, "the store goes back to the backup", 0}, n)
	}
	w.nextOfOperator(sc, visit)
	for i := range sc.owners {
		w.nextOfFlights(i, visit)
		if w.owners[i].mode == gone {
			continue
		}
		if sc.crashes && w.owners[i].mode != idle {
			n := w
			n.owners[i].mode, n.crashed = gone, true
			visit(move{i, "crashes", 0}, n)
		}
		w.nextOf(i, sc, visit)
	}
}

// nextOfOperator is what an operator can do, who knows all that was ever reserved, or what the record shows once all
// the living have told and raised it, and what those had reserved that are gone.
func (w world) nextOfOperator(sc scope, visit func(move, world)) {
	said := []int64{max(w.ever.last(), w.record.Last, 0)}
	if !slices.ContainsFunc(w.owners[:sc.owners], func(o owner) bool {
		asked := o.mode == ready && o.state.Phase == Lost && !o.state.Doubt &&
			o.state.Known.Version == w.version && o.state.Known.StoreEra == w.era
		return !asked && o.mode != idle && o.mode != gone
	}) {
		said = append(said, max(w.record.Last, w.gone.last()))
	}
	for _, after := range said {
		if r, err := Resume(w.view(0), after, sc.limits); sc.operator && err == nil {
			n := w
			n.put(-1, Write{Record: r})
			n.resumed = r.Last
			visit(move{-1, "an operator resumes above", r.Last}, n)
		}
	}
}

// nextOfFlights is what can happen to transactions that were sent.
func (w world) nextOfFlights(i int, visit func(move, world)) {
	for k, f := range w.owners[i].flights {
		if f.fate == sent {
			n := w
			n.apply(i, &n.owners[i].flights[k])
			visit(move{i, "its transaction reaches the store", f.write.Record.Last}, n)
		}
		if f.fate == sent && !f.awaited {
			n := w
			n.owners[i].flights[k] = flight{}
			visit(move{i, "its transaction is dropped", f.write.Record.Last}, n)
		}
	}
}

func (w *world) apply(i int, f *flight) {
	if w.version != f.write.IfVersion || store.Version(w.era) != f.write.IfEra {
		f.fate = wasRefused
		return
	}
	f.fate, f.version = wasApplied, newVersion
	w.put(int8(i), f.write)
}

// put puts a record. The block of the one before is left if its owner does not know of it, and does not wait for the
// answer.
func (w *world) put(author int8, write Write) {
	if by := w.author; by >= 0 && by != author && !w.owners[by].awaits(w.version) {
		o := &w.owners[by]
		w.left |= setOf(w.record.block()) &^ (o.own | o.past | o.state.unused() | w.gone)
	}
	if author >= 0 && write.Record.Last < w.record.Last {
		w.frees(int(author), Block{write.Record.Last + 1, w.record.Last})
	}
	w.version, w.record, w.author = newVersion, write.Record, author
	for j := range w.mine {
		w.mine[j] = j == int(author)
	}
	w.ever |= setOf(write.Record.block())
}

// frees notes that an owner has given numbers back.
func (w *world) frees(i int, b Block) {
	s, others := setOf(b), w.gone
	for j, o := range w.owners {
		if others |= o.past; j != i {
			others |= o.own
		}
	}
	switch {
	case w.lost && !w.told: // the record says nothing before it is raised
	case s&others != 0:
		w.violation = fmt.Sprintf("owner %d gives back %d to %d, of which others have reserved some", i, b.From, b.To)
	case b.From <= w.resumed:
		w.violation = fmt.Sprintf("owner %d gives back %d, and an operator had it go on above %d", i, b.From, w.resumed)
	}
	w.owners[i].freed = s
}

// awaits reports whether the owner waits for the answer to a write that was applied under this version.
func (o *owner) awaits(version store.Version) bool {
	return slices.ContainsFunc(o.flights[:], func(f flight) bool {
		return f.fate == wasApplied && f.awaited && f.version == version
	})
}

// step steps an owner, and does what it is to do.
func (w *world) step(i int, e Event, to mode, sc scope) (possible bool) {
	o := &w.owners[i]
	before := o.state
	state, action := Step(o.state, e, sc.limits)
	o.state, o.mode = state, to
	switch action.Kind {
	case Commit:
		k := slices.IndexFunc(o.flights[:], func(f flight) bool { return f.fate == none })
		if k < 0 {
			return false // too many in flight for this exploration
		}
		o.flights[k] = flight{fate: sent, awaited: true, write: action.Write}
		o.mode = waiting
	case Look:
		o.mode = looking
	case Use:
		w.reserves(i, action.Block, sc.limits)
	case Stop:
		if state.Phase == Stopping {
			o.mode = stopping
		} else { // it drops its blocks
			o.past, o.own = o.past|o.own, 0
		}
	}
	unused := before.unused() &^ o.freed
	if state.Phase == Released {
		o.mode = gone
		knows := state.Known.Version == w.version && !w.lost && !sc.unsure
		if unused != 0 && unused.last() == w.record.Last && knows {
			w.violation = fmt.Sprintf("owner %d leaves %d, the last number, which it could give back", i, w.record.Last)
		}
	}
	w.left |= unused &^ state.unused()
	return true
}

func (s State) unused() set {
	if s.Phase == Released {
		return 0
	}
	return setOf(s.Unused[0]) | setOf(s.Unused[1])
}

// nextOf is what a living owner can do or be told.
func (w world) nextOf(i int, sc scope, visit func(move, world)) {
	step := func(what string, arg int64, e Event, to mode) {
		n := w
		if n.step(i, e, to, sc) {
			visit(move{i, what, arg}, n)
		}
	}
	o := w.owners[i]
	if w.behind[i] && (o.mode == waiting || o.mode == looking) {
		w.behind[i] = false
		for k := range w.owners[i].flights {
			w.owners[i].flights[k].awaited = false
		}
		step("is told that the store has lost data", 0, Lose{}, ready)
		return
	}
	switch o.mode {
	case idle:
		if (i == 0 || w.owners[i-1].mode != idle) && (!w.lost || w.told) { // the owners are alike
			step("begins, with the number", w.record.Last, Seen{w.view(i)}, ready)
		}
	case ready:
		w.nextWhenReady(i, sc, step, visit)
	case waiting:
		for k, f := range o.flights {
			if !f.awaited {
				continue
			}
			w.owners[i].flights[k].awaited = false
			if sc.unsure {
				if f.fate == wasApplied && f.version != w.version {
					w.left |= setOf(f.write.Record.block()) // before it could know
				}
				step("gets no answer", f.write.Record.Last, Doubt{}, ready)
			}
			w.left &^= setOf(f.write.Record.block())
			switch f.fate {
			case wasApplied:
				step("is told that it was applied", f.write.Record.Last, Applied{f.write, f.version}, ready)
			case wasRefused:
				step("is told of a conflict", 0, Conflict{}, ready)
			}
		}
	case looking:
		step("looks and sees the number", w.record.Last, Seen{w.view(i)}, ready)
	case stopping:
		for given, left := set(0), w.left; ; { // what it has given is the beginning of what it has reserved
			rest := o.own &^ given
			e := Stopped{runs(rest)}
			w.owners[i].own, w.left = given, left|rest&^setOf(e.Unused[0])&^setOf(e.Unused[1])
			step("has stopped, and gave numbers to", given.last(), e, ready)
			if rest == 0 {
				break
			}
			given |= rest & -rest
		}
	}
}

func (w world) nextWhenReady(i int, sc scope, step func(string, int64, Event, mode), visit func(move, world)) {
	switch w.owners[i].state.Phase {
	case Held:
		for _, size := range sc.sizes {
			step("needs numbers, so many", size, Need{size}, ready)
		}
		step("looks whether anything has changed", 0, Due{}, ready)
		step("wants to leave", 0, Leave{}, ready)
	case Losing:
		n := w
		n.eras++
		n.era, n.told = n.eras, true
		if n.step(i, Told{}, ready, sc) {
			visit(move{i, "tells the others by the era", n.era}, n)
		}
	default:
		step("goes on", 0, Due{}, ready)
	}
}

// runs returns the last two runs of consecutive numbers of a set.
func runs(s set) (all [2]Block) {
	for i := 1; i >= 0 && s != 0; i-- {
		b := Block{s.last(), s.last()}
		for s &^= 1 << b.From; s&(1<<(b.From-1)) != 0; s &^= 1 << b.From {
			b.From--
		}
		all[i] = b
	}
	return all
}

// unaccounted returns the numbers that are lost without a good reason.
func (w *world) unaccounted(l Limits) set {
	known := w.gone | w.left
	for i, o := range w.owners {
		known |= o.own | o.past | o.state.unused()
		for _, f := range o.flights {
			if f.fate == wasApplied && f.awaited {
				known |= setOf(f.write.Record.block())
			}
		}
		if w.mine[i] && o.mode != gone {
			known |= setOf(w.record.block())
		}
	}
	return setOf(Block{l.After + 1, w.record.Last}) &^ known
}

// canonical makes worlds equal that differ only in what can never matter again.
func (w *world) canonical() {
	present, backup := w.version, store.Version(0)
	if w.backed {
		backup = w.backup.version
	}
	renamed := func(v store.Version) store.Version {
		switch v {
		case 0:
			return 0
		case present:
			return presentVersion
		case backup:
			return backupVersion
		default:
			return oldVersion
		}
	}
	w.version = renamed(present)
	if w.backed {
		w.backup.version = renamed(backup)
	}
	if !w.backed {
		w.backup = saved{}
	}
	for i := range w.owners {
		o := &w.owners[i]
		if o.mode == gone {
			w.gone |= o.own | o.past
			o.own, o.past, o.state, w.behind[i], w.mine[i] = 0, 0, State{}, false, false
		}
		o.state.Known.Version = renamed(o.state.Known.Version)
		for k := range o.flights {
			f := &o.flights[k]
			matters := f.write.IfVersion == present || w.backed && f.write.IfVersion == backup
			if f.awaited = f.awaited && o.mode != gone; f.fate == sent && !matters {
				f.fate = wasRefused
			}
			switch {
			case f.fate == none, f.fate != sent && !f.awaited:
				*f = flight{}
			case f.fate == wasRefused:
				*f = flight{fate: wasRefused, awaited: true}
			default:
				f.version, f.write.IfVersion = renamed(f.version), renamed(f.write.IfVersion)
			}
		}
		if f := &o.flights; f[0].fate == none && f[1].fate != none {
			f[0], f[1] = f[1], f[0]
		}
	}
}

// explore visits every world that can be reached, breadth first, and stops at the first in which a number is reserved
// twice, or is lost without a good reason.
func explore(sc scope, visited func(m move, from, to *world)) (worlds int, violation string) {
	type step struct {
		from int32
		move
	}
	seeds := [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}
	key := func(w *world) [2]uint64 {
		return [2]uint64{maphash.Comparable(seeds[0], *w), maphash.Comparable(seeds[1], *w)}
	}
	first := world{saved: saved{author: -1}}
	seen := map[[2]uint64]struct{}{key(&first): {}}
	steps := []step{{}} // how each world was reached, for the trace
	level, number := []world{first}, []int32{0}
	for len(level) > 0 {
		var deeper []world
		var numbers []int32
		for i := range level {
			level[i].next(sc, func(m move, n world) {
				if violation != "" {
					return
				}
				if visited != nil {
					visited(m, &level[i], &n)
				}
				n.canonical()
				k := key(&n)
				if _, ok := seen[k]; ok {
					return
				}
				seen[k] = struct{}{}
				steps = append(steps, step{number[i], m})
				deeper, numbers = append(deeper, n), append(numbers, int32(len(steps)-1))
				if violation = n.violation; violation == "" && !n.crashed && !n.lost && n.unaccounted(sc.limits) != 0 {
					violation = fmt.Sprintf("of the numbers to %d nobody can give %b any more", n.record.Last,
						n.unaccounted(sc.limits))
				}
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
	{owners: 2, sizes: []int64{1, 2}, limits: Limits{After: 1, Last: 6}},
	{owners: 2, sizes: []int64{1}, limits: Limits{Last: 3}, crashes: true, unsure: true},
	{owners: 2, sizes: []int64{2}, limits: Limits{Last: 3}, unsure: true, losses: true, operator: true},
}

// largeScopes take minutes.
var largeScopes = []scope{
	{owners: 3, sizes: []int64{1}, limits: Limits{Last: 3}},
	{owners: 2, sizes: []int64{1, 2}, limits: Limits{Last: 3}, crashes: true, losses: true, operator: true},
	{owners: 3, sizes: []int64{1}, limits: Limits{Last: 2}, unsure: true},
}

func TestNoNumberIsReservedTwice(t *testing.T) { noNumberIsReservedTwice(t, scopes) }

func TestNoNumberIsReservedTwiceByMany(t *testing.T) {
	testenv.Exploration(t)
	noNumberIsReservedTwice(t, largeScopes)
}

func noNumberIsReservedTwice(t *testing.T, scopes []scope) {
	for _, sc := range scopes {
		reached, left := map[Phase]int{}, 0
		worlds, violation := explore(sc, func(_ move, _, to *world) {
			for _, o := range to.owners {
				reached[o.state.Phase]++
			}
			if to.left != 0 {
				left++
			}
		})
		t.Logf("%+v: %d worlds", sc, worlds)
		if violation != "" {
			t.Fatalf("%+v: after %d worlds:\n%s", sc, worlds, violation)
		}
		for p := Reading; p <= Released; p++ {
			if lossy := p == Losing || p == Lost; reached[p] == 0 && (!lossy || sc.losses) {
				t.Errorf("%+v: no owner was ever %s", sc, p)
			}
		}
		if left == 0 {
			t.Errorf("%+v: nothing was ever left", sc)
		}
	}
}
