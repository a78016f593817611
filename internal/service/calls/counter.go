package calls

import (
	"context"
	"errors"
	"fmt"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/counter"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
)

// open returns the issuer of a counter's numbers: every member may give them.
func (s *Service) open(ctx context.Context, name string) (Issuer, error) {
	c, err := s.member.OpenCounter(ctx, name)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// hereCounting is the answering member's state in a counter of which it gives numbers.
func hereCounting(c *peer.Counter) Here {
	here := Here{State: "counting", Reserved: c.Reserved()}
	err := c.Ready()
	if err != nil {
		here.Why = err.Error()
	}
	if _, lost := errors.AsType[*counter.LostError](err); lost {
		here.State = "lost"
	}
	if _, exhausted := errors.AsType[*counter.ExhaustedError](err); exhausted {
		here.State = "exhausted"
	}
	return here
}

// ResumeCounter has a counter go on above a number, after its store has lost data.
func (s *Service) ResumeCounter(ctx context.Context, who *auth.Caller, name string,
	after int64,
) (_ StatusSequencer, err error) {
	defer func(ctx context.Context) { s.changed(ctx, who, "resume", name, err) }(ctx)
	ctx, end, err := s.administer(ctx, who, auth.Admin, name)
	if err != nil {
		return StatusSequencer{}, err
	}
	defer end()
	if after < 0 {
		return StatusSequencer{}, Input(fmt.Errorf("to resume above %d; want 0 or more", after))
	}
	if err := s.member.ResumeCounter(ctx, name, firn.ID(after)); err != nil {
		return StatusSequencer{}, err
	}
	return s.counted(ctx, name)
}

// counted describes a counter, as the store has it now.
func (s *Service) counted(ctx context.Context, name string) (StatusSequencer, error) {
	q, err := s.known(name)
	if err != nil {
		return q, err
	}
	record, err := s.member.CounterRecord(ctx, name)
	if err != nil {
		return q, err
	}
	q.Count = &Count{Reserved: firn.ID(record.Last), Lost: record.Lost()}
	return q, nil
}

// Count is how far a counter is.
type Count struct {
	Reserved firn.ID `json:"reserved"` // the greatest number that any member has reserved, given or not; 0: none
	Lost     bool    `json:"lost"`     // it gives no numbers, since the store has lost data, and until it is resumed
}

// isCounter reports whether a sequencer of the cluster's value is a counter.
func isCounter(q cluster.Sequencer) bool { return q.Definition().Kind == cluster.Counter }
