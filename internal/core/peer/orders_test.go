package peer

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/reason"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/counter"
	"github.com/firn-id/firn/sequencer"
)

var (
	events   = cluster.Definition{Order: cluster.OrderStrict, Layout: layout}
	receipts = cluster.Definition{Kind: cluster.Counter, Dated: sequencer.Dated{Every: sequencer.EveryDay, Digits: 3}}
)

// claims returns the node's handle of a sequencer whose IDs are claimed.
func (n *node) claims(name string, d cluster.Definition) *Counter {
	n.world.t.Helper()
	c, err := n.mem.Load().EnsureCounter(n.world.t.Context(), name, d)
	if err != nil {
		n.world.t.Fatal(err)
	}
	return c
}

func (w *world) next(c *Counter) firn.ID {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	id, err := c.Next(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

// Members ask by turns, with clocks that differ as far as they may, and one of them is paused.
func TestStrictOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		nodes := w.ready("a", "b", "c")
		nodes[1].wall.step(4 * time.Second)
		nodes[2].wall.step(-4 * time.Second)
		var all []*Counter
		for _, n := range nodes {
			all = append(all, n.claims("events", events))
		}
		before, l := firn.ID(0), events.IDLayout()
		for i := range 300 {
			id := w.next(all[i%3])
			if id <= before {
				t.Fatalf("%d after %d", id, before)
			}
			if i%7 == 0 {
				ids := make([]firn.ID, 50)
				if err := all[(i+1)%3].Fill(t.Context(), ids); err != nil || ids[0] <= id || ids[49] <= ids[0] {
					t.Fatalf("%v %v after %d", ids, err, id)
				}
				id = ids[49]
			}
			if at, err := l.Time(id); err != nil || time.Since(at).Abs() > 5*time.Second {
				t.Fatalf("%d is of %v %v, and it is %v", id, at, err, time.Now())
			}
			before = id
			time.Sleep(time.Duration(i%5) * time.Millisecond)
		}
		ids := make([]firn.ID, 2)
		if err := all[0].FillAfter(t.Context(), before, 0, ids); err != nil || ids[0] <= before {
			t.Errorf("%v %v after %d", ids, err, before)
		}
		never, _ := l.First(time.Now().Add(time.Minute))
		if err := all[0].FillAfter(t.Context(), never, 0, ids); reason.Of(err) != "bad_request" || ids[0] != 0 {
			t.Errorf("%v %v after %d, which is of a minute later", ids, err, never)
		}
	})
}

// A clock that most others contradict gives no dates and no times, which would keep the others from giving IDs.
func TestAWrongClockClaimsNothing(t *testing.T) {
	for name, d := range map[string]cluster.Definition{"events": events, "receipts": receipts} {
		inBubble(t, func(t *testing.T, w *world) {
			nodes := w.ready("a", "b", "c")
			c := nodes[0].claims(name, d)
			w.next(c)
			synctest.Wait() // no claim is between its look at the clock and its time
			nodes[0].wall.step(25 * time.Hour)
			id, err := c.Next(t.Context())
			for n := 1; err == nil && n < 100; n++ { // a block that was claimed ahead
				id, err = c.Next(t.Context())
			}
			if reason.Of(err) != "clock" {
				t.Errorf("%d, %v", id, err)
			}
			right := nodes[1].claims(name, d)
			before := w.next(right)
			nodes[0].wall.step(-25 * time.Hour)
			deadline := time.Now().Add(2 * time.Minute)
			for c.Ready() != nil && time.Now().Before(deadline) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				_, _ = c.Next(ctx)
				cancel()
				time.Sleep(time.Second)
			}
			if id := w.next(c); id <= before {
				t.Errorf("%d after %d", id, before)
			}
		})
	}
}

func TestDatedNumbersAscendOverMidnight(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) { // on 2000-01-01
		nodes := w.ready("a", "b")
		a, b := nodes[0].claims("receipts", receipts), nodes[1].claims("receipts", receipts)
		w.gives(a, 20000101001, 20000101002)
		w.gives(b, 20000101004)
		time.Sleep(time.Until(time.Date(2000, 1, 2, 0, 0, 0, 0, time.UTC)))
		w.gives(b, 20000102001)
		w.gives(a, 20000102003)
		for range 999 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := a.Next(ctx)
			cancel()
			if err != nil {
				break
			}
		}
		err := w.gone(a, "exhausted", time.Second)
		if !strings.Contains(err.Error(), "the numbers end at 20000102999 until 2000-01-03T00:00:00Z") {
			t.Error(err)
		}
		time.Sleep(time.Until(time.Date(2000, 1, 3, 0, 0, 0, 5e6, time.UTC)))
		if id := w.next(a); id/1000 != 20000103 {
			t.Errorf("%d on the third day", id)
		}
	})
}

func TestOrdersThatDoNotGoTogether(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.ready("a")[0]
		m := a.mem.Load()
		w.start("other").ready(time.Second)
		unknown := receipts
		unknown.Dated.Zone = "Europe/Brelin"
		later := events
		later.After, _ = layout.First(time.Now().AddDate(0, 0, 1))
		for what, try := range map[string]func() error{
			`the sequencer "events" is a snowflake in strict order; want a snowflake`: func() error {
				_, err := m.EnsureSequencer(t.Context(), "events", events)
				return err
			},
			`attach: the sequencer "strict" is a snowflake in strict order; want a snowflake`: func() error {
				if _, err := m.EnsureCounter(t.Context(), "strict", events); err != nil {
					t.Fatal(err)
				}
				_, err := m.Attach(t.Context(), "strict")
				return errors.Join(errors.New("attach: "), err)
			},
			`the zone "Europe/Brelin" is not known`: func() error {
				_, err := m.EnsureCounter(t.Context(), "receipts", unknown)
				return err
			},
			"its numbers would have to exceed": func() error {
				_, err := m.Create(t.Context(), "later", later)
				return err
			},

			"exceed 2000010100[1-9], and those of the present time end at 200001999": func() error {
				w.next(a.claims("receipts", receipts))
				if err := m.Destroy(t.Context(), "receipts"); err != nil {
					t.Fatal(err)
				}
				monthly := receipts
				monthly.Dated.Every = sequencer.EveryMonth
				_, err := m.EnsureCounter(t.Context(), "receipts", monthly)
				return err
			},
		} {
			err := try() // of the numbers, it may have reserved the next ones, too
			if err == nil || !regexp.MustCompile(what).MatchString(strings.ReplaceAll(err.Error(), "\n", "")) {
				t.Errorf("%v, want %s", err, what)
			}
		}
		if err := m.Destroy(t.Context(), "strict"); err != nil {
			t.Fatal(err)
		}
		_, err := m.EnsureSequencer(t.Context(), "strict", cluster.Define(layout))
		if kind, ok := errors.AsType[*KindError](err); !ok || !kind.Destroyed || reason.Of(err) != "refused" {
			t.Errorf("%v, want that IDs may come again", err)
		}
	})
}

// A clock that runs ahead by little, so that nothing but the others' clocks shows it, stops its node and nobody else.
func TestADriftingClockClaimsNoTime(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		nodes := w.ready("a", "b", "c")
		c, right := nodes[0].claims("events", events), nodes[1].claims("events", events)
		w.next(c)
		for range 60 {
			nodes[0].wall.step(400 * time.Millisecond)
			time.Sleep(4 * time.Second)
		}
		time.Sleep(window)
		if _, err := c.Next(t.Context()); reason.Of(err) != "clock" {
			t.Errorf("%v, want that the others disagree: %v", err, nodes[0].mem.Load().judged())
		}
		w.next(right)
	})
}

// Nobody can resume above numbers that there are not yet, which could not be undone.
func TestResumeKnowsTheTime(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.ready("a")[0]
		c := a.claims("receipts", receipts)
		last := w.next(c)
		if err := counter.Tell(t.Context(), w.service.Client("observer")); err != nil {
			t.Fatal(err)
		}
		w.gone(c, "lost", 2*window)
		time.Sleep(window)
		m := a.mem.Load()
		for after, refused := range map[firn.ID]bool{
			last - 1: true, 20000102001: true, firn.MaxID - 1: true,
			20000101500: false,
		} {
			err := m.ResumeCounter(t.Context(), "receipts", after)
			if (reason.Of(err) == "refused") != refused || !refused && err != nil {
				t.Errorf("resumed above %d: %v", after, err)
			}
		}
	})
}

// A pulse does not tell of all counters of a member that has many. What it does not tell may be in use.
func TestAMemberOfManyCountersMayCount(t *testing.T) {
	many := func(lost int) (v Vitals) {
		v.Counters = map[string]Counting{}
		for i := range mostCounters {
			v.Counters[fmt.Sprint("k", i)] = Counting{Reserved: 7, Lost: i < lost}
		}
		return v
	}
	for _, c := range []struct {
		vitals Vitals
		name   string
		want   bool
	}{
		{Vitals{}, "k0", false},
		{Vitals{Counters: map[string]Counting{"k0": {Reserved: 7}}}, "k0", true},
		{Vitals{Counters: map[string]Counting{"k0": {Reserved: 7, Lost: true}}}, "k0", false},
		{Vitals{Counters: map[string]Counting{"k0": {}}}, "k0", false},
		{Vitals{Counters: map[string]Counting{"k0": {Reserved: 7}}}, "other", false},
		{many(0), "other", true},
		{many(1), "other", false},
		{many(1), "k0", false},
		{many(1), "k1", true},
	} {
		if got := c.vitals.mayCount(c.name); got != c.want {
			t.Errorf("%v: of %s %v", c.vitals.Counters, c.name, got)
		}
	}
}

// A counter that is created again, since the store has lost it, does not give the numbers that the living know of.
func TestALostCounterIsNotCreatedFromTheBeginning(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		nodes := w.ready("a", "b")
		m := nodes[1].mem.Load()
		before := w.service.Backup()
		if _, err := m.Create(t.Context(), "tickets", invoices); err != nil {
			t.Fatal(err)
		}
		c, err := nodes[0].mem.Load().OpenCounter(t.Context(), "tickets")
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			w.next(c)
		}
		w.service.RollBack(before, 0)
		inTime := func(do func() error) {
			t.Helper()
			for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
				err := do()
				if err == nil {
					return
				}
				if time.Now().After(end) {
					t.Fatal(err)
				}
			}
		}
		inTime(func() error { _, err := m.Create(t.Context(), "tickets", invoices); return err })
		inTime(func() (err error) { c, err = nodes[0].mem.Load().OpenCounter(t.Context(), "tickets"); return err })
		w.gone(c, "lost", 10*window)
		time.Sleep(window)
		if err := m.ResumeCounter(t.Context(), "tickets", 100); err != nil {
			t.Fatal(err)
		}
		inTime(c.Ready)
		if id := w.next(c); id != 101 {
			t.Errorf("%d, want 101", id)
		}
		after := invoices
		after.After = 70
		if _, err := m.Create(t.Context(), "after", after); err != nil {
			t.Fatal(err)
		}
		if c, err = m.OpenCounter(t.Context(), "after"); err != nil {
			t.Fatal(err)
		}
		if id := w.next(c); id != 71 {
			t.Errorf("%d, want 71", id)
		}
		if last, err := c.Take(t.Context(), 0); err == nil {
			t.Errorf("no number ends at %d", last)
		}
	})
}
