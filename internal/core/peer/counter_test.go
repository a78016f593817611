package peer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/floor"
	"github.com/firn-id/firn/internal/base/reason"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/counter"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

var invoices = cluster.Definition{Kind: cluster.Counter}

// counter returns the node's counter.
func (n *node) counter() *Counter {
	n.world.t.Helper()
	c, err := n.mem.Load().EnsureCounter(n.world.t.Context(), "invoices", invoices)
	if err != nil {
		n.world.t.Fatal(err)
	}
	return c
}

// oneByOne has blocks of one number.
func oneByOne(s *setup) { s.Pace = counter.Pace{Largest: 1} }

func (w *world) ready(names ...string) (nodes []*node) {
	w.t.Helper()
	for _, name := range names {
		nodes = append(nodes, w.start(name, oneByOne))
		nodes[len(nodes)-1].ready(time.Second)
	}
	return nodes
}

// gives takes numbers one by one.
func (w *world) gives(c *Counter, want ...firn.ID) {
	w.t.Helper()
	var have []firn.ID
	for range want {
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
		id, err := c.Next(ctx)
		cancel()
		if err != nil {
			w.t.Fatal(err)
		}
		have = append(have, id)
		synctest.Wait() // until the next block is there
	}
	if !slices.Equal(have, want) {
		w.t.Errorf("%v, want %v", have, want)
	}
}

// gone waits until a counter gives no more numbers for a reason.
func (w *world) gone(c *Counter, why string, within time.Duration) error {
	w.t.Helper()
	for end := time.Now().Add(within); ; time.Sleep(10 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Millisecond)
		_, err := c.Next(ctx)
		cancel()
		if err != nil && errors.Is(err, ErrNotReady) && reason.Of(err) == why {
			return err
		}
		if time.Now().After(end) {
			w.t.Fatalf("%v (%s); want %s", err, reason.Of(err), why)
		}
	}
}

func (w *world) reserved() counter.Record {
	w.t.Helper()
	v, _, err := counter.Read(w.t.Context(), w.service.Client("observer"), counter.Key("invoices"))
	if err != nil {
		w.t.Fatal(err)
	}
	return v.Record
}

// puts changes the store, of which it tells no member.
func (w *world) puts(op store.Op) {
	w.t.Helper()
	if _, err := w.service.Client("outside").Commit(w.t.Context(), store.Txn{Then: []store.Op{op}}); err != nil {
		w.t.Fatal(err)
	}
}

func TestMembersGiveDenseNumbers(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		nodes := w.ready("a", "b")
		a, b := nodes[0].counter(), nodes[1].counter()
		if w.reserved().Last != 0 {
			t.Errorf("%+v before anybody asks", w.reserved())
		}
		if nodes[0].counter() != a || a.Name() != "invoices" || a.Definition() != invoices {
			t.Error("another handle")
		}
		w.gives(a, 1, 2)
		w.gives(b, 4, 5) // a has the 3
		w.gives(a, 3, 7)
		if a.Counting().Reserved != 8 {
			t.Errorf("a has reserved up to %d", a.Counting().Reserved)
		}
		ids := make([]firn.ID, 4)
		if err := a.Fill(t.Context(), ids); err != nil || !slices.Equal(ids, []firn.ID{8, 9, 10, 11}) {
			t.Errorf("%v %v", ids, err)
		}
		synctest.Wait()
		nodes[0].leave()
		if last := w.reserved().Last; last != 11 {
			t.Errorf("it ends at %d after a has left; want 11", last)
		}
		if _, err := a.Next(t.Context()); !errors.Is(err, ErrNotReady) || !errors.Is(err, errLeft) {
			t.Errorf("%v after it has left", err)
		}
		if _, err := nodes[0].mem.Load().OpenCounter(t.Context(), "invoices"); !errors.Is(err, errLeft) {
			t.Errorf("%v after it has left", err)
		}
		w.gives(b, 6, 12)
		if err := b.Detach(t.Context()); err != nil || w.reserved().Last != 12 {
			t.Errorf("%v, it ends at %d after b has detached", err, w.reserved().Last)
		}
		if _, err := b.Next(t.Context()); !errors.Is(err, ErrDetached) {
			t.Errorf("%v after it has detached", err)
		}
		again, err := nodes[1].mem.Load().OpenCounter(t.Context(), "invoices")
		if err != nil {
			t.Fatal(err)
		}
		w.gives(again, 13)
	})
}

// Where the numbers that follow are another member's, those left before them are too few, and nobody gets them.
func TestMembersGiveConsecutiveNumbers(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		nodes := w.ready("a", "b")
		a, b := nodes[0].counter(), nodes[1].counter()
		take := func(c *Counter, n int64, want firn.ID) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if last, err := c.Take(ctx, n); err != nil || last != want {
				t.Errorf("%d are up to %d, %v; want %d", n, last, err, want)
			}
			synctest.Wait() // until the next block is there
		}
		take(a, 3, 3) // and a has the 4
		take(b, 2, 6) // and b has the 7
		take(a, 2, 9)
		w.gives(b, 7)
		nodes[0].client.CutOff(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if last, err := a.Take(ctx, 100); last != 0 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%d %v, want that the store does not answer", last, err)
		}
		w.gives(a, 10)
		nodes[0].client.CutOff(false)
		if err := a.Detach(t.Context()); err != nil {
			t.Fatal(err)
		}
		if last, err := a.Take(t.Context(), 1); last != 0 || !errors.Is(err, ErrNotReady) ||
			!errors.Is(err, ErrDetached) {
			t.Errorf("%d %v after it has detached", last, err)
		}
	})
}

// A member that is cut off gives what it has, then says what is wrong with the store, and goes on by itself.
func TestACounterWithoutItsStore(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		n := w.ready("a")[0]
		c := n.counter()
		w.gives(c, 1)
		n.client.CutOff(true)
		w.gives(c, 2)
		for range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			_, err := c.Next(ctx)
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, store.ErrAmbiguous) {
				t.Errorf("%v; want that the store does not answer", err)
			}
			time.Sleep(time.Minute)
		}
		if _, err := c.Next(t.Context()); !errors.Is(err, ErrNotReady) {
			t.Errorf("%v at once; want that it is not ready", err)
		}
		n.client.CutOff(false)
		time.Sleep(10 * time.Second)
		w.gives(c, 3, 4)
	})
}

func TestACounterIsDestroyed(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		nodes := w.ready("a", "b")
		a, b := nodes[0].counter(), nodes[1].counter()
		w.gives(a, 1)
		w.gives(b, 3)
		nodes[1].client.CutOff(true)
		if err := nodes[0].mem.Load().Destroy(t.Context(), "invoices"); err != nil {
			t.Fatal(err)
		}
		w.gone(a, "unknown_sequencer", time.Second)
		again := nodes[0].counter()
		w.gives(b, 4) // it has not read the log; nobody else gets that number
		w.gives(again, 5)
		nodes[1].client.CutOff(false)
		w.gone(b, "unknown_sequencer", time.Minute)
		w.gives(nodes[1].counter(), 7)

		if err := nodes[0].mem.Load().Destroy(t.Context(), "invoices"); err != nil {
			t.Fatal(err)
		}
		_, err := nodes[0].mem.Load().EnsureSequencer(t.Context(), "invoices", cluster.Define(layout))
		const want = `the sequencer "invoices" that was destroyed was a counter, and this one is a snowflake: an ID ` +
			"could come again; want another name"
		if err == nil || err.Error() != want || reason.Of(err) != "refused" {
			t.Errorf("%v, want %s", err, want)
		}
	})
}

// A member that has not read that the counter was destroyed gives what it has reserved, and claims nothing more.
func TestNobodyClaimsOfADestroyedCounter(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		nodes := w.ready("a", "b")
		b := nodes[1].counter()
		w.gives(b, 1)
		nodes[1].client.Lag(time.Hour) // of the log's news
		if err := nodes[0].mem.Load().Destroy(t.Context(), "invoices"); err != nil {
			t.Fatal(err)
		}
		w.gives(b, 2)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if id, err := b.Next(ctx); err == nil || w.reserved().Last != 2 {
			t.Errorf("%d %v, reserved to %d; want to 2", id, err, w.reserved().Last)
		}
	})
}

func TestKindsThatDoNotGoTogether(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		m := w.ready("a")[0].mem.Load()
		w.start("other").ready(time.Second)
		for what, try := range map[string]func() error{
			`the sequencer "orders" is a snowflake; want a counter`: func() error {
				_, err := m.EnsureCounter(t.Context(), "orders", cluster.Define(layout))
				return err
			},
			`the sequencer "default" is a snowflake; want a counter`: func() error {
				_, err := m.OpenCounter(t.Context(), "default")
				return err
			},
			`resume: the sequencer "default" is a snowflake; want a counter`: func() error {
				return fmt.Errorf("resume: %w", m.ResumeCounter(t.Context(), "default", 7))
			},
			`attach: the sequencer "invoices" is a counter; want a snowflake`: func() error {
				if _, err := m.EnsureCounter(t.Context(), "invoices", invoices); err != nil {
					t.Fatal(err)
				}
				_, err := m.Attach(t.Context(), "invoices")
				return fmt.Errorf("attach: %w", err)
			},
			`the sequencer "others" is a counter; want a snowflake`: func() error {
				_, err := m.EnsureSequencer(t.Context(), "others", invoices)
				return err
			},
			`kind: snowflake is in force, counter is wanted`: func() error {
				_, err := m.EnsureCounter(t.Context(), "default", invoices)
				return err
			},
			`no such sequencer`: func() error {
				_, err := m.OpenCounter(t.Context(), "nothing")
				return err
			},
			`a counter after 9 to at most 9`: func() error {
				none := cluster.Definition{Kind: cluster.Counter, After: 9, Max: 9}
				_, err := m.EnsureCounter(t.Context(), "few", none)
				return err
			},
		} {
			if err := try(); err == nil || !strings.Contains(err.Error(), what) {
				t.Errorf("%v, want %s", err, what)
			}
		}
		if err := m.Destroy(t.Context(), "default"); err != nil {
			t.Fatal(err)
		}
		_, err := m.EnsureCounter(t.Context(), "default", invoices)
		if kind, ok := errors.AsType[*KindError](err); !ok || !kind.Destroyed {
			t.Errorf("%v, want that the IDs before may come again", err)
		}
		if err := m.ResumeCounter(t.Context(), "invoices", 7); reason.Of(err) != "refused" {
			t.Errorf("%v, want that it has not stopped", err)
		}
	})
}

func TestACounterIsExhausted(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		m := w.ready("a")[0].mem.Load()
		c, err := m.EnsureCounter(t.Context(), "few", cluster.Definition{Kind: cluster.Counter, After: 7, Max: 9})
		if err != nil {
			t.Fatal(err)
		}
		w.gives(c, 8, 9)
		w.gone(c, "exhausted", time.Second)
	})
}

// TestACounterWhoseStoreHasLostData stops everywhere, and nobody gives a number twice once an operator has said where
// to go on. The counter is in the log again.
func TestACounterWhoseStoreHasLostData(t *testing.T) {
	for name, lossOf := range losses {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				nodes := w.ready("a", "b")
				a, b := nodes[0].counter(), nodes[1].counter()
				w.gives(a, 1, 2)
				lose := lossOf(w)
				w.gives(b, 4, 5, 6, 7)
				lose()
				for i, n := range nodes {
					n.startsOver()
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					id, err := []*Counter{a, b}[i].Next(ctx)
					if reason.Of(err) != "lost" { // though it has reserved some
						t.Errorf("%d %v; want that it is lost", id, err)
					}
					cancel()
				}
				time.Sleep(2 * time.Minute) // until the floor has passed
				m := w.start("new", oneByOne)
				m.ready(time.Minute)
				w.gone(m.counter(), "lost", time.Minute)
				err := w.gone(a, "lost", time.Minute)
				if last := w.reserved().Last; last != 8 || !strings.Contains(err.Error(), "resume above") {
					t.Errorf("the record is raised to %d; want 8: %v", last, err)
				}
				if err := m.mem.Load().ResumeCounter(t.Context(), "invoices", 7); reason.Of(err) != "refused" {
					t.Errorf("%v, want it refused", err)
				}
				if err := m.mem.Load().ResumeCounter(t.Context(), "invoices", 10); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * lostEvery)
				given := map[firn.ID]bool{}
				for _, c := range []*Counter{a, b, m.counter(), a, b, m.counter()} {
					id, err := c.Next(t.Context())
					if err != nil || id <= 10 || given[id] {
						t.Errorf("%d %v after %v, and all to 10", id, err, given)
					}
					given[id] = true
					synctest.Wait()
				}
			})
		})
	}
}

// A member that gives numbers of its block needs nothing from the store for long, and is told of nothing. It sees
// within a third of the window that its numbers may come again, or that others have given some back.
func TestAMemberThatClaimsNothingLooksAtItsCounters(t *testing.T) {
	key := counter.Key("invoices")
	for what, ops := range map[string][]store.Op{
		"another era":     {floor.NewEra()},
		"no record":       {store.Delete(key)},
		"a record before": {store.Delete(key), store.Put(key, []byte(`{"last":1}`))},
	} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				c := w.ready("a")[0].counter()
				w.gives(c, 1) // it has the 2
				for _, op := range ops {
					w.puts(op)
				}
				if err := c.Ready(); err != nil {
					t.Errorf("%v before it can know", err)
				}
				time.Sleep(window/3 + time.Second)
				if id, err := c.Next(t.Context()); reason.Of(err) != "lost" {
					t.Errorf("%d %v, want that it is lost", id, err)
				}
			})
		})
	}
}

func TestAMemberSeesNumbersThatWereGivenBack(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		nodes := w.ready("a", "b")
		var all []*Counter
		for _, n := range nodes {
			c, err := n.mem.Load().EnsureCounter(t.Context(), "few", cluster.Definition{Kind: cluster.Counter, Max: 3})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, c)
		}
		w.gives(all[0], 1, 2) // it has the 3
		w.gone(all[1], "exhausted", time.Second)
		nodes[0].leave()
		time.Sleep(window/3 + time.Second)
		w.gives(all[1], 3)
	})
}

// While a living member has not noticed the loss, it may give numbers above that from which an operator has the counter
// go on.
func TestACounterInUseDoesNotResume(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		nodes := w.ready("a", "b")
		w.gives(nodes[0].counter(), 1)
		time.Sleep(window/3 + time.Second) // until its pulse says so
		w.puts(floor.NewEra())
		resume := func() error { return nodes[1].mem.Load().ResumeCounter(t.Context(), "invoices", 10) }
		const why = `the node "a" may still give numbers of the counter "invoices", as it has not noticed yet that ` +
			"the store has lost data; stop it, or wait until it has noticed"
		if err := resume(); err == nil || err.Error() != why || reason.Of(err) != "refused" {
			t.Errorf("%v, want %s", err, why)
		}
		time.Sleep(window)
		if err := resume(); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * lostEvery)
		w.gives(nodes[0].counter(), 11)
	})
}

// The node that an operator asks is not kept by its own pulse, which is from before it noticed.
func TestACounterResumesWhereTheLossWasNoticed(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		n := w.ready("a")[0]
		w.gives(n.counter(), 1)
		time.Sleep(window/3 + time.Second) // until its pulse says so
		w.puts(floor.NewEra())
		for err := error(nil); reason.Of(err) != "lost"; { // after the numbers that it had reserved
			_, err = n.counter().Next(t.Context())
		}
		if err := n.mem.Load().ResumeCounter(t.Context(), "invoices", 10); err != nil {
			t.Error(err)
		}
	})
}

// A counter that no living member has used when the store lost data stops, too.
func TestACounterThatNobodyUsesIsLost(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		nodes := w.ready("a", "b")
		a := nodes[0].counter()
		w.gives(a, 1)
		if err := a.Detach(t.Context()); err != nil {
			t.Fatal(err)
		}
		backup := w.service.Backup()
		gone := w.ready("gone")[0]
		w.gives(gone.counter(), 2)
		gone.leave()
		w.service.RollBack(backup, 0)
		nodes[0].startsOver()
		time.Sleep(2 * time.Minute)
		w.gone(nodes[0].counter(), "lost", time.Minute)
	})
}

// A copy of the process may go on with what the member has reserved, so it gives none of that.
func TestACopiedMemberDropsItsBlocks(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		n := w.ready("a")[0]
		c := n.counter()
		w.gives(c, 1)
		_, l, _ := n.mem.Load().look()
		n.mem.Load().startAnew(l, errResumed)
		w.gives(c, 3)
	})
}

// TestCountersUnderFaults has members come, crash, leave and be cut off over a store that fails in every way: no number
// comes twice, and those of a handle ascend.
func TestCountersUnderFaults(t *testing.T) {
	for seed := range uint64(10) {
		inBubble(t, func(t *testing.T, w *world) {
			var mu sync.Mutex
			random := rand.New(rand.NewPCG(seed, 3))
			n := func(of int) int {
				mu.Lock()
				defer mu.Unlock()
				return random.IntN(of)
			}
			nodes := []*node{w.start("0"), w.start("1"), w.start("2")}
			for _, n := range nodes {
				n.ready(time.Second)
			}
			w.service.Inject(func(memstore.Call) memstore.Fault {
				f := memstore.Fault{Delay: time.Duration(n(10)) * time.Millisecond}
				if n(8) == 0 {
					f.Outcome = memstore.Outcome(n(4))
				}
				return f
			})
			given, handles, last := map[firn.ID]int{}, map[*node]*Counter{}, map[*Counter]firn.ID{}
			for step := range 500 {
				i := n(len(nodes))
				q := nodes[i]
				switch n(60) {
				case 0:
					q.client.CutOff(true)
				case 1:
					q.client.CutOff(true) // it crashes
					nodes[i] = w.start(fmt.Sprint(step))
				case 2:
					q.leave()
					nodes[i] = w.start(fmt.Sprint(step))
				case 3, 4, 5:
					q.client.CutOff(false)
				}
				m := q.mem.Load()
				if m == nil {
					time.Sleep(time.Second)
					continue
				}
				if handles[q] == nil {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					handles[q], _ = m.EnsureCounter(ctx, "invoices", invoices)
					cancel()
				}
				c := handles[q]
				if c == nil {
					continue
				}
				ids := make([]firn.ID, 1+n(3))
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+n(200))*time.Millisecond)
				err := c.Fill(ctx, ids)
				cancel()
				if err != nil {
					continue
				}
				for _, id := range ids {
					if given[id]++; given[id] > 1 || id <= last[c] {
						t.Fatalf("seed %d, step %d: %d comes again, or after %d", seed, step, id, last[c])
					}
					last[c] = id
				}
			}
			if len(given) < 100 {
				t.Errorf("seed %d: only %d numbers", seed, len(given))
			}
			w.service.Inject(nil)
		})
	}
}
