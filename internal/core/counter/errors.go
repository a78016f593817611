package counter

import (
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn/internal/base/floor"
)

// ErrClosed is returned when a guard of the claims no longer holds: nobody can claim numbers under it any more.
var ErrClosed = errors.New("closed to claims")

// ErrReleased is returned once the owner has left.
var ErrReleased = errors.New("it has left")

// ExhaustedError is returned when there are fewer numbers left than the caller wants.
type ExhaustedError struct {
	Last  int64     // the greatest that there is
	Until time.Time // when there are greater ones; zero: never
	soon  bool      // in the next tick
}

func (e *ExhaustedError) Error() string {
	if e.Until.IsZero() {
		return fmt.Sprintf("the numbers end at %d, and fewer are left than were asked for", e.Last)
	}
	return fmt.Sprintf("the numbers end at %d until %s, and fewer are left than were asked for", e.Last,
		e.Until.Format(time.RFC3339))
}

// Reason returns the code of the error.
func (e *ExhaustedError) Reason() string {
	if e.soon {
		return "overloaded"
	}
	return "exhausted"
}

// AheadError is returned when somebody has reserved numbers of a time that this member's clock has not reached.
type AheadError struct {
	Reserved int64 // the greatest such number
	Last     int64 // the greatest that the clock allows now
}

func (e *AheadError) Error() string {
	return fmt.Sprintf("the number %d is reserved, and this machine's clock allows none above %d yet: one of two "+
		"clocks is wrong by more than %v", e.Reserved, e.Last, floor.Skew)
}

// Reason returns the code of the error.
func (*AheadError) Reason() string { return "clock" }

// SmallerError is returned when a definition would give numbers that are not above all before.
type SmallerError struct {
	After int64 // the greatest number before
	Last  int64 // the greatest that there is now
}

func (e *SmallerError) Error() string {
	return fmt.Sprintf("its numbers would have to exceed %d, and those of the present time end at %d; want "+
		"another name, "+
		"or a date or layout whose numbers are greater", e.After, e.Last)
}

// Reason returns the code of the error, as docs/errors.md has it.
func (*SmallerError) Reason() string { return "refused" }

// LostError is returned after the store has lost data, until an operator resumes the counter.
type LostError struct {
	Last int64 // the greatest number that is known to be reserved, here or in the store
}

func (e *LostError) Error() string {
	return fmt.Sprintf("the store has lost data, so that numbers could come again; the greatest one that is known to "+
		"be reserved is %d; have the counter resume above all that were given", e.Last)
}

// Reason returns the code of the error.
func (*LostError) Reason() string { return "lost" }

// ResumeError is returned when an operator can't have a counter go on above a number.
type ResumeError struct {
	After int64 // what the operator said
	Last  int64 // the greatest number that is known to be reserved
	Most  int64 // the greatest that the counter has now
	Lost  bool  // the store has lost data; otherwise the counter has nothing to resume
}

func (e *ResumeError) Error() string {
	if !e.Lost {
		return fmt.Sprintf("the counter has not stopped: it goes on above %d; only one whose store has lost data "+
			"resumes", e.Last)
	}
	return fmt.Sprintf("to resume above %d; want %d, the greatest number that is known to be reserved, to %d, the "+
		"greatest that there is now", e.After, e.Last, e.Most)
}

// Reason returns the code of the error, as docs/errors.md has it.
func (*ResumeError) Reason() string { return "refused" }
