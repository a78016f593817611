package cluster

import (
	"fmt"
	"slices"
	"strings"
)

// exploration is all the worlds that can be reached, and what leads from one to another.
type exploration struct {
	model
	first  world
	worlds []world
	from   []int32 // the world from which each was found first
	dues   []int32 // where what is due leads, world by world: without what changes nothing
	ends   []int32 // where the dues of each world end
	good   int
}

// explore visits every world that can be reached, breadth first, and returns the first violation of the promises as a
// trace, or nothing.
//
// The promise about what happens in the end is that no fair run avoids the good worlds for ever, where nobody owes
// anything. A run is fair if a peer that from some time on can always do what is due does it. The budgets are for what
// is not due, so that from some time on a run consists only of what is due. What is due and changes nothing leaves the
// world as it is. All other dues are the edges of a graph, of which two things are checked:
//
//   - It has no cycle. So after finitely many edges a run stays in one world.
//   - Each world that is not good has an edge. Then that is due in it as long as the run stays, and no fair
//     run stays.
//
// Together they say that every fair run ends in a good world, whatever happens in which order. With that, a good
// world can be reached from each, too.
func explore(sc scope, r rules) (x *exploration, violation string) {
	x = &exploration{}
	x.model = model{table: newTable(r), scope: sc, visit: nil}
	x.start0()
	seen := map[world]int32{}
	add := func(w world, from int32) int32 {
		at, ok := seen[w]
		if !ok {
			at = int32(len(x.worlds))
			seen[w] = at
			x.worlds = append(x.worlds, w)
			x.from = append(x.from, from)
		}
		return at
	}
	add(x.canonical(x.first), -1)
	for i := 0; i < len(x.worlds); i++ {
		w := x.worlds[i]
		before, dues := w, len(x.dues)
		x.visit = func(_ move, next world, due bool) {
			if next == before {
				return
			}
			to := add(x.canonical(next), int32(i))
			if due && !slices.Contains(x.dues[dues:], to) {
				x.dues = append(x.dues, to)
			}
		}
		x.next(w)
		x.ends = append(x.ends, int32(len(x.dues)))
		if x.broken != "" {
			return x, x.trace(int32(i)) + "\n" + x.broken
		}
		if x.model.good(&w) {
			x.good++
		} else if len(x.dues) == dues {
			return x, x.trace(int32(i)) + "\nand nobody can do anything about it"
		}
	}
	if broken := x.alike(); broken != "" {
		return x, broken
	}
	if at := x.cycle(); at >= 0 {
		return x, x.trace(at) + "\nand around in a circle"
	}
	return x, ""
}

// start0 is the world in which nothing has happened.
func (x *exploration) start0() {
	var v Value
	if x.nodes > 0 {
		v, _ = Apply(v, Entry{1, CreateSequencer{watchedSequencer, small(x.nodes, Allocation{})}})
	}
	x.first = world{base: x.number(v), late: noEntry, left: x.budget}
	for id := range x.peers {
		x.first.peers[id] = running | pulsing
	}
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

// trace tells how a world was reached, from the beginning, each ID keeping its letter.
func (x *exploration) trace(to int32) string {
	var path []int32
	for at := to; at > 0; at = x.from[at] {
		path = append(path, at)
	}
	slices.Reverse(path)
	at := x.first
	lines := []string{x.describe(&at)}
	for _, i := range path {
		found := false
		x.visit = func(m move, next world, _ bool) {
			if !found && x.canonical(next) == x.worlds[i] {
				found = true
				line := "  " + m.String()
				x.fold(&next)
				if m.what != "applies" {
					line += "\n" + x.describe(&next)
				}
				lines = append(lines, line)
				at = next
			}
		}
		x.next(at)
		if !found {
			return "a trace that can't be told"
		}
	}
	return fmt.Sprintf("%s\nat last, after %d steps: %s", strings.Join(lines, "\n"), len(path), x.describe(&at))
}
