// Package load asks servers for IDs and measures the answers: how fast they come, which calls fail, and whether an ID comes
// twice. firn bench, firn demo and the benchmarks in bench make load with it.
package load

import (
	"cmp"
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/retry"
)

const (
	// answerWithin is how long a call may take: longer than a server lets it wait.
	answerWithin = 15 * time.Second

	// DefaultGrace is how long calls may go on after the end.
	DefaultGrace = 2 * time.Second

	// DefaultMemory is how many bytes are used to remember IDs.
	DefaultMemory = 1 << 30

	// NoMemory has a run remember no IDs, and so find no duplicates.
	NoMemory = -1
)

// backoff is how long a connection rests after calls that failed: a refusal takes nearly no time, and a million of them
// would say no more than a hundred.
var backoff = retry.Backoff{First: 10 * time.Millisecond, Max: 200 * time.Millisecond}

// Plan says how much to ask for, and how. A run ends after Count IDs, after Duration, or with its context.
type Plan struct {
	// Connect returns the connection of a number, from 0.
	Connect func(i int) (Connection, error)

	Connections int           // at a time, each with one call at a time; at least 1
	Batch       int           // how many IDs a call asks for; at least 1
	Count       int64         // how many IDs to ask for in all; 0: no limit
	Duration    time.Duration // for how long calls begin; 0: no limit
	Rate        float64       // how many IDs a second to ask for at most; 0: as many as come
	Grace       time.Duration // how long the last calls may go on after that; 0: DefaultGrace
	Memory      int64         // how many bytes to remember IDs in; 0: DefaultMemory, or NoMemory
}

// Run executes a plan once. Make it with New.
type Run struct {
	plan    Plan
	records []*record
	memory  atomic.Int64 // bytes left
	latency *Latency

	slots  atomic.Int64 // calls planned
	left   atomic.Int64 // IDs not asked for yet, with a Count
	ids    atomic.Int64
	calls  atomic.Int64
	failed atomic.Int64

	mu     sync.Mutex // guards what follows
	errors map[string]*Failure
	began  time.Time // zero before Do; constant while there are workers
	took   time.Duration
}

// New returns a run of a plan.
func New(p Plan) *Run {
	p.Grace, p.Memory = cmp.Or(p.Grace, DefaultGrace), cmp.Or(p.Memory, DefaultMemory)
	r := &Run{plan: p, latency: newLatency(), errors: map[string]*Failure{}}
	r.memory.Store(p.Memory)
	r.left.Store(p.Count)
	for range p.Connections {
		r.records = append(r.records, newRecord(&r.memory))
	}
	return r
}

// Do executes the plan; call it once. It returns the error of Connect. When ctx ends, it drops the calls that have no answer
// yet and does not count them.
func (r *Run) Do(ctx context.Context) error {
	connections := make([]Connection, r.plan.Connections)
	for i := range connections {
		c, err := r.plan.Connect(i)
		if err != nil {
			closeAll(connections[:i])
			return err
		}
		connections[i] = c
	}
	defer closeAll(connections)
	r.mu.Lock()
	r.began = time.Now()
	r.mu.Unlock()
	calls, cancel := context.WithCancel(ctx)
	defer cancel()
	if r.plan.Duration > 0 {
		defer time.AfterFunc(r.plan.Duration+r.plan.Grace, cancel).Stop()
	}
	var workers sync.WaitGroup
	for i, c := range connections {
		workers.Go(func() { r.work(ctx, calls, c, r.records[i]) })
	}
	workers.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.took = time.Since(r.began)
	return nil
}

func closeAll(connections []Connection) {
	for _, c := range connections {
		c.Close()
	}
}

// work makes calls over one connection. It begins none once ctx has ended, and cuts them off when calls ends.
func (r *Run) work(ctx, calls context.Context, c Connection, seen *record) {
	ids := make([]firn.ID, r.plan.Batch)
	for failures := 0; ; {
		n, due, ok := r.next()
		if !ok || retry.Sleep(ctx, time.Until(due)) != nil {
			return
		}
		from := time.Now()
		if late := from.Sub(due); r.plan.Rate > 0 && late > timerSlack {
			from = due // an earlier answer was late; the caller waits since then
		}
		call, cancel := context.WithTimeout(calls, answerWithin)
		err := c.Take(call, ids[:n])
		took := time.Since(from)
		cancel()
		if ctx.Err() != nil && err != nil {
			return // interrupted
		}
		r.calls.Add(1)
		if err == nil {
			failures = 0
			r.latency.add(took)
			r.ids.Add(int64(n))
			if r.plan.Memory > 0 {
				seen.add(ids[:n])
			}
			continue
		}
		r.failed.Add(1)
		r.note(err)
		if retry.Sleep(ctx, backoff.After(failures)) != nil {
			return
		}
		failures++
	}
}

// timerSlack is how late a timer fires on an idle machine: within it, a late call is not the server's fault.
const timerSlack = 2 * time.Millisecond

// next returns how many IDs the next call asks for, and when it is due; false when there are no more calls.
func (r *Run) next() (n int, due time.Time, ok bool) {
	slot := r.slots.Add(1) - 1
	n, due = r.plan.Batch, time.Now()
	if r.plan.Rate > 0 {
		due = r.began.Add(time.Duration(float64(slot) * float64(n) / r.plan.Rate * float64(time.Second)))
	}
	if end := r.began.Add(r.plan.Duration); r.plan.Duration > 0 && (!due.Before(end) || !time.Now().Before(end)) {
		return 0, due, false
	}
	if r.plan.Count > 0 {
		left := r.left.Add(-int64(n)) + int64(n)
		if left <= 0 {
			return 0, due, false
		}
		n = int(min(left, int64(n)))
	}
	return n, due, true
}

// unsent returns how many calls were due before the end and found no free connection.
func (r *Run) unsent(took time.Duration) int64 {
	if r.plan.Rate == 0 || r.plan.Duration == 0 || took < r.plan.Duration {
		return 0
	}
	planned := int64(math.Ceil(r.plan.Rate * r.plan.Duration.Seconds() / float64(r.plan.Batch)))
	if r.plan.Count > 0 {
		planned = min(planned, (r.plan.Count+int64(r.plan.Batch)-1)/int64(r.plan.Batch))
	}
	return max(0, planned-r.calls.Load())
}

// note counts an error.
func (r *Run) note(err error) {
	code := CodeOf(err)
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.errors[code]
	if f == nil {
		f = &Failure{Code: code, Example: messageOf(err)}
		r.errors[code] = f
	}
	f.Calls++
}
