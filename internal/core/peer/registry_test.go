package peer

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A sequencer is found until its goroutine ends, or another one has its name; and none begins once the member leaves.
func TestRegistry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := registry{sequencers: map[string]*Sequencer{}}
		if r.find("a") != nil || len(r.all()) != 0 {
			t.Error("an empty registry has a sequencer")
		}
		end := map[*Sequencer]chan struct{}{}
		add := func(name string) *Sequencer {
			t.Helper()
			s := &Sequencer{name: name}
			ends := make(chan struct{})
			end[s] = ends
			got, err := r.replace(name, func(*Sequencer) *Sequencer { return s }, func(*Sequencer) { <-ends })
			if got != s || err != nil || r.find(name) != s {
				t.Fatalf("%v, %v; %v is found", got, err, r.find(name))
			}
			return s
		}
		b, a := add("b"), add("a")
		if all := r.all(); len(all) != 2 || all[0] != a || all[1] != b {
			t.Errorf("%v; want a and b, in this order", all)
		}
		same, err := r.replace("a", func(now *Sequencer) *Sequencer { return now }, func(*Sequencer) {
			t.Error("it runs again")
		})
		if same != a || err != nil {
			t.Errorf("%v, %v; want the one that is there", same, err)
		}
		a2 := add("a")
		close(end[a])
		synctest.Wait()
		if r.find("a") != a2 {
			t.Error("the end of a sequencer takes the next one of its name away")
		}
		close(end[b])
		synctest.Wait()
		if r.find("b") != nil || len(r.all()) != 1 {
			t.Error("a sequencer is found after its end")
		}

		ctx, cancel := r.inTime(t.Context(), time.Second)
		defer cancel()
		if at, _ := ctx.Deadline(); r.leaving() || time.Until(at) != time.Second {
			t.Errorf("it leaves: %v; there are %v left", r.leaving(), time.Until(at))
		}
		r.leave()
		time.Sleep(300 * time.Millisecond)
		r.leave()
		ctx, cancel = r.inTime(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if at, _ := ctx.Deadline(); !r.leaving() || time.Until(at) != 700*time.Millisecond {
			t.Errorf("it leaves: %v; there are %v left, from the first leave on", r.leaving(), time.Until(at))
		}
		r.serve(func() { t.Error("a goroutine begins though the member leaves") })
		if _, err := r.replace("c", func(*Sequencer) *Sequencer {
			return &Sequencer{name: "c"}
		}, func(*Sequencer) {}); !errors.Is(err, errHasLeft) {
			t.Errorf("a sequencer is added though the member leaves: %v", err)
		}
		close(end[a2])
		r.serving.Wait()
	})
}
