package doctor

import (
	"time"

	"golang.org/x/sys/unix"
)

// seeClock asks the kernel about the clock; nil: unknown.
func seeClock() *Clock {
	var t unix.Timex
	state, err := unix.Adjtimex(&t) // it only reads
	if err != nil {
		return nil
	}
	return &Clock{
		Synchronised: state != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0,
		MaxError:     time.Duration(t.Maxerror) * time.Microsecond,
	}
}
