package calls

import (
	"context"
	"errors"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/service/admit/auth"
)

// Reservation is node IDs of a sequencer that no member gets, as JSON.
type Reservation struct {
	For   string    `json:"for"`   // what uses them
	Nodes []int64   `json:"nodes"` // rising
	Since time.Time `json:"since"` // when it was asked for, by the clock of the member that was asked
}

// Reserved is the answer to Reserve: the node IDs may be used from the instant From on.
type Reserved struct {
	Reservation
	From time.Time `json:"from"`
}

func reservationOf(r *cluster.Reservation) Reservation {
	return Reservation{r.For, r.Nodes, time.UnixMilli(r.At).UTC()}
}

// Reserve keeps node IDs of a sequencer for something else than members. Another call for the same purpose returns the
// same.
func (s *Service) Reserve(ctx context.Context, who *auth.Caller, sequencer string,
	r cluster.Reserving,
) (_ Reserved, err error) {
	defer func(ctx context.Context) { s.changed(ctx, who, "reserve", sequencer, err) }(ctx)
	ctx, end, err := s.administer(ctx, who, auth.Admin, sequencer)
	if err != nil {
		return Reserved{}, err
	}
	defer end()
	if err := r.Validate(); err != nil {
		return Reserved{}, Input(err)
	}
	made, from, err := s.member.Reserve(ctx, sequencer, r)
	if err != nil {
		return Reserved{}, err
	}
	return Reserved{reservationOf(made), from.UTC()}, nil
}

// Used says how far whoever had reserved node IDs has used them, by one of the two.
type Used struct {
	Greatest *firn.ID   `json:"greatest,omitempty"`   // the greatest ID that it made
	Until    *time.Time `json:"used_until,omitempty"` // all its IDs are of instants before
}

// Release ends a Reserve. Whatever had the node IDs has stopped.
func (s *Service) Release(ctx context.Context, who *auth.Caller, sequencer, purpose string,
	used Used,
) (_ StatusSequencer, err error) {
	defer func(ctx context.Context) { s.changed(ctx, who, "release", sequencer, err) }(ctx)
	ctx, end, err := s.administer(ctx, who, auth.Admin, sequencer)
	if err != nil {
		return StatusSequencer{}, err
	}
	defer end()
	switch {
	case (used.Greatest == nil) == (used.Until == nil):
		err = Input(errors.New("want either the greatest ID that was made under the node IDs, or until when they " +
			"were used"))
	case used.Greatest != nil:
		err = s.member.ReleaseAfter(ctx, sequencer, purpose, *used.Greatest)
	default:
		err = s.member.Release(ctx, sequencer, purpose, *used.Until)
	}
	if err != nil {
		return StatusSequencer{}, err
	}
	return s.known(sequencer)
}
