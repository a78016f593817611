package counter

import "fmt"

// ResumeError is returned when an operator can't have a counter go on above a number.
type ResumeError struct {
	After int64 // what the operator said
	Last  int64 // the greatest number that anybody is known to have reserved
	Lost  bool  // the store has lost data; otherwise the counter has nothing to resume
}

func (e *ResumeError) Error() string {
	if !e.Lost {
		return fmt.Sprintf("the counter has not stopped: it goes on above %d; want one whose store has lost data", e.Last)
	}
	return fmt.Sprintf("to go on above %d; want %d or more, the greatest number that is known to be reserved, and less "+
		"than 9223372036854775807", e.After, e.Last)
}
