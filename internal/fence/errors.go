package fence

import (
	"errors"
	"fmt"
	"time"
)

// ErrLost is returned when a node ID has been taken away, or its session has ended: the fence can
// never be extended again. The time up to its horizon remains usable.
var ErrLost = errors.New("the node ID is lost")

// ErrClosed is returned when the guard of a claim does not hold any more: nobody can claim a node ID
// under it again.
var ErrClosed = errors.New("closed to claims")

// HeldError is returned when a node ID is held by somebody else.
type HeldError struct{ Node int64 }

func (e *HeldError) Error() string {
	return fmt.Sprintf("node ID %d is held by another owner", e.Node)
}

// ClockBehindError is returned when a node ID is free, but was used further into the future of
// the own clock than it is worth waiting: the clock is wrong, or that of an earlier owner
// was.
type ClockBehindError struct {
	Node    int64
	Behind  time.Duration // how far the clock is behind the floor
	MaxWait time.Duration
}

func (e *ClockBehindError) Error() string {
	if e.Behind >= unreadable {
		return fmt.Sprintf("the horizon of node ID %d can't be read, so nobody may use the node ID", e.Node)
	}
	return fmt.Sprintf("this machine's clock is %v behind the time up to which node ID %d was used; up to %v is waited for",
		e.Behind, e.Node, e.MaxWait)
}

// ClockAheadError is returned when the own clock is so far ahead of the living owners' that what it
// would write down could keep others from using the node ID for long.
type ClockAheadError struct {
	Ahead   time.Duration // how far the clock is ahead of the median of their horizons
	MaxSkew time.Duration
	Owners  int // how many they are
}

func (e *ClockAheadError) Error() string {
	return fmt.Sprintf("this machine's clock is %v ahead of the horizons that the living owners (%d) have written; up to %v is accepted",
		e.Ahead, e.Owners, e.MaxSkew)
}
