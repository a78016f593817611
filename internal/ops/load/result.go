package load

import (
	"cmp"
	"slices"
	"time"

	"github.com/firn-id/firn"
)

// Progress is the progress of a run.
type Progress struct {
	IDs, Calls, Failed int64 // IDs received, calls ended, and those of them without IDs
	Took               time.Duration
	Done               float64 // part of the plan, 0 to 1; 0 if the plan has no end
}

// Progress returns the progress of the run, during Do or after it.
func (r *Run) Progress() Progress {
	r.mu.Lock()
	took, began := r.took, r.began
	r.mu.Unlock()
	if took == 0 && !began.IsZero() {
		took = time.Since(began)
	}
	p := Progress{IDs: r.ids.Load(), Calls: r.calls.Load(), Failed: r.failed.Load(), Took: took}
	if r.plan.Duration > 0 {
		p.Done = float64(took) / float64(r.plan.Duration)
	}
	if r.plan.Count > 0 {
		p.Done = max(p.Done, float64(r.plan.Count-max(0, r.left.Load()))/float64(r.plan.Count))
	}
	p.Done = min(p.Done, 1)
	return p
}

// Result has the measurements of a run.
type Result struct {
	Progress
	Errors     []Failure // the most frequent first
	Latency    *Latency
	Duplicates Duplicates
	Against    *Against // nil: the plan has no other generator

	// Descents counts the IDs not above the one before on the same connection.
	Descents int64

	// Unsent counts the calls that were due at the rate of the plan but not made, because every connection waited
	// for an answer.
	Unsent int64
}

// Failure is one kind of error.
type Failure struct {
	Code    string `json:"code"`    // the server's or this package's: see CodeOf
	Calls   int64  `json:"calls"`   // number of calls that ended with it
	Example string `json:"example"` // the message of the first error
}

// Duplicates has the IDs that came more than once.
type Duplicates struct {
	Checked int64     // number of IDs compared
	More    int64     // number of those that came again
	Some    []firn.ID // a few that came more than once, in ascending order
}

// Result looks for duplicates and returns the measurements. Call it after Do has returned.
func (r *Run) Result() Result {
	result := Result{
		Progress: r.Progress(), Latency: r.latency, Unsent: r.unsent(r.took), Against: r.against(),
	}
	for _, seen := range r.records {
		result.Descents += seen.descents
		result.Duplicates.Checked += seen.kept
	}
	result.Duplicates.More, result.Duplicates.Some = repeated(r.records)
	for _, f := range r.errors {
		result.Errors = append(result.Errors, *f)
	}
	slices.SortFunc(result.Errors, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Code, b.Code))
	})
	return result
}
