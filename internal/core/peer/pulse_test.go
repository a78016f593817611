package peer

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// pulse reads a member's pulse.
func (n *node) pulse() (Pulse, store.KV) {
	n.world.t.Helper()
	kv, err := n.world.service.Client("reader").Get(n.world.t.Context(), pulseKey(n.mem.Load().ID()))
	if err != nil || kv.Version == 0 {
		n.world.t.Fatalf("the pulse is %+v, %v", kv, err)
	}
	return readPulse(kv.Value), kv
}

// A pulse is written again within Every, with the horizons or alone, and says what the clock shows then.
func TestAPulseIsWrittenAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a", func(s *setup) {
			s.Vitals = func() Vitals { return Vitals{Version: "v9", Given: 7, Rate: math.NaN()} }
		})
		b := w.start("b", func(s *setup) {
			s.Vitals = func() Vitals { return Vitals{Version: "v9", Given: 7, Left: time.Hour} }
		})
		a.ready(time.Second)
		b.ready(time.Second)
		if err := a.seq.Load().Detach(t.Context()); err != nil {
			t.Fatal(err)
		}
		a.wall.step(-time.Hour) // the wall is shown, whether ID time follows it or not
		gone, err := w.service.Client("watcher").Gone(t.Context(), pulseKey(a.mem.Load().ID()))
		if err != nil {
			t.Fatal(err)
		}
		since := time.Now()
		for _, n := range []*node{a, b} {
			for range 5 {
				first, was := n.pulse()
				time.Sleep(first.Every + time.Second)
				second, is := n.pulse()
				age := time.Now().Add(time.Duration(n.wall.off.Load())).Sub(second.Clock)
				if first.Every != window/3 || is.Version == was.Version || age < 0 || age > second.Every+time.Second {
					t.Errorf("%s: %+v is %v old, after %+v", n.name, second, age, first)
				}
				if second.Mark != first.Mark || second.Owner != n.name || !second.Since.Equal(first.Since) ||
					second.Since.After(since) {
					t.Errorf("%s: %+v after %+v", n.name, second, first)
				}
			}
		}
		if p, _ := b.pulse(); p.Vitals.Version != "v9" || p.Vitals.Given != 7 || p.Vitals.Left > window {
			t.Errorf("vital signs %+v", p.Vitals)
		}
		select {
		case <-gone:
			t.Error("its watcher takes it for dead")
		default:
		}
		if all, err := b.mem.Load().Pulses(t.Context()); err != nil || len(all) != 2 ||
			all[a.mem.Load().ID()].Owner != "a" {
			t.Errorf("Pulses: %+v, %v", all, err)
		}
	})
}

// The time left that a pulse tells is that after the renewal with which it is written. A sequencer with a window of its
// own is renewed between pulses, too, and does not count.
func TestAPulseTellsTheTimeLeft(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		brief := cluster.Define(layout)
		brief.Window = window / 10
		if _, err := a.mem.Load().EnsureSequencer(t.Context(), "brief", brief); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			time.Sleep(window/3 + time.Second)
			if p, _ := a.pulse(); p.Vitals.Left < window-time.Second || p.Vitals.Left > window {
				t.Errorf("%v are left, want %v, as the horizons are written with the pulse", p.Vitals.Left, window)
			}
		}
	})
}

// TestALatePulse: a write in doubt that is applied later replaces no newer pulse, whether it was written with
// horizons or alone, and delays no horizon.
func TestALatePulse(t *testing.T) {
	for _, outcome := range []memstore.Outcome{memstore.FailBefore, memstore.FailAfter, memstore.ApplyLate} {
		for _, alone := range []bool{false, true} {
			inBubble(t, func(t *testing.T, w *world) {
				a := w.start("a")
				a.ready(time.Second)
				if alone {
					if err := a.seq.Load().Detach(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				failed := false
				a.client.Inject(func(c memstore.Call) memstore.Fault {
					writes := slices.ContainsFunc(c.Txn.Then, func(o store.Op) bool {
						return o.Key == pulseKey(a.mem.Load().ID())
					})
					if c.Op != memstore.Commit || failed || !writes {
						return memstore.Fault{}
					}
					failed = true
					return memstore.Fault{Outcome: outcome, Delay: 3 * time.Second}
				})
				var last time.Time
				for range int(3 * window / time.Second) {
					time.Sleep(time.Second)
					p, _ := a.pulse()
					if p.Clock.Before(last) {
						t.Fatalf("outcome %v: a pulse of %v after one of %v", outcome, p.Clock, last)
					}
					last = p.Clock
					if st := a.seq.Load().status.Load(); !alone &&
						time.Until(st.inUse().fence.Horizon()) < window/2 {
						t.Fatalf("outcome %v: the horizon is %v", outcome, st.inUse().fence.Horizon())
					}
				}
				if age := time.Since(last); !failed || age > window/3+time.Second {
					t.Errorf("outcome %v: in the end the pulse is %v old; a write failed: %v", outcome, age, failed)
				}
			})
		}
	}
}

// TestAPulseThatCannotBeWritten delays no horizon either.
func TestAPulseThatCannotBeWritten(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		thief := w.service.Client("thief")
		if _, err := thief.Commit(t.Context(),
			store.Txn{Then: []store.Op{store.Put(pulseKey(a.mem.Load().ID()), []byte("foreign"))}}); err != nil {
			t.Fatal(err)
		}
		for range int(2 * window / time.Second) {
			time.Sleep(time.Second)
			if left := time.Until(a.seq.Load().status.Load().inUse().fence.Horizon()); left < window/2 {
				t.Fatalf("it has %v left", left)
			}
		}
	})
}
