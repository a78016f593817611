package peer

import (
	"testing"
	"testing/synctest"
	"time"
)

// A window has one goroutine, from the first sequencer that uses it to the end of the last one; a hurry is never lost.
func TestKeeper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keeper{soon: make(chan struct{}, 1), windows: map[time.Duration]bool{}}
		yes, no := func() bool { return true }, func() bool { return false }
		if !k.begins(time.Minute) || k.begins(time.Minute) || !k.begins(time.Second) {
			t.Error("a window has no goroutine, or two")
		}
		if k.ends(time.Minute, yes) || k.begins(time.Minute) {
			t.Error("a window that is in use has no goroutine")
		}
		if !k.ends(time.Minute, no) || !k.begins(time.Minute) {
			t.Error("a window that is no longer in use keeps its goroutine, or gets no other one")
		}

		// A sequencer that comes to use a window just when its goroutine would end begins another one.
		begins := make(chan bool, 1)
		k.ends(time.Second, func() bool {
			go func() { begins <- k.begins(time.Second) }()
			return false
		})
		if !<-begins {
			t.Error("nobody renews the fences of a window that came into use when its goroutine ended")
		}

		k.hurry()
		k.hurry()
		<-k.soon
		select {
		case <-k.soon:
			t.Error("two hurries at once are two writes")
		default:
		}

		if !k.answeredAt().IsZero() || k.roundTrip.Load() != 0 {
			t.Error("the store has answered a write before the first")
		}
		sent := time.Now()
		time.Sleep(3 * time.Millisecond)
		k.wrote(sent)
		if got := k.answeredAt().Sub(sent); got != 3*time.Millisecond || k.roundTrip.Load() != int64(got) {
			t.Errorf("answered after %v, a round trip of %d ns; want 3ms", got, k.roundTrip.Load())
		}
	})
}
