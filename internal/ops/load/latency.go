package load

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The range of the histogram. A call takes at most answerWithin, but with a rate it may have been due long
// before.
const (
	leastLatency = time.Microsecond
	mostLatency  = time.Hour
	digits       = 3
)

// Latency is the distribution of how long successful calls took: to the microsecond or three digits, whichever is
// coarser, and at most an hour.
type Latency struct {
	mu sync.Mutex // guards h during the run; call the exported methods after it
	h  *hdrhistogram.Histogram
}

func newLatency() *Latency {
	return &Latency{h: hdrhistogram.New(1, int64(mostLatency/leastLatency), digits)}
}

func (l *Latency) add(took time.Duration) {
	us := int64(min(max(took, leastLatency), mostLatency) / leastLatency)
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.h.RecordValue(us) // it is in the range
}

// Calls returns the number of calls.
func (l *Latency) Calls() int64 { return l.h.TotalCount() }

// At returns the time in which the given percentage of calls, 0 to 100, ended; 0 without calls.
func (l *Latency) At(percent float64) time.Duration {
	return time.Duration(l.h.ValueAtPercentile(percent)) * leastLatency
}

// Max returns how long the slowest call took.
func (l *Latency) Max() time.Duration { return time.Duration(l.h.Max()) * leastLatency }

// Mean returns how long calls took on average.
func (l *Latency) Mean() time.Duration { return time.Duration(l.h.Mean() * float64(leastLatency)) }

// Band counts the calls that took longer than Above and at most UpTo.
type Band struct {
	Above, UpTo time.Duration
	Calls       int64
}

// Bands returns the bands from 1, 2 or 5 times a power of ten to the next, from the fastest call to the slowest.
func (l *Latency) Bands() []Band {
	var bands []Band
	above, counted := time.Duration(0), 0
	bars := l.h.Distribution()
	for scale := leastLatency; counted < len(bars) && scale <= mostLatency*10; scale *= 10 {
		for _, upTo := range []time.Duration{scale, 2 * scale, 5 * scale} {
			b := Band{Above: above, UpTo: upTo}
			for ; counted < len(bars) && time.Duration(bars[counted].From)*leastLatency <= b.UpTo; counted++ {
				b.Calls += bars[counted].Count
			}
			above = b.UpTo
			bands = append(bands, b)
		}
	}
	for len(bands) > 0 && bands[0].Calls == 0 {
		bands = bands[1:]
	}
	for len(bands) > 0 && bands[len(bands)-1].Calls == 0 {
		bands = bands[:len(bands)-1]
	}
	return bands
}
