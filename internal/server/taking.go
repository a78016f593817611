package server

import "time"

// Limits on how slowly a caller may take an answer.
const (
	// LeastTaken is how many bytes a second a caller takes of an answer at least, on average and after TakeSlack.
	LeastTaken = 64 << 10

	// TakeSlack is how long a caller may take nothing.
	TakeSlack = 10 * time.Second
)

// Taking computes by when a caller must have taken each piece of an answer. The zero value is an answer that
// begins.
type Taking struct {
	began time.Time
	bytes int
}

// Deadline is by when the next piece, of n bytes, must be taken, if it is sent now: TakeSlack from now, and earlier when the answer on the
// whole comes to less than LeastTaken.
func (t *Taking) Deadline(now time.Time, n int) time.Time {
	if t.began.IsZero() {
		t.began = now
	}
	t.bytes += n
	onAverage := t.began.Add(TakeSlack + time.Duration(t.bytes)*time.Second/LeastTaken)
	if latest := now.Add(TakeSlack); latest.Before(onAverage) {
		return latest
	}
	return onAverage
}
