package member

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cluster"
)

var (
	// ErrNotReady is returned when no ID can be given now: no node ID is held yet or any more, its horizon is
	// reached, or the member has left. It passes by itself, unless one of the following is within it, or the
	// member has ended.
	ErrNotReady = errors.New("not ready to make IDs")

	// ErrWaiting is returned, within an ErrNotReady, while all node IDs are taken: the member stands in line for
	// one, and its text says in which place.
	ErrWaiting = errors.New("no node ID is free")

	// ErrDetached is returned, within an ErrNotReady, after Detach. It passes with Attach.
	ErrDetached = errors.New("the sequencer is detached; Attach attaches it again")

	// ErrDestroyed is returned, within an ErrNotReady, when the sequencer was destroyed. It does not pass: what is
	// created under the name later is another sequencer, with a handle of its own.
	ErrDestroyed = errors.New("the sequencer was destroyed; one that is created again needs a new handle")

	// ErrNoSequencer is returned when there is no sequencer of a name.
	ErrNoSequencer = errors.New("there is no such sequencer; it has to be created")

	// ErrAttachedAgain is returned by Detach when Attach is called before it is done.
	ErrAttachedAgain = errors.New("the sequencer was attached again while it was being detached")

	// ErrExplicit is returned by AttachOnDemand when the sequencer's definition says cluster.AttachExplicit.
	ErrExplicit = errors.New("the sequencer was created to be attached to explicitly")

	// ErrUnfit is returned when the member's options do not go with the definition of a sequencer that is there: its
	// window is too short for the tick, or there are no such node IDs as it wishes for.
	ErrUnfit = errors.New("this member can't take part in the sequencer")

	// ErrSequencerExists is returned when there is a sequencer of this name with another definition. The error is
	// an *ExistsError.
	ErrSequencerExists = errors.New("the sequencer exists with another definition")
)

// ExistsError is an ErrSequencerExists that says which definition is in force.
type ExistsError struct {
	Name            string
	InForce, Wanted cluster.Definition
}

func (e *ExistsError) Error() string {
	var fields []string
	for _, d := range e.InForce.Differences(e.Wanted) {
		fields = append(fields, d.String())
	}
	return fmt.Sprintf("%v: %q: %s; ask for the one in force, or take another name", ErrSequencerExists, e.Name, strings.Join(fields, "; "))
}

// Is makes it an ErrSequencerExists.
func (e *ExistsError) Is(target error) bool { return target == ErrSequencerExists }

// EarlyError is returned when the IDs of a definition do not exceed those that they must: Definition.After, and those
// of former sequencers of the name. They will in the future, too far away to be waited for, or never.
type EarlyError struct {
	After firn.ID   // the greatest that there may be
	From  time.Time // when IDs exceed it; the zero time is never
}

func (e *EarlyError) Error() string {
	when := "never do"
	if !e.From.IsZero() {
		when = "do from " + e.From.UTC().Format(time.RFC3339) + " on"
	}
	return fmt.Sprintf("every ID must exceed %d, and those of this definition %s; want an earlier epoch, more bits below the time, or another name",
		int64(e.After), when)
}

// UsedUntilError is returned by Destroy when the sequencer is destroyed, but its context ended before all
// who had a node ID had given it back.
type UsedUntilError struct {
	Name  string
	Until time.Time // until when IDs may still be made elsewhere; zero when that is not known
	Err   error     // that of the context, or of the store
}

func (e *UsedUntilError) Error() string {
	until := "for a while"
	if !e.Until.IsZero() {
		until = "until " + e.Until.UTC().Format(time.RFC3339Nano)
	}
	return fmt.Sprintf("the sequencer %q is destroyed; members that are out of reach may still make IDs of it %s: %v", e.Name, until, e.Err)
}

// Unwrap returns why it was not waited for.
func (e *UsedUntilError) Unwrap() error { return e.Err }

// Why no ID can be given, beside what the store and the fence say.
var (
	errAttaching = errors.New("its attach has not come back from the log yet")
	errLostData  = errors.New("the store has lost data; the member is joining the cluster again")
	errRejoining = errors.New("it is joining the cluster again")
	errAtHorizon = errors.New("the horizon is reached, and the store has not confirmed a later one")
	errLost      = errors.New("its node ID was lost, and there is no other yet")
	errMissed    = errors.New("it is not known what came of a decline")
	errLeft      = errors.New("it has left")
	errOpening   = fmt.Errorf("%w: its store is not open yet", ErrNotReady)
	errJoining   = fmt.Errorf("%w: it is joining the cluster", ErrNotReady)
	errNoStore   = errors.New("there is no store: it is nil")
	errHasLeft   = fmt.Errorf("%w: %w", ErrNotReady, errLeft)
)
