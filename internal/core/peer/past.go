package peer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/fence"
	"github.com/firn-id/firn/internal/core/past"
	"github.com/firn-id/firn/store"
)

// Past asks for IDs of past instants.
type Past struct {
	// Job is the name of the job that they are for. It has a node ID of its own, which is reserved for "import <job>".
	Job string
	// Key, if not empty, identifies the call within the job: the last one, made again, gets the same IDs.
	Key string
	// Times are the instants, none before the last of an earlier call of the job.
	Times []time.Time
	// Move: an instant whose tick has no ID left gets one of the next tick that has. Else the call is refused.
	Move bool
	// After, if not zero, is an ID of the job, which the store must know of.
	After firn.ID
	// End ends the job after this call: its node ID is free.
	End bool
}

// PastIDs is the answer to Past.
type PastIDs struct {
	IDs     []firn.ID // in the order of the times
	Moved   int       // how many are of a later tick than their instant
	Node    int64     // that of the job; -1: there is none
	Reached time.Time // the job gives no ID of an earlier instant
	Began   bool      // this was its first call
}

// MostJobs is how many jobs of a sequencer there may be at once.
const MostJobs = 16

// jobs begins the purposes of reservations that are those of jobs.
const jobs = "import "

// ForgottenError is returned by GivePast when the store does not know of an ID that the job has given.
type ForgottenError struct {
	Job   string
	After firn.ID
}

func (e *ForgottenError) Error() string {
	return fmt.Sprintf("the store does not know that the job %q has given the ID %d: it was set back, or the job was "+
		"ended; what it has given since could come again", e.Job, e.After)
}

// Reason returns the code of the error, as docs/errors.md has it.
func (*ForgottenError) Reason() string { return "lost" }

// GivePast gives an ID to each instant, unique like every other of the sequencer: each is of the tick that its instant
// lies in. The job's first call reserves a node ID for it. Nothing but the job's fence says what it has given, so any
// member may be asked, and several at once.
//
// A *past.RefusedError is returned when an instant can have no ID, or After is not of the job, a *RefusedError when
// there is no node ID for another job, and a *ForgottenError when the store does not know of After. The other errors
// are those of Reserve; IDs may have been given to nobody then.
func (m *Member) GivePast(ctx context.Context, sequencer string, p Past) (PastIDs, error) {
	q, err := m.latest(ctx, sequencer)
	if err != nil {
		return PastIDs{}, err
	}
	r := q.Reservation(jobs + p.Job)
	if r == nil && p.After != 0 {
		return PastIDs{}, &ForgottenError{p.Job, p.After}
	}
	if r == nil && p.End && len(p.Times) == 0 {
		return PastIDs{Node: -1}, nil // it was ended before
	}
	began := r == nil
	if began {
		if r, err = m.beginJob(ctx, sequencer, q, p.Job); err != nil {
			return PastIDs{}, err
		}
	}
	answer, err := m.givePast(ctx, sequencer, q, r, p)
	for errors.Is(err, fence.ErrNotReserved) { // the Reserve that put it in the log has not got further yet
		if r, _, err = m.Reserve(ctx, sequencer, cluster.Reserving{For: r.For, Nodes: r.Nodes}); err == nil {
			answer, err = m.givePast(ctx, sequencer, q, r, p)
		}
	}
	answer.Began = began
	if err == nil && p.End {
		err = m.Release(ctx, sequencer, r.For, time.Time{}) // the fence knows how far it was used
	}
	return answer, err
}

// beginJob reserves a node ID for a job: one that was never used, or the one whose last owner ended first.
func (m *Member) beginJob(ctx context.Context, name string, q cluster.Sequencer, job string) (*cluster.Reservation,
	error,
) {
	begun := 0
	for r := range q.Reservations() {
		if strings.HasPrefix(r.For, jobs) {
			begun++
		}
	}
	c := cluster.Reserve{Sequencer: name, Created: q.Created(), Reserving: cluster.Reserving{For: jobs + job}}
	if begun >= MostJobs {
		return nil, &RefusedError{c, fmt.Sprintf("%d jobs have begun; want at most %d at once: end one, or release "+
			"what is reserved for one that is over", begun, MostJobs)}
	}
	owners, err := m.Owners(ctx, name)
	if err != nil {
		return nil, err
	}
	if node, found := freest(q, owners); found {
		c.Nodes = []int64{node}
	} else {
		c.Count = 1 // which the log refuses
	}
	r, _, err := m.Reserve(ctx, name, c.Reserving)
	return r, err
}

// freest returns the node ID whose IDs may begin first of those that nobody has: the highest of those that were never
// used.
func freest(q cluster.Sequencer, owners []fence.Owner) (node int64, ok bool) {
	var first fence.Owner
	for n, all := q.NodeIDs().To, q.NodeIDs(); n >= all.From; n-- {
		if !q.Unused(n) {
			continue
		}
		i, used := slices.BinarySearchFunc(owners, n, func(o fence.Owner, n int64) int {
			return cmp.Compare(o.Node, n)
		})
		if !used {
			return n, true
		}
		if o := owners[i]; !o.Live && (!ok || o.Horizon.Before(first.Horizon)) {
			first, ok = o, true
		}
	}
	return first.Node, ok
}

// givePast takes the time of the IDs from the job's reservation.
func (m *Member) givePast(ctx context.Context, name string, q cluster.Sequencer, r *cluster.Reservation,
	p Past,
) (answer PastIDs, err error) {
	if err := m.judged().err(); err != nil {
		return answer, err
	}
	losses, known := m.losses.Load(), store.Version(0)
	at := fmt.Sprint(name, "/", r.Nodes[0])
	if seen, ok := m.jobs.Load(at); ok && seen.(floorAt).losses == losses {
		known = seen.(floorAt).version
	}
	rule := past.Rule{Layout: q.Definition().IDLayout(), Node: r.Nodes[0], Move: p.Move}
	for {
		var guards []store.Condition
		var from time.Time
		if guards, from, err = m.mayReserve(ctx, name, q); err != nil {
			return answer, err
		}
		known, err = fence.Use(ctx, m.store, fencePrefix(name), r.Nodes[0], r.Since, known,
			func(t fence.Time) (fence.Time, error) {
				var why error
				rule.Until = m.now()
				answer, t, why = take(rule, q.Definition(), t, from, p)
				return t, why
			}, guards...)
		if errors.Is(err, fence.ErrClosed) { // the generation has ended, or the floor was raised
			if err := retry.Sleep(ctx, backoff.First); err != nil {
				return answer, err
			}
			continue
		}
		break
	}
	if err == nil {
		m.jobs.Store(at, floorAt{losses, known})
	}
	m.breaks(losses, err)
	return answer, err
}

// take returns the IDs, and what is left of a job's time, from which nothing before an instant may be used.
func take(rule past.Rule, d cluster.Definition, t fence.Time, from time.Time, p Past) (answer PastIDs, left fence.Time,
	err error,
) {
	var progress past.Progress
	if t.Note == "" {
		from = later(from, t.From)
	} else if progress, err = past.Parse(t.Note); err != nil {
		return answer, t, err
	}
	if progress, err = rule.Begin(progress, from); err != nil {
		return answer, t, err
	}
	if p.After != 0 {
		after := p.After
		if d.Scattered {
			after = firn.Gather(after)
		}
		switch known, err := rule.Holds(progress, after); {
		case err != nil:
			return answer, t, err
		case !known:
			return answer, t, &ForgottenError{p.Job, p.After}
		}
	}
	after, ids, moved, err := rule.Give(progress, p.Times, rule.Call(p.Key, p.Times))
	if err != nil {
		return answer, t, err
	}
	if d.Scattered {
		for i := range ids {
			ids[i] = firn.Scatter(ids[i])
		}
	}
	if after != progress {
		t = fence.Time{From: rule.End(after), Note: after.String()}
	}
	return PastIDs{IDs: ids, Moved: moved, Node: rule.Node, Reached: rule.Reached(after)}, t, nil
}
