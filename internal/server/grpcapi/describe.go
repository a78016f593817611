package grpcapi

import (
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/firn-id/firn/api/firnv1"
	"github.com/firn-id/firn/internal/server"
)

var states = map[string]firnv1.Here_State{
	"none":      firnv1.Here_STATE_NONE,
	"attaching": firnv1.Here_STATE_ATTACHING,
	"attached":  firnv1.Here_STATE_ATTACHED,
	"waiting":   firnv1.Here_STATE_WAITING,
	"detached":  firnv1.Here_STATE_DETACHED,
	"destroyed": firnv1.Here_STATE_DESTROYED,
	"ended":     firnv1.Here_STATE_ENDED,
}

func hereMessage(h server.Here) *firnv1.Here {
	return &firnv1.Here{State: states[h.State], Node: h.Node, Place: int64(h.Place), Why: h.Why}
}

func sequencerMessage(q server.StatusSequencer) *firnv1.Sequencer {
	return &firnv1.Sequencer{
		Name: q.Name, Definition: definitionMessage(q.Definition), Created: q.Created, Capacity: q.Capacity,
		Until: timestamppb.New(q.Until), Rate: q.Rate, Nodes: q.Nodes, Waiting: q.Waiting, Free: q.Free, Here: hereMessage(q.Here),
	}
}

func sequencerMessages(all []server.StatusSequencer) []*firnv1.Sequencer {
	messages := make([]*firnv1.Sequencer, len(all))
	for i, q := range all {
		messages[i] = sequencerMessage(q)
	}
	return messages
}

func statusMessage(s server.Status) *firnv1.ClusterStatusResponse {
	m := &firnv1.ClusterStatusResponse{Member: s.Member, Position: s.Position, Entries: s.Entries, Sequencers: sequencerMessages(s.Sequencers)}
	for _, one := range s.Members {
		m.Members = append(m.Members, &firnv1.Member{Id: one.ID, Watches: one.Watches, Joined: one.Joined, Pulse: pulseMessage(one.Pulse)})
	}
	for _, j := range s.Joins {
		m.Joins = append(m.Joins, &firnv1.Join{
			Joiner: j.Joiner, Target: j.Target, Accepted: j.Phase == server.Accepted, Pulse: pulseMessage(j.Pulse),
		})
	}
	return m
}

func pulseMessage(p server.Pulse) *firnv1.Pulse {
	if p.Alive == nil {
		return nil
	}
	return &firnv1.Pulse{Alive: *p.Alive, Owner: p.Owner}
}
