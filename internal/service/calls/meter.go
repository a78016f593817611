package calls

import (
	"time"

	"github.com/firn-id/firn/internal/service/codes"
)

// Meter counts calls of all protocols. Its methods are safe for concurrent use.
type Meter interface {
	// Call returns the counter of the calls of one name over one protocol. Protocol servers call it once for each
	// name, when they are made. The names are a fixed set.
	Call(protocol, name string) Call
}

// Call counts the calls of one name over one protocol.
type Call interface {
	// Done counts n calls with the same outcome and duration. It does not time them when took is negative, as for
	// calls that last as long as the caller wants.
	Done(code codes.Code, n int, took time.Duration)
}

// Untimed is the duration of a call that is not timed.
const Untimed time.Duration = -1

// Call is Meter.Call. Without a Meter it counts nothing.
func (s *Service) Call(protocol, name string) Call {
	if s.options.Meter == nil {
		return uncounted{}
	}
	return s.options.Meter.Call(protocol, name)
}

// Metered reports whether there is a Meter.
func (s *Service) Metered() bool { return s.options.Meter != nil }

type uncounted struct{}

func (uncounted) Done(codes.Code, int, time.Duration) {}
