package cluster

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
)

// exploration is all the worlds that can be reached, and what leads from one to another.
type exploration struct {
	model
	names  bool // worlds that differ only in the names of the IDs are two
	first  world
	worlds []world
	from   []int32 // the world from which each was found first
	dues   []int32 // where what is due leads, world by world: without what changes nothing
	ends   []int32 // where the dues of each world end
	good   int
	flags  live // that a peer ever had

	seed    maphash.Seed
	numbers []int32 // those of the worlds, plus one, by hash
}

// violation is a promise that was broken, and the shortest way there.
type violation struct {
	what  string
	steps int
	trace string
}

func (v *violation) String() string {
	return fmt.Sprintf("%s\n%s, after %d steps", v.trace, v.what, v.steps)
}

// explore visits every world that can be reached, breadth first, and returns the first violation of the promises, or
// nothing.
//
// The promise about the end is that no fair run forever avoids the good worlds, in which no peer owes anything. A
// run is fair if a peer that from some time on can always do what is due does it. The budgets are for what is not
// due, so that from some time on a run consists only of what is due. What is due and changes nothing leaves the
// world as it is. All other dues are the edges of a graph, of which two things are checked:
//
//   - It has no cycle. So after finitely many edges a run stays in one world.
//   - Each world that is not good has an edge. Then that is due in it as long as the run stays, and no fair
//     run stays. (Whether a command changes anything does not depend on its position: what is due leads away from a
//     world whichever way it goes, or never.)
//
// Together they say that every fair run ends in a good world, whatever happens in which order. With that, a good
// world can be reached from each, too.
func explore(sc scope, r rules) (*exploration, *violation) {
	x := &exploration{model: model{table: newTable(r), scope: sc}}
	return x, x.explore()
}

func (x *exploration) explore() *violation {
	x.begin()
	for i := int32(0); int(i) < len(x.worlds); i++ {
		w, dues := x.worlds[i], len(x.dues)
		x.visit = func(_ move, next world, due bool) {
			if next == w {
				return
			}
			to := x.add(x.reduced(next), i)
			if due && !slices.Contains(x.dues[dues:], to) {
				x.dues = append(x.dues, to)
			}
		}
		x.next(w)
		x.ends = append(x.ends, int32(len(x.dues)))
		for _, p := range w.peers {
			x.flags |= p
		}
		if x.broken != "" {
			return x.violation(i, x.broken)
		}
		if x.model.good(&w) {
			x.good++
		} else if len(x.dues) == dues {
			return x.violation(i, "a peer owes something, and no peer has anything to do")
		}
	}
	if different := x.alike(); different != "" {
		return &violation{what: different}
	}
	if at := x.cycle(); at >= 0 {
		return x.violation(at, "from here a run may go in a circle forever")
	}
	return nil
}

// begin makes the world in which nothing has happened.
func (x *exploration) begin() {
	var v Value
	if x.nodes > 0 {
		v, _ = Apply(v, Entry{
			Position: 1,
			Command:  CreateSequencer{Sequencer: watchedSequencer, Definition: small(x.nodes, Allocation{})},
		})
	}
	if x.policy {
		v, _ = Apply(v,
			Entry{Position: 2, Command: CreateSequencer{Sequencer: "other", Definition: small(x.nodes, Allocation{})}})
		v, _ = Apply(v, Entry{Position: 3, Command: SetPolicy{[]Share{{watchedSequencer, 50}, {"other", 50}}}})
	}
	x.first = world{base: x.number(v), late: noEntry, left: x.budget}
	for id := range x.peers {
		x.first.peers[id] = running | pulsing
	}
	x.seed = maphash.MakeSeed()
	x.add(x.reduced(x.first), -1)
}

func (x *exploration) reduced(w world) world {
	if x.names {
		x.fold(&w)
		return w
	}
	return x.canonical(w)
}

// add returns the number of a world, which may be new.
func (x *exploration) add(w world, from int32) int32 {
	if 4*len(x.worlds) >= 3*len(x.numbers) {
		x.numbers = make([]int32, max(1024, 2*len(x.numbers)))
		for i := range x.worlds {
			*x.slot(&x.worlds[i]) = int32(i) + 1
		}
	}
	slot := x.slot(&w)
	if *slot == 0 {
		x.worlds = append(x.worlds, w)
		x.from = append(x.from, from)
		*slot = int32(len(x.worlds))
	}
	return *slot - 1
}

// slot is where the number of a world is, or is to be.
func (x *exploration) slot(w *world) *int32 {
	mask := uint64(len(x.numbers) - 1)
	at := maphash.Comparable(x.seed, *w) & mask
	for x.numbers[at] != 0 && x.worlds[x.numbers[at]-1] != *w {
		at = (at + 1) & mask
	}
	return &x.numbers[at]
}

// cycle finds a world from which what is due leads back to it, or returns -1.
func (x *exploration) cycle() int32 {
	const white, grey, black = 0, 1, 2
	colours := make([]uint8, len(x.worlds))
	next := make([]int32, len(x.worlds)) // the due to follow next
	for i := range next {
		if i > 0 {
			next[i] = x.ends[i-1]
		}
	}
	var path []int32
	for root := range x.worlds {
		if colours[root] != white {
			continue
		}
		colours[root] = grey
		path = append(path, int32(root))
		for len(path) > 0 {
			at := path[len(path)-1]
			if next[at] == x.ends[at] {
				colours[at] = black
				path = path[:len(path)-1]
				continue
			}
			to := x.dues[next[at]]
			next[at]++
			switch colours[to] {
			case grey:
				return to
			case white:
				colours[to] = grey
				path = append(path, to)
			}
		}
	}
	return -1
}

// alike checks that values that were taken for the same, though reached in different ways, went on in the same way.
func (x *exploration) alike() string {
	for i := 0; i < len(x.values); i++ {
		k := x.values[i]
		if k.other == nil {
			continue
		}
		for e, n := range k.next {
			if n == unknown {
				continue
			}
			if other := keyOf(x.applied(*k.other, entry(e<<3))); other != x.values[n].key {
				return fmt.Sprintf("%s and %s look the same; %v leads one to %s, the other to %s",
					k.value, k.other, entry(e<<3).command(), x.values[n].key, other)
			}
		}
	}
	return ""
}

// violation tells how a world was reached, from the beginning, each ID keeping its letter.
func (x *exploration) violation(to int32, what string) *violation {
	var path []int32
	for at := to; at > 0; at = x.from[at] {
		path = append(path, at)
	}
	slices.Reverse(path)
	at := x.first
	var lines []string
	apply := ""
	for _, i := range path {
		found := false
		x.visit = func(m move, next world, _ bool) {
			if found || x.reduced(next) != x.worlds[i] {
				return
			}
			found = true
			x.fold(&next)
			at = next
			if m.what == "applies" {
				apply += " " + letters[m.who]
				return
			}
			if apply != "" {
				lines = append(lines, "  apply an entry each:"+apply)
			}
			apply = ""
			lines = append(lines, "  "+m.String(), x.describe(&next))
		}
		x.next(at)
	}
	if apply != "" {
		lines = append(lines, "  apply an entry each:"+apply, x.describe(&at))
	}
	return &violation{what, len(path), strings.Join(lines, "\n")}
}
