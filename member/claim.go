package member

import (
	"context"
	"errors"

	"github.com/firn-id/firn/cluster"
	"github.com/firn-id/firn/internal/fence"
	"github.com/firn-id/firn/store"
)

// decline asks for another node ID, and tells whether the same one came back: there is no other.
func (s *Sequencer) decline(ctx context.Context, g grant) (same bool, err error) {
	o, err := s.m.do(ctx, func(member string) cluster.Command {
		return cluster.Decline{Sequencer: s.name, Member: member, Node: g.node}
	})
	if err == nil && o.missed {
		err = errMissed
	}
	if err != nil {
		return false, err
	}
	v, _ := s.in(o.value)
	node, ok := v.Node(g.incarnation.id)
	return ok && node == g.node, nil
}

var errMissed = errors.New("member: it is not known what came of a decline")

// enoughDeclines is after how many node IDs whose floors are ahead of the clock it is clear that the clock
// is what is wrong.
const enoughDeclines = 8

// claim takes the node ID that the value gives, under the session of the same incarnation.
func (s *Sequencer) claim(ctx context.Context, g grant) (*hold, error) {
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	from, floored, err := s.m.floored(ctx)
	if err != nil {
		return nil, err
	}
	config, latest, era := s.fences, s.latest.Load(), s.m.era.Load()
	config.Guards, config.NotBefore = []store.Condition{s.guard, floored}, later(s.from, from)
	if latest != nil && !s.m.stale(latest) {
		config.Before = latest.fence
	}
	f, err := fence.Claim(ctx, config, g.incarnation.session, g.node)
	var held *fence.HeldError
	var behind *fence.ClockBehindError
	switch {
	case err == nil:
		s.m.log.Info("claimed a node ID", "sequencer", s.name, "node", f.Node(), "horizon", f.Horizon())
		return &hold{fence: f, incarnation: g.incarnation, era: era}, nil
	case errors.Is(err, fence.ErrClosed):
		s.guard = store.Condition{} // somebody has ended the generation, or begun it anew
	case errors.As(err, &held) && latest != nil && latest.held() && (latest.fence.Node() == g.node || !s.usable(latest)):
		// It is its own: the clock has stepped, and there is no other node ID. Or it is one that can't be used any
		// more, and that somebody may be waiting for.
		s.drop()
	case errors.As(err, &behind):
		if s.declines++; s.declines > enoughDeclines {
			return nil, err
		}
		same, failed := s.decline(ctx, g)
		if same {
			s.declines = enoughDeclines
		}
		return nil, errors.Join(err, failed)
	}
	return nil, err
}

// usable tells whether there is time left that is written down.
func (s *Sequencer) usable(h *hold) bool { return s.m.now().Before(h.fence.Horizon()) }
