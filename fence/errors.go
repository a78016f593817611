package fence

import (
	"errors"
	"fmt"
	"time"
)

// ErrLost is returned when a node ID has been taken away, or its session has ended: the fence can
// never be extended again. The time up to its horizon remains usable.
var ErrLost = errors.New("fence: the node ID is lost")

// NoNodeError is returned when every node ID is held by somebody: the cluster is at capacity.
type NoNodeError struct{ First, Last int64 }

func (e *NoNodeError) Error() string {
	if e.First == e.Last {
		return fmt.Sprintf("fence: node ID %d is held by another owner", e.First)
	}
	return fmt.Sprintf("fence: no node ID is free: all %d of them, %d to %d, are held; the cluster is at capacity",
		e.Last-e.First+1, e.First, e.Last)
}

// ClockBehindError is returned when node IDs are free, but all of them were used further into
// the future of the own clock than it is worth waiting: the clock is wrong, or that of
// an earlier owner was.
type ClockBehindError struct {
	First, Last int64
	Behind      time.Duration // how far the clock is behind the nearest floor
	MaxWait     time.Duration
}

func (e *ClockBehindError) Error() string {
	which := fmt.Sprintf("node ID %d", e.First)
	if e.First != e.Last {
		which = fmt.Sprintf("every free node ID of %d to %d", e.First, e.Last)
	}
	return fmt.Sprintf("fence: this machine's clock is %v or more behind the time up to which %s was used; up to %v is waited for",
		e.Behind, which, e.MaxWait)
}

// ClockAheadError is returned when the own clock is so far ahead of the living owners' that what it
// would write down could keep others from using the node ID for long.
type ClockAheadError struct {
	Ahead   time.Duration // how far the clock is ahead of the median of their horizons
	MaxSkew time.Duration
	Owners  int // how many they are
}

func (e *ClockAheadError) Error() string {
	return fmt.Sprintf("fence: this machine's clock is %v ahead of the horizons that the living owners (%d) have written; up to %v is accepted",
		e.Ahead, e.Owners, e.MaxSkew)
}
