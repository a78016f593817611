package load

import (
	"cmp"
	"slices"
	"time"

	"github.com/firn-id/firn"
)

// Progress tells how far a run is.
type Progress struct {
	IDs, Calls, Failed int64 // Calls with an end, and those of them without IDs
	Took               time.Duration
	Done               float64 // part of the plan, 0 to 1; 0 when the plan has no end
}

// Progress tells how far the run is. It may be called while Do runs, and after.
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

// Result holds what a run has measured.
type Result struct {
	Progress
	Errors     []Failure // the most frequent first
	Latency    *Latency
	Duplicates Duplicates

	// Descents counts the IDs that were not above the one before on the same connection.
	Descents int64

	// Unsent counts the calls that were due at the rate of the plan, and not made because every connection still waited
	// for an answer.
	Unsent int64
}

// Failure is one kind of error.
type Failure struct {
	Code    string `json:"code"`    // of the server, or one of this package: see CodeOf
	Calls   int64  `json:"calls"`   // how many ended with it
	Example string `json:"example"` // the message of the first
}

// Duplicates tells which IDs came more than once.
type Duplicates struct {
	Checked int64     // IDs that were compared with each other
	More    int64     // those of them that had come before
	Some    []firn.ID // a few that came more than once, in ascending order
}

// Result looks for duplicates and returns the measurements. Call it once Do has returned.
func (r *Run) Result() Result {
	result := Result{Progress: r.Progress(), Latency: r.latency, Unsent: r.unsent(r.took)}
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
