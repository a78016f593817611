package calls

import (
	"fmt"
	"time"

	"github.com/firn-id/firn/internal/core/clocks"
	"github.com/firn-id/firn/internal/service/codes"
)

// What is wrong with time: with the clocks, with the order of the IDs, and with the time that is reserved.

// clocks finds clocks that are out, and those that disagree without a majority.
func (p *problems) clocks() {
	var tied, offsets []string
	for m := range p.fresh {
		v := m.Vitals
		switch verdict := v.Judgement(); verdict.Kind {
		case clocks.Ahead, clocks.Behind:
			effect, since := p.names[m.ID]+" gives no IDs", p.since(m)
			if v.Ready {
				effect, since = p.names[m.ID]+" can reserve no more time", nil
				if !v.VerdictSince.IsZero() {
					since = &v.VerdictSince
				}
			}
			p.addOf(m, Problem{
				Level: Failing, Kind: ClockProblem, Effect: effect, Since: since,
				Cause: "its clock is " + verdict.String(),
			})
		case clocks.Tied:
			tied = append(tied, m.ID)
			offsets = append(offsets, fmt.Sprintf("%s %s", p.names[m.ID], signed(v.Offset)))
		}
	}
	if len(tied) > 0 {
		p.add(Problem{
			Level: Warning, Kind: TieProblem, Members: tied, Effect: "IDs of different nodes carry different times",
			Cause: "clocks disagree, and no majority agrees, so that each is believed: " + list(offsets) +
				" from the others",
		})
	}
}

// order finds members whose IDs are smaller than existing ones, and those that wait because theirs would be.
func (p *problems) order() {
	var until time.Time
	var smaller []string
	for m := range p.fresh {
		v := m.Vitals
		switch {
		case !v.SmallerUntil.After(p.status.At):
		case v.Ready:
			smaller = append(smaller, m.ID)
			if v.SmallerUntil.After(until) {
				until = v.SmallerUntil
			}
		case codes.Code(v.Code) == codes.Clock && !v.Judgement().Out():
			p.addOf(m, Problem{
				Level: Failing, Kind: OrderProblem, Effect: p.names[m.ID] + " gives no IDs", Since: p.since(m),
				Cause: fmt.Sprintf("IDs may exist up to %s, %s, so that its own would be unique, but smaller",
					instant(v.SmallerUntil), p.ahead(v.SmallerUntil)),
				Do: "Wait until then, or start it with --if-ids-are-ahead go-on.",
			})
		}
	}
	if len(smaller) > 0 {
		p.add(Problem{
			Level: Warning, Kind: OrderProblem, Members: smaller,
			Effect: p.verb(smaller, "gives", "give") + " IDs that are unique, but smaller than existing ones",
			Cause:  fmt.Sprintf("IDs may exist up to %s, %s", instant(until), p.ahead(until)),
			Do:     "Nothing, if IDs need not ascend. With --if-ids-are-ahead wait a node waits instead.",
		})
	}
}

func (p *problems) ahead(t time.Time) string {
	return Rough(t.Sub(p.status.At)) + " ahead of the clock"
}

func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// horizons finds members that can issue IDs, but have not reserved more time when they should have.
func (p *problems) horizons() {
	for m := range p.fresh {
		left := p.left(m)
		if v := m.Vitals; p.status.Store.Reached && v.Ready && m.Every > 0 && left > 0 && p.leftThen(m) < m.Every &&
			!p.short(m) {
			p.addOf(m, Problem{
				Level: Failing, Kind: HorizonProblem, Effect: p.names[m.ID] + " gives IDs for " + Rough(left) + " more",
				Cause: "it should have reserved more time, and has not",
			})
		}
	}
}

// left is the time from now to a member's nearest horizon.
func (p *problems) left(m StatusMember) time.Duration {
	if m.Vitals == nil || m.Vitals.Left == 0 || m.AsOf == nil {
		return 0
	}
	return m.Vitals.Left - p.status.At.Sub(*m.AsOf)
}

// leftThen is the same from the time at which the store last told of the members: more may have been reserved since.
func (p *problems) leftThen(m StatusMember) time.Duration {
	if read := p.status.Store.AsOf; read != nil && m.ID != p.status.Member {
		return p.left(m) + p.status.At.Sub(*read)
	}
	return p.left(m)
}

// short reports whether a member holds a node ID of a sequencer with a window of its own that is so short that its
// pulse, which comes at least three times in the window of the node, can't tell whether more is reserved.
func (p *problems) short(m StatusMember) bool {
	for _, q := range p.status.Sequencers {
		if w := q.Definition.Window; w == 0 || w >= 3*m.Every {
			continue
		}
		for _, holder := range q.Nodes {
			if holder == m.ID {
				return true
			}
		}
	}
	return false
}
