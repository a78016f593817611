package fence

import (
	"errors"
	"fmt"
	"testing"

	"github.com/firn-id/firn/store"
)

// The proof in proofs/Fence.v is about a model with seven steps. This file says which of them each transition of the exploration
// is, so that what the proof says of the model holds for Step: every transition of every world must be one of
//
//	Read, Send, Apply, Learn, Stop, Release
//
// or change nothing that the model has. Use, the seventh, is what an owner may do at any time between floor and bound,
// until it has ended. Live keys, and what an owner waits for, are not in the model.
//
// Copies are not in that model: that a process is copied is a step of its own, after which there is one more owner, who may
// learn of what was written or sent before as if it were its own.
//
// The one difference: once an owner has ended, its bound may be lower than the model's, which matters no more.

// modelOwner is the model's owner: what Fence.v's record has, but for the base, which never changes.
type modelOwner struct {
	began, ended       bool
	floor, bound, last int64
	known              store.Version
}

// modelWrite is a transaction, or a version of the key, as the model has it.
type modelWrite struct {
	version store.Version // what it expects, or what it was written under
	horizon int64
}

func (o *owner) model() modelOwner {
	m := modelOwner{began: o.mode != idle, ended: o.stopped, floor: o.state.Floor, bound: o.state.Horizon, known: o.state.Reported}
	if m.ended {
		m.last = o.state.End
	}
	return m
}

// sent returns the owner's transactions that the store may still apply.
func (o *owner) sent() map[modelWrite]int {
	all := map[modelWrite]int{}
	for _, f := range o.flights {
		if f.fate == sent {
			all[modelWrite{f.write.IfReported, f.write.Horizon}]++
		}
	}
	return all
}

// wrote returns the versions that are known to be the owner's.
func (w *world) wrote(i int) (all []modelWrite) {
	if w.reportedMine[i] {
		all = append(all, modelWrite{w.reported, w.horizon})
	}
	for _, f := range w.owners[i].flights {
		if f.fate == wasApplied {
			all = append(all, modelWrite{f.version, f.write.Horizon})
		}
	}
	return all
}

// modelSteps returns the steps of the model that lead from one world to the next. An error is returned when none do.
func modelSteps(from, to *world) (steps []string, err error) {
	if from.reported != to.reported || from.horizon != to.horizon || from.reportedOwner != to.reportedOwner {
		by := int(to.reportedOwner)
		x := modelWrite{from.reported, to.horizon}
		if from.owners[by].sent()[x] == 0 || to.reported <= from.reported {
			return nil, fmt.Errorf("the key gets the horizon %d under version %d from owner %d, which sent %v", to.horizon, to.reported, by, from.owners[by].sent())
		}
		steps = append(steps, "Apply")
	}
	for i := range from.owners {
		if from.owners[i] == to.owners[i] {
			continue
		}
		a, b := from.owners[i].model(), to.owners[i].model()
		step, err := ownerStep(from, i, a, b)
		if err != nil {
			return nil, fmt.Errorf("owner %d, from %+v to %+v: %w", i, a, b, err)
		}
		if step != "" {
			steps = append(steps, step)
		}
		before := from.owners[i].sent()
		for x, n := range to.owners[i].sent() {
			if n <= before[x] {
				continue
			}
			switch {
			case !b.began || x.version != b.known:
				return nil, fmt.Errorf("owner %d, %+v, sends %+v", i, b, x)
			case b.ended && x.horizon == b.last:
				steps = append(steps, "Release")
			case !b.ended && x.horizon >= b.bound:
				steps = append(steps, "Send")
			default:
				return nil, fmt.Errorf("owner %d, %+v, sends %+v", i, b, x)
			}
		}
	}
	return steps, nil
}

// ownerStep returns the step by which an owner changed, or nothing if it did not change.
func ownerStep(from *world, i int, a, b modelOwner) (string, error) {
	switch {
	case a == b:
		return "", nil
	case !a.began:
		if b.ended || b.floor < from.horizon || b.bound != b.floor || b.known != from.reported {
			return "", fmt.Errorf("no Read of the horizon %d at version %d", from.horizon, from.reported)
		}
		return "Read", nil
	case a.floor != b.floor:
		return "", errors.New("the floor moves")
	case !a.ended && b.ended:
		if b.bound != a.bound || b.known != a.known || b.last < b.floor {
			return "", errors.New("no Stop")
		}
		return "Stop", nil
	case a.ended != b.ended || a.last != b.last:
		return "", errors.New("the end moves")
	}
	for _, x := range from.wrote(i) {
		learnt := max(a.bound, x.horizon)
		// Of versions that canonical has renamed, it is only certain that the present one is the latest.
		back := a.known == from.reported && x.version != from.reported
		if b.known == x.version && !back && (b.bound == learnt || b.ended && b.bound <= learnt) {
			return "Learn", nil
		}
	}
	return "", fmt.Errorf("no Learn of one of %v", from.wrote(i))
}

func TestEveryTransitionIsAStepOfTheModel(t *testing.T) {
	for _, sc := range scopes {
		count := map[string]int{}
		var wrong error
		explore(sc, func(m move, from, to *world) {
			if from.twin != to.twin {
				if a, b := from.owners[m.owner].model(), to.owners[m.arg].model(); a != b {
					wrong = fmt.Errorf("%v: the copy %+v is not like %+v", m, b, a)
				}
				count["Copy"]++
				return
			}
			steps, err := modelSteps(from, to)
			if err != nil && wrong == nil {
				wrong = fmt.Errorf("%v: %w", m, err)
			}
			if len(steps) == 0 {
				count["nothing"]++
			}
			for _, s := range steps {
				count[s]++
			}
		})
		if wrong != nil {
			t.Errorf("%+v: not a step of proofs/Fence.v: %v", sc, wrong)
		}
		t.Logf("%d owners: %v", sc.owners, count)
		for _, step := range []string{"Read", "Send", "Apply", "Learn", "Stop", "Release", "nothing"} {
			if count[step] == 0 && wrong == nil {
				t.Errorf("%+v: no transition is a %s", sc, step)
			}
		}
	}
}
