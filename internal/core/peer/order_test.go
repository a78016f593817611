package peer

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

// A node that was alone with a clock far ahead has left: the next one goes on with smaller IDs, or waits if it is told
// to.
func TestIDsThatAreAhead(t *testing.T) {
	for _, order := range []Order{GoOn, WaitForIDs} {
		inBubble(t, func(t *testing.T, w *world) {
			first := w.start("first", off(time.Hour))
			first.ready(time.Second)
			first.leave()
			second := w.start("second", func(s *setup) { s.Order = order })
			<-second.done
			if until := second.mem.Load().Vitals().SmallerUntil; until.Before(time.Now().Add(time.Hour - time.Minute)) {
				t.Errorf("its vital signs tell of IDs up to %v", until)
			}
			if order == GoOn {
				second.ready(time.Second)
				if second.last >= first.last {
					t.Errorf("it gave %d after %d", second.last, first.last)
				}
				return
			}
			var ahead *OrderError
			if err := second.seq.Load().Ready(); !errors.As(err, &ahead) || ahead.Ahead < time.Hour-time.Minute {
				t.Fatalf("Ready: %v", err)
			}
			second.refuses(40 * time.Minute)
			second.ready(25 * time.Minute)
			if until := second.mem.Load().Vitals().SmallerUntil; !until.IsZero() {
				t.Errorf("it makes IDs, and its vital signs tell of larger ones up to %v", until)
			}
			if second.last <= first.last {
				t.Errorf("it gave %d after %d", second.last, first.last)
			}
		})
	}
}

// Of many that go on, the first look for IDs that are ahead. One that is to wait looks in any case.
func TestTheFirstLookForIDsThatAreAhead(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		first := w.start("first", off(time.Hour))
		first.ready(time.Second)
		first.leave()
		for i := range lookers + 1 {
			n := w.start(fmt.Sprint("node ", i))
			n.ready(time.Second)
			if knows := !n.mem.Load().Vitals().SmallerUntil.IsZero(); knows != (i < lookers) {
				t.Errorf("member %d knows of larger IDs: %v", i+1, knows)
			}
		}
		last := w.start("last", func(s *setup) { s.Order = WaitForIDs })
		var ahead *OrderError
		if err := last.settled().Ready(); !errors.As(err, &ahead) {
			t.Errorf("Ready: %v, want an OrderError", err)
		}
	})
}

// One whose clock was ahead goes on, and so moves its horizon while its clock comes back: the other waits for what
// exceeds its IDs then, and not for every horizon that lies a window ahead.
func TestIDsThatAreAheadOfOneThatGoesOn(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		first := w.start("first")
		first.ready(time.Second)
		first.wall.step(time.Minute)
		time.Sleep(window)
		second := w.start("second", func(s *setup) { s.Order = WaitForIDs })
		var ahead *OrderError
		if err := second.settled().Ready(); !errors.As(err, &ahead) {
			t.Fatalf("Ready: %v, want an OrderError", err)
		}
		first.wall.step(-time.Minute)
		second.ready(8*time.Minute + 2*window) // a clock that is ahead runs an eighth slower
		first.serves(time.Second)
		second.serves(time.Second)
	})
}
