// Package load asks servers for IDs and measures the answers: their latency, the calls that fail, and IDs that
// come twice. firn bench, firn demo and the benchmarks in bench make load with it.
package load

import (
	"cmp"
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/retry"
)

const (
	// answerWithin is how long a call may take: longer than a server lets a call wait.
	answerWithin = 15 * time.Second

	// DefaultGrace is how long calls may go on after the end of a run.
	DefaultGrace = 2 * time.Second

	// DefaultMemory is how many bytes a run uses to remember IDs.
	DefaultMemory = 1 << 30

	// NoMemory makes a run remember no IDs, and so find no duplicates.
	NoMemory = -1
)

// backoff is how long a connection rests after failed calls: a refusal takes nearly no time, and a million of
// them would tell no more than a hundred.
var backoff = retry.Backoff{First: 10 * time.Millisecond, Max: 200 * time.Millisecond}

// Plan configures a run, which ends after Count IDs, after Duration, or with its context.
type Plan struct {
	// Connect returns a connection, numbered from 0.
	Connect func(i int) (Connection, error)

	Connections int           // with one call at a time each; at least 1
	Batch       int           // IDs per call; at least 1
	Scattered   bool          // the IDs are scattered: their order is that before
	Count       int64         // IDs in all; 0: no limit
	Duration    time.Duration // how long the run begins calls; 0: no limit
	Rate        float64       // IDs per second to ask for, at most; 0: no limit
	Grace       time.Duration // how long the last calls may go on after the end; 0: DefaultGrace
	Memory      int64         // bytes in which to remember IDs, or NoMemory; 0: DefaultMemory
	Against     *Other        // whose IDs to compare; nil: nobody's
}

// Run executes a plan once. Make it with New.
type Run struct {
	plan    Plan
	records []*record
	memory  atomic.Int64 // bytes left
	latency *Latency
	other   *command // nil: none

	slots  atomic.Int64 // calls planned
	left   atomic.Int64 // IDs not asked for yet, if the plan has a Count
	ids    atomic.Int64
	calls  atomic.Int64
	failed atomic.Int64

	mu     sync.Mutex // guards what follows
	errors map[string]*Failure
	began  time.Time // zero before Do; constant while workers run
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

// Do executes the plan; call it once. It returns the error of Connect, and one when the command of Against can't be
// started, prints no ID within a minute, prints something that is none of the layout, or ends with an error. When ctx
// ends, it drops the calls in progress and does not count them.
func (r *Run) Do(ctx context.Context) error {
	if r.plan.Against != nil {
		return r.doAgainst(ctx)
	}
	return r.load(ctx)
}

// load executes the plan without Against.
func (r *Run) load(ctx context.Context) error {
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

// work makes calls over one connection. It begins none after ctx has ended, and cuts off the last when calls
// ends.
func (r *Run) work(ctx, calls context.Context, c Connection, seen *record) {
	ids := make([]firn.ID, r.plan.Batch)
	for failures := 0; ; {
		n, due, ok := r.next()
		if !ok || retry.Sleep(ctx, time.Until(due)) != nil {
			return
		}
		from := time.Now()
		if late := from.Sub(due); r.plan.Rate > 0 && late > timerSlack {
			from = due // an earlier answer was late; the caller has waited since
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
				if r.plan.Scattered {
					for i := range ids[:n] {
						ids[i] = firn.Gather(ids[i])
					}
				}
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

// timerSlack is how late a timer fires on an idle machine: a call late by less is not the server's fault.
const timerSlack = 2 * time.Millisecond

// next returns how many IDs the next call asks for, and when it is due; false: no more calls.
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

// unsent returns how many calls were due before the end but found no free connection.
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

// note records an error.
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
