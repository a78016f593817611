package peer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/clocks"
	"github.com/firn-id/firn/store/memstore"
)

// off is a clock that is off from the beginning.
func off(d time.Duration) func(*setup) {
	return func(s *setup) {
		w := new(wall)
		w.step(d)
		s.wall = w
		s.Clock = firn.NewSteadyClockFrom(0, w.read)
	}
}

// out checks that a node refuses for its clock, and with which numbers.
func (n *node) out(want string) {
	n.world.t.Helper()
	var clock *ClockError
	s := n.seq.Load()
	if s == nil {
		n.world.t.Fatalf("%s has not attached: %v", n.name, n.err)
	}
	_, err := s.Next(n.world.t.Context())
	if ready := s.Ready(); !errors.As(err, &clock) || !errors.Is(err, ErrNotReady) ||
		!strings.Contains(err.Error(), want) || !errors.As(ready, &clock) {
		n.world.t.Errorf("%s: %v, and Ready says %v; want %q", n.name, err, ready, want)
	}
}

// believes waits until a node's verdict on its clock is of this kind.
func (n *node) believes(kind clocks.Kind, within time.Duration) {
	n.world.t.Helper()
	for deadline := time.Now().Add(within); n.mem.Load().judged().Kind != kind; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			n.world.t.Fatalf("%s: the verdict is %v after %v; want %v", n.name,
				n.mem.Load().judged().Verdict, within, kind)
		}
	}
}

// All clocks step together: no caller notices, no node ID changes, no ID comes again, and IDs follow a step ahead.
func TestAllClocksStepTogether(t *testing.T) {
	for _, size := range []int{1, 2, 3, 5, 40} {
		for _, step := range []time.Duration{time.Minute, time.Hour, -time.Hour, -time.Minute} {
			t.Run(fmt.Sprintf("%d by %v", size, step), func(t *testing.T) {
				inBubble(t, func(t *testing.T, w *world) {
					var all []*node
					for i := range size {
						all = append(all, w.start(fmt.Sprint("n", i)))
					}
					held := map[*node]int64{}
					for _, n := range all {
						n.ready(time.Minute)
						held[n] = n.seq.Load().State().Node
					}
					time.Sleep(window)
					before := w.value().Entries()
					for _, n := range all {
						n.wall.step(step)
					}
					for end := time.Now().Add(2 * window); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
						for _, n := range all {
							if err := n.take(); err != nil || n.mem.Load().judged().Out() {
								t.Fatalf("%s: %v; its clock is %v", n.name, err, n.mem.Load().judged())
							}
						}
					}
					for _, n := range all {
						if s := n.seq.Load().State(); s.Node != held[n] || s.Phase != Attached {
							t.Errorf("%s had node ID %d, and is %v", n.name, held[n], s)
						}
						p, _ := n.seq.Load().Parts(n.last)
						if lag := time.Now().Add(step).Sub(layout.TickStart(p.Tick)); step > 0 &&
							lag.Abs() > time.Second {
							t.Errorf("IDs of %s are %v away from the wall", n.name, lag)
						}
					}
					if asked := w.value().Entries() - before; asked > int64(max(2*size, 10)) && asked > 30 {
						t.Errorf("%d members asked %d times", size, asked)
					}
				})
			})
		}
	}
}

// A node that is wrong joins right ones: it is refused with the numbers, and they serve on; set right, it serves within
// 5 s.
func TestAWrongClockJoins(t *testing.T) {
	for _, c := range []struct {
		off  time.Duration
		want string
	}{
		{time.Hour, "this clock is 1h0m ahead of 3 of 3 others"},
		{-time.Hour, "this clock is 1h0m behind 3 of 3 others"},
		{2 * time.Hour, "this clock is 2h0m ahead of 3 of 3 others"},
		{11100 * time.Millisecond, "this clock is 11.1s ahead of 3 of 3 others"},
		{9 * time.Second, ""},
		{-9 * time.Second, ""},
	} {
		t.Run(c.off.String(), func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				right := []*node{w.start("a"), w.start("b"), w.start("c")}
				for _, n := range right {
					n.ready(time.Second)
				}
				wrong := w.start("wrong", off(c.off))
				<-wrong.done
				if c.want == "" {
					wrong.ready(time.Second)
					return
				}
				since := wrong.mem.Load().vitals(nil).VerdictSince
				for range 10 {
					wrong.out(c.want)
					time.Sleep(window / 3)
					if v := wrong.mem.Load().vitals(nil); !v.VerdictSince.Equal(since) || !v.Judged.After(since) {
						t.Errorf("judged at %v, wrong since %v; want %v for all", v.Judged, v.VerdictSince, since)
					}
					for _, n := range right {
						n.serves(10 * time.Millisecond)
					}
				}
				wrong.wall.step(-c.off)
				wrong.ready(5 * time.Second)
				if v := wrong.mem.Load().vitals(nil); time.Since(v.VerdictSince) > 5*time.Second {
					t.Errorf("right since %v", v.VerdictSince)
				}
				p, _ := wrong.seq.Load().Parts(wrong.last)
				if late := time.Since(layout.TickStart(p.Tick)).Abs(); late > time.Second {
					t.Errorf("set right, its IDs are %v off", late)
				}
				for _, n := range right {
					n.serves(2 * window)
				}
			})
		})
	}
}

// The first node is late: two right ones are served, and the one is told.
func TestTheFirstClockIsWrong(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, time.Hour} {
		inBubble(t, func(t *testing.T, w *world) {
			first := w.start("first", off(by))
			first.ready(time.Second)
			second := w.start("second")
			second.ready(5 * time.Second)
			second.believes(clocks.Tied, time.Second)
			third := w.start("third")
			third.ready(5 * time.Second)
			time.Sleep(2 * window)
			second.serves(window)
			third.serves(window)
			first.out("1h0m")
			first.out("2 of 2 others")
			second.believes(clocks.Agreed, 0)
			if by < 0 { // its IDs need not wait for the clock
				first.wall.step(-by)
				first.ready(5 * time.Second)
			}
		})
	}
}

// Two halves an hour apart: all are believed, and serve.
func TestTwoHalves(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.two()
		c, d := w.start("c", off(time.Hour)), w.start("d", off(time.Hour))
		c.ready(10 * time.Second) // of three it was refused
		d.ready(10 * time.Second)
		for _, n := range []*node{a, b, c, d} {
			n.believes(clocks.Tied, window)
			n.serves(window)
		}
	})
}

// One steps and is set right again, by more and by less than what is reserved: the others never notice.
func TestOneClockSteps(t *testing.T) {
	for _, step := range []time.Duration{time.Hour, -time.Hour, time.Minute, -time.Minute} {
		inBubble(t, func(t *testing.T, w *world) {
			a, b := w.two()
			c := w.start("c")
			c.ready(time.Second)
			c.wall.step(step)
			c.believes(map[bool]clocks.Kind{true: clocks.Ahead, false: clocks.Behind}[step > 0], 5*time.Second)
			a.serves(2 * window)
			b.serves(time.Second)
			c.out("2 of 2 others")
			c.wall.step(-step)
			c.ready(5 * time.Second)
			c.serves(window)
		})
	}
}

// Storms of small steps: nobody is refused.
func TestStormsOfSmallSteps(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.two()
		c := w.start("c")
		c.ready(time.Second)
		for i := range 60 {
			for j, n := range []*node{a, b, c} {
				n.wall.step([]time.Duration{2 * time.Second, -2 * time.Second}[(i+j)%2])
				n.serves(500 * time.Millisecond)
			}
		}
	})
}

// What the dead said, or those that are cut off, refuses nobody: only the living are asked.
func TestOnlyTheLivingJudge(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.two()
		c := w.start("c")
		c.ready(time.Second)
		a.client.CutOff(true)
		b.client.CutOff(true)
		c.wall.step(time.Hour)
		c.serves(2 * ttl)
		a.wall.step(time.Hour)
		b.wall.step(time.Hour)
		a.client.CutOff(false)
		b.client.CutOff(false)
		a.ready(window)
		b.ready(window)
		c.serves(window)
	})
}

// A pulse that its dead owner writes no more says nothing about the clock of those who read it; that of a living one
// does.
func TestTheAgeOfAPulseIsNoOffset(t *testing.T) {
	for _, size := range []int{5, 6, 12} { // of the last one, each reads a few
		inBubble(t, func(t *testing.T, w *world) {
			var all []*node
			for i := range size {
				all = append(all, w.start(fmt.Sprint("n", i)))
			}
			all[0].wall.step(4 * time.Second)
			for _, n := range all {
				n.ready(time.Minute)
			}
			time.Sleep(10 * window)
			check := func(n *node, least, most time.Duration) {
				t.Helper()
				if off := n.mem.Load().Vitals().Offset; off < least || off > most {
					t.Errorf("of %d members: %s says that its clock is off by %v", size, n.name, off)
				}
			}
			check(all[0], 2*time.Second, 5*time.Second)
			all[1].client.CutOff(true)
			for range 2 * window / time.Second {
				time.Sleep(time.Second)
				for _, n := range all[2:] {
					check(n, -time.Second, time.Second)
				}
			}
			check(all[0], 2*time.Second, 5*time.Second)
		})
	}
}

// Comparing clocks costs each member of a crowd few reads, whatever its size and its window, and no writes.
func TestACrowdComparesClocks(t *testing.T) {
	testACrowdComparesClocks(t, window)
	testACrowdComparesClocks(t, 4*window)
}

func testACrowdComparesClocks(t *testing.T, of time.Duration) {
	t.Helper()
	inBubble(t, func(t *testing.T, w *world) {
		const size = 30
		var lists, gets, commits atomic.Int64
		var all []*node
		for i := range size {
			n := w.start(fmt.Sprint("n", i), func(s *setup) { s.Window = of })
			all = append(all, n)
		}
		for _, n := range all {
			n.ready(time.Minute)
			n.client.Inject(func(c memstore.Call) memstore.Fault {
				switch c.Op {
				case memstore.List:
					lists.Add(1)
				case memstore.Get:
					gets.Add(1)
				case memstore.Commit:
					commits.Add(1)
				}
				return memstore.Fault{}
			})
		}
		before := w.value().Entries()
		time.Sleep(of)
		times := int64(of / window)
		minutes := 2 * (times - 1) // of the history, for which one member lists all pulses
		if lists.Load() > minutes || gets.Load() > times*4*5*size || commits.Load() > times*4*size ||
			w.value().Entries() != before {
			t.Errorf("%d members in a window of %v: %d lists, %d gets, %d transactions, %d entries",
				size, of, lists.Load(), gets.Load(), commits.Load(), w.value().Entries()-before)
		}
	})
}

// A member can leave while it waits for the clocks of others.
func TestLeaveWhileClocksAreCompared(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.two()
		b.client.CutOff(true)
		late := w.start("late", off(-time.Hour))
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		select {
		case <-late.done:
		case <-ctx.Done():
		}
		late.stop()
		a.serves(time.Second)
	})
}

// Two members ask for clocks at once, of which one takes the other's question for its own. Each hears the other.
func TestTwoAskAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.two()
		for range 20 {
			var all sync.WaitGroup
			for _, n := range []*node{a, b} {
				all.Go(func() {
					if answers, err := n.mem.Load().judge.ask(t.Context(), 10); len(answers) != 1 || err != nil {
						t.Errorf("%s hears %d answers, %v; want that of the other one", n.name, len(answers), err)
					}
				})
			}
			all.Wait()
		}
	})
}
