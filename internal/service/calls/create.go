package calls

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/reason"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/codes"
)

// Created is the answer to Create.
type Created struct {
	StatusSequencer
	Warnings []string `json:"warnings,omitempty"` // for its creator
}

// maxCreates is how many sequencers are created at a time: callers share these, so that none of them has others wait.
const maxCreates = 64

// quotaError says that there are as many sequencers as a caller may create. It wraps a *cluster.QuotaError.
type quotaError struct {
	error
	than string // what to do about it
}

func (e *quotaError) Error() string { return e.error.Error() + ", or " + e.than }
func (e *quotaError) Unwrap() error { return e.error }

// Create creates a sequencer, and reports whether it did not exist before. It returns a *peer.ExistsError when
// one has another definition, a *cluster.PrefixError when another one has its prefix, and an error of the code Quota
// when there are as many as Options or the caller's token allow. Of one that is new so many node IDs are reserved for
// later, see cluster.Later. Unless that is 0, a *peer.RefusedError is returned when it exists, and has another number
// of them.
func (s *Service) Create(ctx context.Context, who *auth.Caller, name string, d cluster.Definition,
	later int64,
) (c Created, created bool, err error) {
	defer func(ctx context.Context) { s.changed(ctx, who, "create", name, err) }(ctx)
	ctx, end, err := s.administer(ctx, who, auth.Admin, name)
	if err != nil {
		return Created{}, false, err
	}
	defer end()
	if name == "." || name == ".." { // browsers and most clients resolve such a path to another one
		return Created{}, false, Input(fmt.Errorf("the sequencer's name %q can't be in a URL; want another", name))
	}
	if _, err := d.Dated.Location(); err != nil {
		return Created{}, false, Input(err)
	}
	if err := checkLater(d, later); err != nil {
		return Created{}, false, Input(err)
	}
	if err := who.MayPrefix(name, d.Prefix); err != nil {
		return Created{}, false, err
	}
	created, err = s.create(ctx, who, name, d, later)
	q, known := s.member.Value().Sequencer(name)
	if err == nil && !known {
		err = fmt.Errorf("%w: %q; it was destroyed a moment after it was created", peer.ErrNoSequencer, name)
	}
	var early *peer.EarlyError
	if errors.As(err, &early) || errors.Is(err, firn.ErrLifetime) {
		err = Input(err)
	}
	if err != nil {
		return Created{}, false, err
	}
	c = Created{StatusSequencer: s.describe(name, q)}
	c.Warnings = s.warnings(ctx, name, d, created)
	return c, created, nil
}

// checkLater returns an error when a sequencer of a definition can't have so many node IDs for later.
func checkLater(d cluster.Definition, later int64) error {
	switch most := min(d.Capacity(), cluster.MaxReserved); {
	case later == 0:
		return nil
	case d.Claimed():
		return fmt.Errorf(`"reserve" is %d; want none: a counter and a strict order have no node IDs`, later)
	case later < 0 || later > most:
		return fmt.Errorf(`"reserve" is %d; want 0 to %d`, later, most)
	}
	return nil
}

// warnings is what the creator of a sequencer should know.
func (s *Service) warnings(ctx context.Context, name string, d cluster.Definition, created bool) (all []string) {
	if warning, err := d.Check(time.Now()); err == nil && warning != "" {
		all = append(all, warning)
	}
	if d.Claimed() && created {
		if record, err := s.member.CounterRecord(ctx, name); err == nil && record.Lost() {
			all = append(all,
				fmt.Sprintf("the store has lost data before, so %s gives nothing until firn "+
					"sequencer resume %s --after N says above which number; N is 0 if nobody was ever given one",
					name, name))
		}
	}
	for other, q := range s.member.Value().Sequencers() {
		if other != name && d.Kind == cluster.Snowflake && q.Definition().Kind == cluster.Snowflake &&
			(firn.UUID{}).Tagged(other) == (firn.UUID{}).Tagged(name) {
			all = append(all,
				fmt.Sprintf("UUIDs of the sequencer %s have the same tag: those of both may be equal", other))
		}
	}
	return all
}

// create creates a sequencer within the quotas of the cluster and of the caller. The log decides that, so callers can't
// exceed them together.
func (s *Service) create(ctx context.Context, who *auth.Caller, name string, d cluster.Definition,
	later int64,
) (created bool, _ error) {
	origin, _ := ctx.Value(originKey{}).(Origin)
	release, err := s.creating.hold(ctx, partyOf(who, origin.Remote), origin.Remote, 1)
	if errors.Is(err, context.DeadlineExceeded) {
		err = ErrCrowded
	}
	if err != nil {
		return false, err
	}
	defer release()
	all := s.options.MaxSequencers
	quotas := []cluster.Quota{{Most: int64(all)}}
	if names, most := who.Quota(all); most > 0 {
		quotas = append(quotas, cluster.Quota{Names: names, Most: int64(most)})
	}
	if later == 0 {
		created, err = s.member.Create(ctx, name, d, quotas...)
	} else {
		created, err = s.member.CreateReserving(ctx, name, d, later, quotas...)
	}
	var full *cluster.QuotaError
	switch {
	case !errors.As(err, &full):
		return created, err
	case full.Most == int64(all) && full.Names == nil:
		return false, &quotaError{err, "raise --max-sequencers"}
	default:
		return false, &quotaError{err, fmt.Sprintf("raise the quota of the token %q", who.Name())}
	}
}

// Destroyed is the answer to Destroy.
type Destroyed struct {
	Name      string     `json:"name"`
	Destroyed bool       `json:"destroyed"`         // true
	Until     *time.Time `json:"until,omitempty"`   // until when other members may make IDs; absent: unknown
	Message   string     `json:"message,omitempty"` // for people; empty when no member makes IDs any more
}

var errInUse = reason.New(string(codes.InUse), "can't be destroyed: it serves calls that name no sequencer")

// Destroy destroys a sequencer.
func (s *Service) Destroy(ctx context.Context, who *auth.Caller, name string) (_ Destroyed, err error) {
	defer func(ctx context.Context) { s.changed(ctx, who, "destroy", name, err) }(ctx)
	ctx, end, err := s.administer(ctx, who, auth.Admin, name)
	if err != nil {
		return Destroyed{}, err
	}
	defer end()
	if name == peer.DefaultSequencer {
		return Destroyed{}, fmt.Errorf("the sequencer %q %w", name, errInUse)
	}
	err = s.member.Destroy(ctx, name)
	d := Destroyed{Name: name, Destroyed: true}
	var used *peer.UsedUntilError
	if errors.As(err, &used) {
		d.Message = used.Error()
		if until := used.Until.UTC(); !until.IsZero() {
			d.Until = &until
		}
		return d, nil
	}
	return d, err
}

// Reason returns the code of the error, as docs/errors.md has it.
func (*quotaError) Reason() string { return string(codes.Quota) }
