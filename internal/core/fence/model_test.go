package fence

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/firn-id/firn/internal/test/testenv"
	"github.com/firn-id/firn/store"
)

// The proof in formal/Fence.v is about a model with seven steps. This file says which of them each transition of the
// exploration is, so that what the proof says of the model holds for Step: every transition of every world must be one
// of
//
//	Read, Send, Apply, Learn, Stop, Release
//
// or change nothing that the model has. Use, the seventh, is what an owner may do at any time between floor and bound,
// until it has ended. Live keys, and what an owner waits for, are not in the model.
//
// Where a process is copied, the model is that of formal/Copy.v, in which a write bears a stamp: it has these steps,
// and Copies. Two owners share the stamps of the writes that are marked as both's, and no others.
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
	m := modelOwner{
		began: o.mode != idle, ended: o.stopped, floor: o.state.Floor, bound: o.state.Horizon,
		known: o.state.Reported,
	}
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

// shared returns those of them whose stamps a copy has, too.
func (o *owner) shared() map[modelWrite]int {
	all := map[modelWrite]int{}
	for _, f := range o.flights {
		if f.fate == sent && f.both {
			all[modelWrite{f.write.IfReported, f.write.Horizon}]++
		}
	}
	return all
}

// wrote returns the versions that may still matter and bear a stamp of the owner's.
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
			return nil, fmt.Errorf("the key gets the horizon %d under version %d from owner %d, which sent %v",
				to.horizon, to.reported, by, from.owners[by].sent())
		}
		for i, mine := range to.reportedMine {
			if mine && i != by && (!from.copied(i) || from.owners[by].shared()[x] == 0) {
				return nil, fmt.Errorf("owner %d gets a stamp that owner %d alone has sent", i, by)
			}
		}
		steps = append(steps, "Apply")
	}
	if from.reserved != to.reserved || from.original != to.original || from.twin != to.twin {
		return nil, errors.New("what copies have in common changes without a copy")
	}
	for i := range from.owners {
		if from.owners[i] == to.owners[i] {
			continue
		}
		for x, n := range to.owners[i].shared() {
			if n > from.owners[i].shared()[x] {
				return nil, fmt.Errorf("the stamp of %+v, which owner %d sends, is not new", x, i)
			}
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

// copied returns an error when what leads from one world to the next is not that owner i is copied, as owner c.
func copied(from, to *world, i, c int) error {
	before, a, b := *from, &to.owners[i], &to.owners[c]
	before.original, before.twin, before.reserved = to.original, to.twin, to.reserved
	before.owners[i].flights = a.flights // which are now marked
	before.owners[c], before.reportedMine[c] = *b, to.reportedMine[c]
	switch {
	case before != *to:
		return errors.New("more changes")
	case !from.owners[i].model().began || from.owners[c].model().began:
		return errors.New("the original has not begun, or the copy has")
	case a.model() != from.owners[i].model() || b.model() != a.model():
		return fmt.Errorf("%+v and its copy %+v are not what it was, %+v", a.model(), b.model(), from.owners[i].model())
	case !maps.Equal(a.sent(), from.owners[i].sent()) || !maps.Equal(a.shared(), a.sent()) ||
		!maps.Equal(b.shared(), a.sent()):
		return fmt.Errorf("%v and %v do not share what was sent, %v", a.shared(), b.shared(), from.owners[i].sent())
	case !slices.Equal(from.wrote(i), to.wrote(i)) || !slices.Equal(from.wrote(i), to.wrote(c)):
		return fmt.Errorf("%v and %v do not share what was written, %v", to.wrote(i), to.wrote(c), from.wrote(i))
	}
	reserved := a.model().bound
	for x := range from.owners[i].sent() {
		if x.version == a.model().known {
			reserved = max(reserved, x.horizon)
		}
	}
	for _, x := range from.wrote(i) {
		reserved = max(reserved, x.horizon)
	}
	if reserved != to.reserved {
		return fmt.Errorf("%d was reserved, not %d", reserved, to.reserved)
	}
	return nil
}

func TestEveryTransitionIsAStepOfTheModel(t *testing.T) { everyTransitionIsAStep(t, scopes) }

func TestEveryTransitionAfterACopyIsAStepOfTheModel(t *testing.T) {
	testenv.Exploration(t)
	everyTransitionIsAStep(t, scopesOfCopies)
}

func everyTransitionIsAStep(t *testing.T, scopes []scope) {
	for _, sc := range scopes {
		count := map[string]int{}
		var wrong error
		explore(sc, func(m move, from, to *world) {
			var steps []string
			var err error
			if from.twin != to.twin {
				steps, err = []string{"Copies"}, copied(from, to, m.owner, int(m.arg))
			} else {
				steps, err = modelSteps(from, to)
			}
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
			t.Errorf("%+v: not a step of formal/Fence.v, nor of Copy.v: %v", sc, wrong)
		}
		t.Logf("%d owners: %v", sc.owners, count)
		for _, step := range []string{"Read", "Send", "Apply", "Learn", "Stop", "Release", "nothing"} {
			if count[step] == 0 && wrong == nil {
				t.Errorf("%+v: no transition is a %s", sc, step)
			}
		}
		if sc.copies != (count["Copies"] > 0) {
			t.Errorf("%+v: %d processes are copied", sc, count["Copies"])
		}
	}
}
