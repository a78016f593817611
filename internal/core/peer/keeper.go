package peer

import (
	"sync"
	"sync/atomic"
	"time"
)

// A keeper knows for which windows fences are renewed, and how the store answered. Each window has a goroutine of its
// own, see renewFences, so that the rounds of one delay no other. Its methods are safe for concurrent use.
type keeper struct {
	writing    lock          // held while the pulse is written, with the horizons of the own window or of all
	soon       chan struct{} // has them written soon
	extensions extensions
	roundTrip  atomic.Int64              // of the latest write of the pulse, in nanoseconds
	answered   atomic.Pointer[time.Time] // when the store answered it; nil: never

	mu      sync.Mutex // guards what follows
	windows map[time.Duration]bool
}

// begins reports whether nobody renews the fences of a window yet; the caller has to.
func (k *keeper) begins(window time.Duration) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	renewed := k.windows[window]
	k.windows[window] = true
	return !renewed
}

// ends reports whether the fences of a window need not be renewed any more; the caller then ends. In use is asked
// meanwhile, so that no sequencer comes to use the window unnoticed: it is there before it calls begins.
func (k *keeper) ends(window time.Duration, inUse func() bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if inUse() {
		return false
	}
	delete(k.windows, window)
	return true
}

// hurry has the fences of the member's own window renewed and the pulse written at once.
func (k *keeper) hurry() {
	select {
	case k.soon <- struct{}{}:
	default:
	}
}

// wrote notes that the store has answered a write that was sent at a time.
func (k *keeper) wrote(sent time.Time) {
	now := time.Now()
	k.roundTrip.Store(int64(now.Sub(sent)))
	k.answered.Store(&now)
}

// answeredAt returns when the store last answered such a write, with a monotonic clock reading; zero: never.
func (k *keeper) answeredAt() time.Time {
	if at := k.answered.Load(); at != nil {
		return *at
	}
	return time.Time{}
}
