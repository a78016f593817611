package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cluster"
	"github.com/firn-id/firn/member"
	"github.com/firn-id/firn/server/door"
)

// Created is a sequencer that was to be created.
type Created struct {
	StatusSequencer
	Warnings []string `json:"warnings,omitempty"` // what its creator should know
}

// Create creates a sequencer, and tells whether it was not there already. A *member.ExistsError is returned when there is
// one with another definition.
func (s *Service) Create(ctx context.Context, who *door.Caller, name string, d cluster.Definition) (c Created, created bool, err error) {
	defer func(ctx context.Context) { s.changed(ctx, who, "create", name, err) }(ctx)
	ctx, end, err := s.administer(ctx, who, name)
	if err != nil {
		return Created{}, false, err
	}
	defer end()
	if name == "." || name == ".." { // a path of dots is another path, for browsers and for most else
		return Created{}, false, Input(fmt.Errorf("the sequencer's name %q can't be in a URL; want another", name))
	}
	created, err = s.cluster.Create(ctx, name, d)
	q, known := s.cluster.Value().Sequencer(name)
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

// Destroyed is a sequencer that was destroyed.
type Destroyed struct {
	Name      string     `json:"name"`
	Destroyed bool       `json:"destroyed"`         // true
	Until     *time.Time `json:"until,omitempty"`   // until when IDs may still be made elsewhere; absent when that is not known
	Message   string     `json:"message,omitempty"` // about it; empty when no IDs are made any more
}

var errInUse = errors.New("can't be destroyed: it gives IDs to those who name none")

// Destroy destroys a sequencer.
func (s *Service) Destroy(ctx context.Context, who *door.Caller, name string) (_ Destroyed, err error) {
	defer func(ctx context.Context) { s.changed(ctx, who, "destroy", name, err) }(ctx)
	ctx, end, err := s.administer(ctx, who, name)
	if err != nil {
		return Destroyed{}, err
	}
	defer end()
	if name == member.DefaultSequencer {
		return Destroyed{}, fmt.Errorf("the sequencer %q %w", name, errInUse)
	}
	err = s.cluster.Destroy(ctx, name)
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
