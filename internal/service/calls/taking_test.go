package calls

import (
	"testing"
	"time"
)

// A caller that takes nothing has TakeSlack; a slow one has the time that the bytes sent take at LeastTaken, and
// TakeSlack.
func TestTaking(t *testing.T) {
	began := time.Now()
	const piece = 32 << 10
	var t1 Taking
	for i := range 100 { // at once: each piece has the same deadline
		if got := t1.Deadline(began, piece).Sub(began); got != TakeSlack {
			t.Fatalf("piece %d of a fast caller: within %v", i, got)
		}
	}
	var t2 Taking
	now, sent := began, 0
	for i := 0; ; i++ { // half as fast as required
		deadline := t2.Deadline(now, piece)
		sent += piece
		if latest := began.Add(TakeSlack + time.Duration(sent)*time.Second/LeastTaken); deadline.After(latest) ||
			deadline.After(now.Add(TakeSlack)) {
			t.Fatalf("piece %d: by %v", i, deadline.Sub(began))
		}
		now = now.Add(2 * piece * time.Second / LeastTaken)
		if now.After(deadline) {
			break
		}
	}
	if took := now.Sub(began); took < 2*TakeSlack || took > 2*TakeSlack+3*time.Second {
		t.Errorf("half as fast as is wanted, it is cut off after %v", took)
	}
	var t3 Taking
	for now := began; now.Sub(began) < time.Hour; now = now.Add(piece * time.Second / LeastTaken) {
		if deadline := t3.Deadline(now, piece); deadline.Before(now.Add(TakeSlack)) {
			t.Fatalf("as fast as is wanted, after %v: within %v", now.Sub(began), deadline.Sub(now))
		}
	}
}
