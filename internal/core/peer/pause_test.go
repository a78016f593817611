//go:build pausepoints

package peer

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

// A process may stop between any two statements on the way to an ID, for longer than its lease and its window,
// while another member takes over its only node ID, or while it gives that back itself. No ID repeats, none of
// its later IDs lies in its successor's time, and it goes on afterwards.
//
// Run it with: go run ./internal/test/pauses
func TestPausedAtEveryPoint(t *testing.T) {
	layout := oneNode
	var points []string
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a", onOneNode)
		a.ready(time.Second)
		firn.PausePoint = func(point string) {
			if !slices.Contains(points, point) {
				points = append(points, point)
			}
		}
		defer func() { firn.PausePoint = func(string) {} }()
		for range 5000 { // more than a tick has, so that it also runs ahead
			if err := a.take(); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		a.fillOne()
	})
	if len(points) < 20 {
		t.Fatalf("there are only %d points: %v", len(points), points)
	}
	t.Logf("%d points", len(points))

	next := func(n *node) (firn.ID, error) { return n.Next(n.world.t.Context()) }
	var own *Local // of the caller that is paused
	local := func(n *node) (firn.ID, error) { return own.Next(n.world.t.Context()) }
	takes := map[string]func(*node) (firn.ID, error){
		"Next":                      next,
		"Fill":                      (*node).fillOne,
		"Local":                     local,
		"Next, by a ticking clock":  next,
		"Fill, by a ticking clock":  (*node).fillOne,
		"Local, by a ticking clock": local,
	}
	// What happens meanwhile, and who then owns the node ID.
	happens := map[string]func(a *node) (successor *node){
		"is frozen": func(a *node) *node {
			a.client.CutOff(true)
			return a.world.start("b", onOneNode)
		},
		"leaves": func(a *node) *node {
			a.leave()
			return a.world.start("b", onOneNode)
		},
		"loses its session": func(a *node) *node {
			a.world.service.Expire(a.session())
			time.Sleep(time.Millisecond)
			return a
		},
	}
	given, refused := 0, 0
	for _, point := range points {
		for name, take := range takes {
			for what, happen := range happens {
				inBubble(t, func(t *testing.T, w *world) {
					a := w.start("a", onOneNode)
					a.ready(time.Second)
					time.Sleep(5 * time.Millisecond)
					own = a.seq.Load().Local()
					if strings.HasSuffix(name, "ticking clock") {
						for range 1000 { // so many at once that the clock ticks, and the Local has batches
							if _, err := own.Next(t.Context()); err != nil {
								t.Fatal(err)
							}
							if err := a.take(); err != nil {
								t.Fatal(err)
							}
						}
					}

					paused, resume := make(chan struct{}), make(chan struct{})
					goOn := sync.OnceFunc(func() { close(resume) })
					defer goOn()
					armed := true
					firn.PausePoint = func(p string) {
						if armed && p == point {
							armed = false
							close(paused)
							<-resume
						}
					}
					defer func() { firn.PausePoint = func(string) {} }()
					type result struct {
						id  firn.ID
						err error
					}
					results := make(chan result, 1)
					go func() {
						id, err := take(a)
						results <- result{id, err}
					}()
					select {
					case <-paused:
					case r := <-results: // this way to an ID does not go through the point
						if r.err != nil {
							t.Fatalf("%s, not paused: %v", name, r.err)
						}
						return
					}
					armed = false
					b := happen(a)
					b.ready(ttl + 2*window)
					b.serves(time.Second)
					goOn()
					r := <-results
					b.serves(time.Second)
					switch {
					case r.err == nil:
						given++
						if w.given[r.id] != "" {
							t.Errorf("%s at %q while it %s: %d was given by %s", name, point, what, r.id, w.given[r.id])
						}
						p, _ := layout.Decompose(r.id)
						next := b.seq.Load().status.Load().latest().fence
						if ends := layout.TickStart(p.Tick + 1); ends.After(next.Floor()) {
							t.Errorf("%s at %q while it %s: %d ends at %v, after the successor's floor %v", name, point, what,
								r.id, ends, next.Floor())
						}
					case errors.Is(r.err, ErrNotReady):
						refused++
					default:
						t.Errorf("%s at %q while it %s: %v", name, point, what, r.err)
					}
					if what == "is frozen" {
						b.leave()
						a.client.CutOff(false)
						a.ready(ttl + window)
					}
				})
			}
		}
	}
	t.Logf("afterwards %d IDs were given, and %d calls refused", given, refused)
	if given == 0 || refused == 0 {
		t.Error("one of the two never happened")
	}
}

// fillOne takes one ID as a batch.
func (n *node) fillOne() (firn.ID, error) {
	ids := make([]firn.ID, 1)
	err := n.Fill(n.world.t.Context(), ids)
	return ids[0], err
}
