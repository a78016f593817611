package plan

import (
	"slices"
	"strings"
)

// visitor is called with what can happen next, the world that it leads to, and what is wrong with that.
type visitor[W any] func(what string, n W, broken string)

// explore visits every world that can be reached, breadth first, and stops at the first that is broken: violation is
// then the way there.
func explore[W comparable](begin []W, next func(W, visitor[W])) (worlds []W, violation string) {
	type origin struct {
		from int32
		what string
	}
	seen := map[W]struct{}{}
	var origins []origin
	add := func(w W, from int32, what string) {
		if _, ok := seen[w]; !ok {
			seen[w] = struct{}{}
			worlds, origins = append(worlds, w), append(origins, origin{from, what})
		}
	}
	for _, w := range begin {
		add(w, -1, "")
	}
	for i := 0; i < len(worlds) && violation == ""; i++ {
		next(worlds[i], func(what string, n W, broken string) {
			if broken == "" || violation != "" {
				add(n, int32(i), what)
				return
			}
			trace := []string{broken, what}
			for at := int32(i); at >= 0; at = origins[at].from {
				trace = append(trace, origins[at].what)
			}
			slices.Reverse(trace)
			violation = strings.Join(trace, "\n")
		})
	}
	return worlds, violation
}
