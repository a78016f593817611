package member

import (
	"errors"
	"fmt"

	"github.com/firn-id/firn/cluster"
)

var (
	// ErrNotReady is returned when no ID can be given now: no node ID is held yet or any more, its
	// horizon is reached, or the member has left. Except after Leave it passes by itself.
	ErrNotReady = errors.New("member: not ready to make IDs")

	// ErrWaiting is returned, within an ErrNotReady, while all node IDs are taken: the member stands in line
	// for one.
	ErrWaiting = errors.New("no node ID is free")

	// ErrDestroyed is returned, within an ErrNotReady, when the sequencer was destroyed. It does not pass.
	ErrDestroyed = errors.New("the sequencer was destroyed")

	// ErrSequencerExists is returned when there is a sequencer of this name with another definition: IDs of both
	// could be the same. The error is an *ExistsError.
	ErrSequencerExists = errors.New("member: the sequencer exists with another definition")
)

// ExistsError is an ErrSequencerExists that says which definition is in force.
type ExistsError struct {
	Name            string
	InForce, Wanted cluster.Definition
}

func (e *ExistsError) Error() string {
	return fmt.Sprintf("%v: %q has %v; wanted is %v", ErrSequencerExists, e.Name, e.InForce, e.Wanted)
}

// Is makes it an ErrSequencerExists.
func (e *ExistsError) Is(target error) bool { return target == ErrSequencerExists }

// Why no ID can be given, beside what the store and the fence say.
var (
	errAttaching = errors.New("its attach has not come back from the log yet")
	errRejoining = errors.New("it is joining the cluster again")
	errLeft      = errors.New("it has left")
	errHasLeft   = fmt.Errorf("%w: %w", ErrNotReady, errLeft)
)
