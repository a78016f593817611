// Package door decides who comes in: it tells callers apart by the tokens that they show, and says what each may do,
// for which sequencers, and how much of it. What stands behind the door need not know how a caller was recognised.
package door

import (
	"errors"
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"
	"time"

	"golang.org/x/time/rate"
)

// Right is what a caller may do.
type Right uint8

// The rights. They can be added up.
const (
	Issue Right = 1 << iota // take IDs, and take them apart
	Admin                   // create, destroy, attach and detach sequencers, and look at the cluster

	All = Issue | Admin
)

// String is the right's name in a file of tokens.
func (r Right) String() string {
	switch r {
	case Issue:
		return "issue"
	case Admin:
		return "admin"
	case All:
		return "issue and admin"
	default:
		return fmt.Sprintf("Right(%d)", uint8(r))
	}
}

// Errors to match with errors.Is.
var (
	// ErrUnauthenticated is returned when it is not known who asks: the answer to a better token may be another.
	ErrUnauthenticated = errors.New("door: it is not known who asks")

	// ErrForbidden is returned when it is known who asks, who may not do that.
	ErrForbidden = errors.New("door: not allowed")
)

// LimitError is returned when a caller asks for more than its limit allows.
type LimitError struct {
	Caller     string
	Rate       float64       // IDs per second
	RetryAfter time.Duration // when it may be asked again, in whole milliseconds; zero: never for as many
}

func (e *LimitError) Error() string {
	perSecond := strconv.FormatFloat(e.Rate, 'f', -1, 64)
	if e.RetryAfter == 0 {
		return fmt.Sprintf("the token %q allows %s IDs a second, and no call for more than that", e.Caller, perSecond)
	}
	return fmt.Sprintf("the token %q allows %s IDs a second; try again in %v", e.Caller, perSecond, e.RetryAfter)
}

// Caller is who asks. It does not change; any number of goroutines can use it at once. Nil may do nothing.
type Caller struct {
	name       string
	rights     Right
	sequencers []string      // patterns; nil: all
	limit      *rate.Limiter // nil: none
}

var (
	anyone  = &Caller{rights: Issue}
	trusted = &Caller{rights: All}
)

// Name is the name of the caller's token, and empty for who needs none.
func (c *Caller) Name() string {
	if c == nil {
		return ""
	}
	return c.name
}

// DeniedError is returned when somebody may not do something. It wraps ErrForbidden or ErrUnauthenticated.
type DeniedError struct {
	Caller    string // the name of the token; empty: none was shown
	Sequencer string // that it is about; empty: the cluster
	Err       error  // what is missing
}

func (e *DeniedError) Error() string { return e.Err.Error() }
func (e *DeniedError) Unwrap() error { return e.Err }

// May returns nil when the caller has one of the rights for a sequencer. An empty name stands for the cluster and all of its
// sequencers. Otherwise a *DeniedError is returned that says what is missing.
func (c *Caller) May(r Right, sequencer string) error {
	if err := c.may(r, sequencer); err != nil {
		return &DeniedError{c.Name(), sequencer, err}
	}
	return nil
}

func (c *Caller) may(r Right, sequencer string) error {
	switch {
	case c == nil:
		return ErrUnauthenticated
	case c.rights&r == 0 && c.name == "":
		return fmt.Errorf("%w: administration is for the admin listener, or for a token that allows it", ErrForbidden)
	case c.rights&r == 0:
		return fmt.Errorf("%w: the token %q allows %v, not %v", ErrForbidden, c.name, c.rights, r)
	case c.sequencers == nil:
		return nil
	case sequencer == "":
		return fmt.Errorf("%w: the token %q allows the sequencers %s only, and this concerns all", ErrForbidden, c.name, strings.Join(c.sequencers, ", "))
	}
	for _, pattern := range c.sequencers {
		if ok, err := path.Match(pattern, sequencer); ok && err == nil {
			return nil
		}
	}
	return fmt.Errorf("%w: the token %q allows the sequencers %s, not %.100q", ErrForbidden, c.name, strings.Join(c.sequencers, ", "), sequencer)
}

// Spend counts n IDs, or calls that give none, against the caller's limit. A *LimitError is returned when that is more
// than it allows now; then nothing is counted. ErrUnauthenticated is returned when the caller is nil.
func (c *Caller) Spend(n int) error {
	if c == nil {
		return ErrUnauthenticated
	}
	now := time.Now()
	if c.limit == nil || c.limit.AllowN(now, n) {
		return nil
	}
	refused := &LimitError{Caller: c.name, Rate: float64(c.limit.Limit())}
	if n <= c.limit.Burst() {
		refused.RetryAfter = wait((float64(n) - c.limit.TokensAt(now)) / refused.Rate)
	}
	return refused
}

// wait is a time to wait, in whole milliseconds: at least one, as others may have given back what was missing, and a
// day at most, which is as good as any longer one.
func wait(seconds float64) time.Duration {
	const day = 24 * time.Hour
	milliseconds := math.Ceil(min(seconds, day.Seconds()) * 1000)
	return max(time.Duration(milliseconds)*time.Millisecond, time.Millisecond)
}
