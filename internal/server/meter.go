package server

import "time"

// Meter counts calls of all protocols. Its methods are safe for concurrent use.
type Meter interface {
	// Call is what counts the calls of a name over a protocol. Servers ask for it once, when they are made: there are only
	// so many names.
	Call(protocol, name string) Call
}

// Call counts the calls of one name over one protocol.
type Call interface {
	// Done counts n calls that came to the same, and took so long each. Negative: that is not known, or says nothing, as of
	// calls that last as long as the caller wants.
	Done(code Code, n int, took time.Duration)
}

// What calls come to besides errors that have a Code.
const (
	OK   Code = "ok"
	Gone Code = "gone" // the caller went away, or waits no longer
)

// Untimed is how long a call took that is not to be timed.
const Untimed time.Duration = -1

// Call is what counts the calls of a name over a protocol, as Meter.Call; it does nothing without a Meter.
func (s *Service) Call(protocol, name string) Call {
	if s.options.Meter == nil {
		return uncounted{}
	}
	return s.options.Meter.Call(protocol, name)
}

// Metered tells whether somebody counts the calls.
func (s *Service) Metered() bool { return s.options.Meter != nil }

type uncounted struct{}

func (uncounted) Done(Code, int, time.Duration) {}
