package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cluster"
	"github.com/firn-id/firn/internal/server/auth"
	"github.com/firn-id/firn/member"
)

// Created is the answer to Create.
type Created struct {
	StatusSequencer
	Warnings []string `json:"warnings,omitempty"` // for its creator
}

// quotaError says that the cluster has as many sequencers as this node allows.
type quotaError struct{ there, most int }

func (e *quotaError) Error() string {
	return fmt.Sprintf("there are %d sequencers, and this node creates none beyond %d; destroy one that nobody needs, or raise --max-sequencers", e.there, e.most)
}

// Create creates a sequencer, and reports whether it did not exist before. It returns a *member.ExistsError when
// one has another definition, and an error of the code Quota when there are as many as Options allow.
func (s *Service) Create(ctx context.Context, who *auth.Caller, name string, d cluster.Definition) (c Created, created bool, err error) {
	defer func(ctx context.Context) { s.changed(ctx, who, "create", name, err) }(ctx)
	ctx, end, err := s.administer(ctx, who, auth.Admin, name)
	if err != nil {
		return Created{}, false, err
	}
	defer end()
	if name == "." || name == ".." { // browsers and most clients resolve such a path to another one
		return Created{}, false, Input(fmt.Errorf("the sequencer's name %q can't be in a URL; want another", name))
	}
	release, err := s.roomFor(ctx, name)
	if err != nil {
		return Created{}, false, err
	}
	created, err = s.member.Create(ctx, name, d)
	release()
	q, known := s.member.Value().Sequencer(name)
	if err == nil && !known {
		err = fmt.Errorf("%w: %q; it was destroyed a moment after it was created", member.ErrNoSequencer, name)
	}
	var early *member.EarlyError
	if errors.As(err, &early) || errors.Is(err, firn.ErrLifetime) {
		err = Input(err)
	}
	if err != nil {
		return Created{}, false, err
	}
	c = Created{StatusSequencer: s.describe(name, q)}
	if warning, err := d.Check(time.Now()); err == nil && warning != "" {
		c.Warnings = []string{warning}
	}
	return c, created, nil
}

// roomFor returns a *quotaError when there is no room for another sequencer. Otherwise this node creates no other
// until release is called, so that it counts this one before the next. Other nodes do not wait for that: each can
// exceed the limit by one.
func (s *Service) roomFor(ctx context.Context, name string) (release func(), err error) {
	select {
	case s.creating <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	release = func() { <-s.creating }
	full := func() bool { return s.member.Value().CountSequencers() >= s.options.MaxSequencers }
	if !full() {
		return release, nil
	}
	// Another node may have created this one or destroyed others a moment ago.
	if _, err = s.member.Lookup(ctx, name); errors.Is(err, member.ErrNoSequencer) {
		err = nil
		if full() {
			err = &quotaError{s.member.Value().CountSequencers(), s.options.MaxSequencers}
		}
	}
	if err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// Destroyed is the answer to Destroy.
type Destroyed struct {
	Name      string     `json:"name"`
	Destroyed bool       `json:"destroyed"`         // true
	Until     *time.Time `json:"until,omitempty"`   // until when other members may make IDs; absent: unknown
	Message   string     `json:"message,omitempty"` // for people; empty when no member makes IDs any more
}

var errInUse = errors.New("can't be destroyed: it serves calls that name no sequencer")

// Destroy destroys a sequencer.
func (s *Service) Destroy(ctx context.Context, who *auth.Caller, name string) (_ Destroyed, err error) {
	defer func(ctx context.Context) { s.changed(ctx, who, "destroy", name, err) }(ctx)
	ctx, end, err := s.administer(ctx, who, auth.Admin, name)
	if err != nil {
		return Destroyed{}, err
	}
	defer end()
	if name == member.DefaultSequencer {
		return Destroyed{}, fmt.Errorf("the sequencer %q %w", name, errInUse)
	}
	err = s.member.Destroy(ctx, name)
	d := Destroyed{Name: name, Destroyed: true}
	var used *member.UsedUntilError
	if errors.As(err, &used) {
		d.Message = used.Error()
		if until := used.Until.UTC(); !until.IsZero() {
			d.Until = &until
		}
		return d, nil
	}
	return d, err
}
