// Package auth decides what each caller may do: it tells callers apart by the tokens that they send, and says which
// sequencers each may use, for what, and how much. It knows no protocol: those hand it a token and get a Caller.
package auth

import (
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/firn-id/firn/internal/base/reason"
	"github.com/firn-id/firn/internal/service/codes"
)

// Right is what a caller may do.
type Right uint8

// The rights. They can be added up.
const (
	Issue  Right = 1 << iota // take and decode IDs
	Admin                    // create, destroy, attach and detach sequencers, and look at the cluster
	Attach                   // make a node attach to a sequencer, by a call to attach or by one for an ID
	Open                     // open sealed IDs, and seal IDs that the caller has
	Import                   // take IDs of past instants, which reserves node IDs
	Order                    // move ID time further ahead of the clock than any caller may, for an ID to exceed another

	All = Issue | Admin | Attach | Open | Import | Order
)

// rights are the rights by their names, in a file of tokens and elsewhere.
var rights = [...]struct {
	right Right
	name  string
}{{Issue, "issue"}, {Open, "open"}, {Import, "import"}, {Order, "order"}, {Attach, "attach"}, {Admin, "admin"}}

// String is the right's name in a file of tokens, and of several their names: "issue and admin".
func (r Right) String() string { return r.list("and") }

// list is the names of the rights, with a word before the last.
func (r Right) list(word string) string {
	var names []string
	for _, known := range rights {
		if r&known.right != 0 {
			names = append(names, known.name)
		}
	}
	switch last := len(names) - 1; {
	case last < 0 || r&^All != 0:
		return fmt.Sprintf("Right(%d)", uint8(r))
	case last == 0:
		return names[0]
	default:
		return strings.Join(names[:last], ", ") + " " + word + " " + names[last]
	}
}

// Errors to match with errors.Is.
var (
	// ErrUnauthenticated is returned when the caller is not known: it sends no token, or a wrong one.
	ErrUnauthenticated = reason.New(string(codes.Unauthenticated), "the caller is not known")

	// ErrForbidden is returned when the caller is known and may not do that.
	ErrForbidden = reason.New(string(codes.Forbidden), "the caller is not allowed to do that")
)

// isRefusal tells whether an error says that a caller may not do something.
func isRefusal(err error) bool {
	return errors.Is(err, ErrUnauthenticated) || errors.Is(err, ErrForbidden)
}

// refusal is an error of one of these kinds, for people.
type refusal struct {
	kind error
	text string
}

func (e *refusal) Error() string { return e.text }
func (e *refusal) Unwrap() error { return e.kind }

func unauthenticated(format string, args ...any) error {
	return &refusal{ErrUnauthenticated, fmt.Sprintf(format, args...)}
}

func forbidden(format string, args ...any) error {
	return &refusal{ErrForbidden, fmt.Sprintf(format, args...)}
}

// ErrNoToken is returned for callers who have sent no token, where one is required. It is an ErrUnauthenticated.
var ErrNoToken = unauthenticated("missing token: send `Authorization: Bearer ...`")

// LimitError is returned when a caller asks for more than its limit allows.
type LimitError struct {
	Caller     string
	Rate       float64       // IDs per second
	RetryAfter time.Duration // in whole milliseconds; zero: the limit never allows as many at once
}

func (e *LimitError) Error() string {
	perSecond := strconv.FormatFloat(e.Rate, 'f', -1, 64)
	if e.RetryAfter == 0 {
		return fmt.Sprintf("the token %q allows %s IDs per second, and at most as many in one call; ask for fewer",
			e.Caller, perSecond)
	}
	return fmt.Sprintf("the token %q allows %s IDs per second; try again in %v", e.Caller, perSecond, e.RetryAfter)
}

// Reason returns the code of the error, as docs/errors.md has it.
func (*LimitError) Reason() string { return string(codes.RateLimited) }

// Caller is who makes a call. It does not change and is safe for concurrent use. Nil may do nothing.
type Caller struct {
	name       string
	rights     Right
	sequencers []string // patterns; nil: all
	// patterns of those that it may give to sequencers; nil: none if sequencers are limited, else all
	prefixes []string
	quota    int                    // how many there may be of its sequencers when it creates one; 0: see Quota
	limit    *rate.Limiter          // nil: none
	local    *Secret                // that it would need and did not send; nil: none
	calls    *atomic.Int64          // that go on; nil: not counted
	sent     atomic.Pointer[string] // the token itself, once somebody has sent it; nil: none, or nobody has
}

var (
	anyone  = &Caller{rights: Issue | Open}
	trusted = &Caller{rights: All}
)

// Name is the name of the caller's token; empty: it needs none.
func (c *Caller) Name() string {
	if c == nil {
		return ""
	}
	return c.name
}

// Token is what the caller has sent, for a call that another node answers; empty: it needs none.
func (c *Caller) Token() string {
	if c == nil {
		return ""
	}
	if sent := c.sent.Load(); sent != nil {
		return *sent
	}
	return ""
}

// DeniedError is returned when a caller may not do something. It wraps ErrForbidden or ErrUnauthenticated.
type DeniedError struct {
	Caller    string // the name of the token; empty: the caller sent none
	Sequencer string // that the call is for; empty: the cluster
	Err       error  // what is missing
}

func (e *DeniedError) Error() string { return e.Err.Error() }
func (e *DeniedError) Unwrap() error { return e.Err }

// May returns nil when the caller has one of the rights for a sequencer. An empty name stands for the cluster and all
// of its sequencers. Otherwise a *DeniedError is returned that says what is missing.
func (c *Caller) May(r Right, sequencer string) error {
	if err := c.may(r, sequencer); err != nil {
		return &DeniedError{c.Name(), sequencer, err}
	}
	return nil
}

func (c *Caller) may(r Right, sequencer string) error {
	if r == Look {
		if c != nil && c.rights&Look != 0 {
			return nil
		}
		r = Admin
	}
	switch {
	case c == nil:
		return ErrNoToken
	case c.rights&r == 0 && c.local != nil:
		return c.local.missing(false)
	case c.rights&r == 0 && c.name == "":
		return forbidden("administration needs the admin listener, or a token that allows admin")
	case c.rights&r == 0:
		return forbidden("the token %q allows %v, not %s", c.name, c.rights, r.list("or"))
	case c.sequencers == nil:
		return nil
	case sequencer == "":
		return forbidden("the token %q allows the sequencers %s only, and this call concerns all", c.name,
			strings.Join(c.sequencers, ", "))
	}
	if matches(c.sequencers, sequencer) {
		return nil
	}
	return forbidden("the token %q allows the sequencers %s, not %.100q", c.name,
		strings.Join(c.sequencers, ", "), sequencer)
}

func matches(patterns []string, text string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, text)
		return ok && err == nil
	})
}

// MayPrefix returns nil when a caller that may create a sequencer may give it a prefix; empty: none. Otherwise a
// *DeniedError is returned.
func (c *Caller) MayPrefix(sequencer, prefix string) error {
	switch {
	case prefix == "" || c != nil && c.prefixes == nil && c.sequencers == nil ||
		c != nil && matches(c.prefixes, prefix):
		return nil
	case c == nil:
		return &DeniedError{"", sequencer, ErrNoToken}
	case c.prefixes == nil:
		return &DeniedError{
			c.name, sequencer,
			forbidden("the token %q allows some sequencers only, and no prefixes; its entry can name some", c.name),
		}
	default:
		return &DeniedError{c.name, sequencer, forbidden("the token %q allows the prefixes %s, not %.100q", c.name,
			strings.Join(c.prefixes, ", "), prefix)}
	}
}

// Quota returns how many sequencers of which names, as patterns, there may be when the caller creates one, in a cluster
// that may have so many in all. No names: all. By default whom the token limits to some sequencers may have a tenth of
// all, and at least one; 0: nothing but that limits the caller.
func (c *Caller) Quota(all int) (names []string, most int) {
	switch {
	case c == nil || c.quota == 0 && c.sequencers == nil:
		return nil, 0
	case c.quota == 0:
		return c.sequencers, max(1, all/10)
	default:
		return c.sequencers, c.quota
	}
}

// MayAttachOnDemand returns nil when the caller's call for an ID may make a node attach to the sequencer. A caller that
// needs no token may do that; any other needs the right Attach or Admin, as the node takes a node ID that others may
// then lack.
func (c *Caller) MayAttachOnDemand(sequencer string) error {
	if c != nil && c.name == "" {
		return nil
	}
	return c.May(Attach|Admin, sequencer)
}

// Begin counts a call of a token until End, and is false beyond seven eighths of so many in all, and at least one: one
// token leaves room for others.
func (c *Caller) Begin(all int) bool {
	if c == nil || c.calls == nil || c.calls.Add(1) <= max(1, int64(all)*7/8) {
		return true
	}
	c.calls.Add(-1)
	return false
}

// End ends a call for which Begin was true.
func (c *Caller) End() {
	if c != nil && c.calls != nil {
		c.calls.Add(-1)
	}
}

// Spend counts n IDs, or calls that give none, against the caller's limit. A *LimitError is returned, and nothing
// counted, when that is more than it allows now; ErrUnauthenticated when the caller is nil.
func (c *Caller) Spend(n int) error {
	if c == nil {
		return ErrNoToken
	}
	if c.limit == nil {
		return nil
	}
	now := time.Now()
	if c.limit.AllowN(now, n) {
		return nil
	}
	refused := &LimitError{Caller: c.name, Rate: float64(c.limit.Limit())}
	if n <= c.limit.Burst() {
		refused.RetryAfter = wait((float64(n) - c.limit.TokensAt(now)) / refused.Rate)
	}
	return refused
}

// wait is a time to wait in whole milliseconds, from one to those of a day.
func wait(seconds float64) time.Duration {
	const day = 24 * time.Hour
	milliseconds := math.Ceil(min(seconds, day.Seconds()) * 1000)
	return max(time.Duration(milliseconds)*time.Millisecond, time.Millisecond)
}
