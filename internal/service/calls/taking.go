package calls

import "time"

// Limits on how slowly a caller may take an answer.
const (
	// LeastTaken is the least rate at which a caller must take an answer, in bytes per second, on average and
	// after TakeSlack.
	LeastTaken = 64 << 10

	// TakeSlack is the longest time for which a caller may take nothing.
	TakeSlack = 10 * time.Second
)

// Taking computes the deadline by which a caller must take each piece of an answer. The zero value is a new
// answer.
type Taking struct {
	began time.Time
	bytes int
}

// Deadline returns when the caller must have taken the next n bytes, sent now: TakeSlack from now, or earlier if
// the whole answer would come to less than LeastTaken.
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
