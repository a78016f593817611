package counter

import (
	"errors"
	"fmt"
)

// ErrClosed is returned when a guard of the claims no longer holds: nobody can claim numbers under it any more.
var ErrClosed = errors.New("closed to claims")

// ErrReleased is returned once the owner has left.
var ErrReleased = errors.New("it has left")

// ExhaustedError is returned when there are fewer numbers left than the caller wants.
type ExhaustedError struct{ Last int64 } // the greatest that there is

func (e *ExhaustedError) Error() string {
	return fmt.Sprintf("the counter ends at %d, and has fewer numbers left than were asked for", e.Last)
}

// Reason returns the code of the error.
func (*ExhaustedError) Reason() string { return "exhausted" }

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
	Lost  bool  // the store has lost data; otherwise the counter has nothing to resume
}

func (e *ResumeError) Error() string {
	if !e.Lost {
		return fmt.Sprintf("the counter has not stopped: it goes on above %d; only one whose store has lost data "+
			"resumes", e.Last)
	}
	return fmt.Sprintf("to resume above %d; want %d or more, the greatest number that is known to be reserved, and "+
		"less than 9223372036854775807", e.After, e.Last)
}

// Reason returns the code of the error, as docs/errors.md has it.
func (*ResumeError) Reason() string { return "refused" }
