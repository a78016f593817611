package load

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The range of the histogram. A call takes at most answerWithin; with a rate it may have been due long before.
const (
	leastLatency = time.Microsecond
	mostLatency  = time.Hour
	digits       = 3
)

// Latency tells how long the calls that brought IDs took: to the microsecond or three digits, whichever is less exact, and
// at most an hour.
type Latency struct {
	mu sync.Mutex // guards the histogram while the run adds to it; its methods are for afterwards
	h  *hdrhistogram.Histogram
}

func newLatency() *Latency {
	return &Latency{h: hdrhistogram.New(1, int64(mostLatency/leastLatency), digits)}
}

func (l *Latency) add(took time.Duration) {
	us := int64(min(max(took, leastLatency), mostLatency) / leastLatency)
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.h.RecordValue(us) // it is within the limits
}

// Calls returns how many there were.
func (l *Latency) Calls() int64 { return l.h.TotalCount() }

// At returns the time within which so many percent of them were answered, 0 to 100; 0 when there were none.
func (l *Latency) At(percent float64) time.Duration {
	return time.Duration(l.h.ValueAtPercentile(percent)) * leastLatency
}

// Max returns how long the slowest took.
func (l *Latency) Max() time.Duration { return time.Duration(l.h.Max()) * leastLatency }

// Mean returns how long they took on average.
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
