package grpcapi

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/firn-id/firn/api/firnv1"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/calls"
)

var states = map[string]firnv1.Here_State{
	"none":      firnv1.Here_STATE_NONE,
	"attaching": firnv1.Here_STATE_ATTACHING,
	"attached":  firnv1.Here_STATE_ATTACHED,
	"waiting":   firnv1.Here_STATE_WAITING,
	"detached":  firnv1.Here_STATE_DETACHED,
	"drained":   firnv1.Here_STATE_DRAINED,
	"destroyed": firnv1.Here_STATE_DESTROYED,
	"ended":     firnv1.Here_STATE_ENDED,
	"counting":  firnv1.Here_STATE_COUNTING,
	"lost":      firnv1.Here_STATE_LOST,
	"exhausted": firnv1.Here_STATE_EXHAUSTED,
}

func hereMessage(h calls.Here) *firnv1.Here {
	return &firnv1.Here{
		State: states[h.State], Node: h.Node, Place: int64(h.Place), Why: h.Why,
		Reserved: int64(h.Reserved),
	}
}

func sequencerMessage(q calls.StatusSequencer) *firnv1.Sequencer {
	region, _ := q.Region.MarshalText() // it has no error
	_, free := q.NodeIDs()
	m := &firnv1.Sequencer{
		Name: q.Name, Definition: definitionMessage(q.Definition), Created: q.Created, Capacity: q.Capacity,
		Until: instantMessage(&q.Until), Rate: q.Rate, Nodes: q.Nodes, Waiting: q.Waiting, Free: free,
		Here: hereMessage(q.Here), Share: q.Share, Drained: q.Drained, Region: string(region), GivenRate: q.Given,
	}
	if q.Allocation != nil {
		m.Allocation = allocationMessage(*q.Allocation)
	}
	if q.Count != nil {
		m.Count = &firnv1.Count{Reserved: int64(q.Count.Reserved), Lost: q.Count.Lost}
	}
	for _, r := range q.Reservations {
		m.Reservations = append(m.Reservations, reservationMessage(r))
	}
	return m
}

func reservationMessage(r calls.Reservation) *firnv1.Reservation {
	return &firnv1.Reservation{For: r.For, Nodes: r.Nodes, Since: instantMessage(&r.Since)}
}

func sequencerMessages(all []calls.StatusSequencer) []*firnv1.Sequencer {
	messages := make([]*firnv1.Sequencer, len(all))
	for i, q := range all {
		messages[i] = sequencerMessage(q)
	}
	return messages
}

func policyMessage(p calls.Policy) *firnv1.Policy {
	m := &firnv1.Policy{}
	for _, s := range p.Shares {
		m.Shares = append(m.Shares,
			&firnv1.Share{Sequencer: s.Sequencer, Percent: s.Percent, Members: p.Assigned[s.Sequencer]})
	}
	return m
}

func statusMessage(s calls.Status) *firnv1.ClusterStatusResponse {
	m := &firnv1.ClusterStatusResponse{
		Cluster: s.Cluster, Member: s.Member, Position: s.Position, Entries: s.Entries,
		Sequencers: sequencerMessages(s.Sequencers),
		At:         timestamppb.New(s.At), StoreReached: s.Store.Reached, StoreAsOf: instantMessage(s.Store.AsOf),
	}
	for _, one := range s.Members {
		m.Members = append(m.Members,
			&firnv1.Member{Id: one.ID, Watches: one.Watches, Joined: one.Joined, Pulse: pulseMessage(one.Pulse)})
	}
	for _, n := range s.Nodes {
		m.Nodes = append(m.Nodes, &firnv1.Node{
			Name: n.Name, Host: n.Host, Members: n.Members, State: nodeStates[n.State], Since: instantMessage(&n.Since),
			Seen:     instantMessage(&n.Seen),
			Reserved: instantMessage(n.Reserved),
		})
	}
	for _, j := range s.Joins {
		m.Joins = append(m.Joins, &firnv1.Join{
			Joiner: j.Joiner, Target: j.Target, Accepted: j.Phase == calls.Accepted, Pulse: pulseMessage(j.Pulse),
		})
	}
	for _, p := range s.Problems {
		m.Problems = append(m.Problems, &firnv1.Problem{
			Level: levels[p.Level], Kind: string(p.Kind), Effect: p.Effect, Since: instantMessage(p.Since),
			Cause: p.Cause, Do: p.Do, Link: p.Link,
			Detail: p.Detail, Members: p.Members, Sequencers: p.Sequencers,
		})
	}
	return m
}

var nodeStates = map[calls.NodeState]firnv1.Node_State{
	calls.NodeAlive:   firnv1.Node_STATE_ALIVE,
	calls.NodeLeft:    firnv1.Node_STATE_LEFT,
	calls.NodeLost:    firnv1.Node_STATE_LOST,
	calls.NodeUnknown: firnv1.Node_STATE_UNKNOWN,
}

var levels = map[calls.ProblemLevel]firnv1.Problem_Level{
	calls.Failing: firnv1.Problem_LEVEL_ERROR,
	calls.Warning: firnv1.Problem_LEVEL_WARNING,
}

func pulseMessage(p calls.Pulse) *firnv1.Pulse {
	if p.Alive == nil && p.AsOf == nil {
		return nil
	}
	return &firnv1.Pulse{
		Alive: p.Alive != nil && *p.Alive, Owner: p.Owner, Fresh: p.Fresh, AsOf: instantMessage(p.AsOf),
		Vitals: vitalsMessage(p.Vitals),
	}
}

func vitalsMessage(v *peer.Vitals) *firnv1.Vitals {
	if v == nil {
		return nil
	}
	m := &firnv1.Vitals{
		Version: v.Version, Addresses: v.Addresses, Ready: v.Ready, Code: v.Code, Why: v.Why, Given: v.Given,
		Rate: v.Rate, Rates: v.Rates, Failing: v.Failing, Forwards: v.Forwards, Verdict: v.Verdict,
		Offset: durationpb.New(v.Offset), Since: instantMessage(&v.Since), Judged: instantMessage(&v.Judged),
		VerdictSince: instantMessage(&v.VerdictSince), SmallerUntil: instantMessage(&v.SmallerUntil),
		CopiedAt: instantMessage(&v.CopiedAt),
	}
	for name, is := range v.Counters {
		if m.Counters == nil {
			m.Counters = map[string]*firnv1.Count{}
		}
		m.Counters[name] = &firnv1.Count{Reserved: int64(is.Reserved), Lost: is.Lost}
	}
	if v.Left != 0 {
		m.Left = durationpb.New(v.Left)
	}
	if v.RoundTrip != 0 {
		m.RoundTrip = durationpb.New(v.RoundTrip)
	}
	return m
}

// instantMessage returns nil for an unknown time.
func instantMessage(at *time.Time) *timestamppb.Timestamp {
	if at == nil || at.IsZero() {
		return nil
	}
	return timestamppb.New(*at)
}
