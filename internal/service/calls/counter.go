package calls

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/floor"
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
	here, err := Here{State: "counting", Reserved: c.Counting().Reserved}, c.Ready()
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

// counters finds counters that have stopped since the store has lost data, and those whose numbers end.
func (p *problems) counters() {
	for _, q := range p.status.Sequencers {
		if !q.Definition.Claimed() {
			continue
		}
		var of []string // members
		lost, reserved := false, int64(0)
		for m := range p.fresh {
			if is, ok := m.Vitals.Counters[q.Name]; ok {
				of, lost, reserved = append(of, m.ID), lost || is.Lost, max(reserved, int64(is.Reserved))
			}
		}
		rule, err := counter.RuleOf(q.Definition)
		if err != nil {
			continue
		}
		l := rule.Limits(p.status.At, reserved)
		left := l.Last - max(reserved, l.After)
		one := Problem{Level: Failing, Kind: CounterProblem, Sequencers: []string{q.Name}, Members: of}
		switch used := 1 - float64(left)/float64(l.Last-l.After); {
		case lost:
			one.Effect = "Nobody gets numbers of " + q.Name
			one.Cause = fmt.Sprintf("the store has lost data, so that numbers could come again; the "+
				"living know of numbers up to %d", reserved)
			one.Do = fmt.Sprintf("Find the greatest number that anybody was given, N, and run firn sequencer "+
				"resume %s --after N.", q.Name)
		case reserved > l.Last && !l.Until.IsZero():
			one.Effect = "Nobody gets IDs of " + q.Name + " until clocks show the time of those that are reserved"
			one.Cause = fmt.Sprintf("the number %d is reserved, but clocks allow none above %d yet: some clock was "+
				"ahead by more than %v", reserved, l.Last, floor.Skew)
			one.Do = "Find the node whose clock is or was wrong, and set it right. To go on at once, create another " +
				"sequencer, and move the callers to it."
		case q.Definition.Kind != cluster.Counter:
			continue // their number is that of a layout, see sequencers
		case left <= 0:
			one.Effect = q.Name + " has no numbers left" + until(l)
			if q.Definition.Order == cluster.OrderNode {
				one.Effect += " but those that nodes have reserved"
			}
			one.Cause = fmt.Sprintf("all up to %d, the greatest, are reserved", l.Last)
		case used >= 0.8:
			one.Level, one.Effect = Warning, fmt.Sprintf("%s has %d numbers left%s", q.Name, left, until(l))
			one.Cause = fmt.Sprintf("%.0f %% of those up to %d, the greatest, are reserved", 100*used, l.Last)
			if used >= 0.95 {
				one.Level = Failing
			}
		default:
			continue
		}
		if !l.Until.IsZero() && one.Do == "" {
			one.Do = "Wait until then, or create another counter with more digits, and move the callers to it."
		}
		p.addAbout(q.Name, one.Cause, one)
	}
}

// until says for how long there are no more numbers than those of the limits, or nothing: for ever.
func until(l counter.Limits) string {
	if l.Until.IsZero() {
		return ""
	}
	return " until " + l.Until.Format(time.RFC3339)
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
