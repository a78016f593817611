package server_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/server"
	"github.com/firn-id/firn/member"
	"github.com/firn-id/firn/store/quorum"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// healthy returns the status of three ready nodes, 2 s after each has written its pulse.
func healthy() server.Status {
	s := server.Status{Member: "a", At: noon, Store: server.StatusStore{Reached: true, AsOf: new(noon)}}
	for i, id := range []string{"a", "b", "c"} {
		s.Members = append(s.Members, server.StatusMember{ID: id, Pulse: server.Pulse{
			Alive: new(true), Owner: fmt.Sprintf("ids-%d, process 7", i+1), Fresh: true, AsOf: new(noon.Add(-2 * time.Second)), Every: 10 * time.Second,
			Vitals: &member.Vitals{Version: "v1", Ready: true, For: time.Minute, Verdict: "agreed", Left: 30 * time.Second, Others: 2},
		}})
	}
	s.Sequencers = []server.StatusSequencer{{Name: "default", Until: noon.AddDate(60, 0, 0), Nodes: map[int64]string{0: "a", 1: "b", 2: "c"}, Free: 1021}}
	return s
}

// Each problem is told in words, with who and since when, and the worst comes first.
func TestProblems(t *testing.T) {
	type change = func(s *server.Status)
	vitals := func(i int, set func(v *member.Vitals)) change {
		return func(s *server.Status) { set(s.Members[i].Vitals) }
	}
	notReady := func(i int, code, why string, since time.Duration) change {
		return vitals(i, func(v *member.Vitals) { v.Ready, v.Code, v.Why, v.For = false, code, why, since })
	}
	all := func(changes ...change) change {
		return func(s *server.Status) {
			for _, c := range changes {
				c(s)
			}
		}
	}
	gone := func(i int) change {
		return func(s *server.Status) {
			m := &s.Members[i]
			*m.Alive, m.Fresh, m.AsOf = false, false, new(noon.Add(-19*time.Second))
		}
	}
	late := func(i int) change {
		return func(s *server.Status) { s.Members[i].Fresh, s.Members[i].AsOf = false, new(noon.Add(-14*time.Second)) }
	}
	noStore := func(s *server.Status) {
		s.Store = server.StatusStore{AsOf: new(noon.Add(-time.Minute)), Answered: new(noon.Add(-19 * time.Second)), Why: "the store is unavailable"}
		for i := range s.Members {
			s.Members[i].Alive, s.Members[i].Fresh = nil, i == 0
		}
	}
	machines := func(majority bool, down ...string) change {
		return func(s *server.Status) {
			s.Quorum = &quorum.Status{Majority: majority}
			for _, at := range []string{"m1:7420", "m2:7420", "m3:7420"} {
				m := quorum.Machine{Address: at, Role: quorum.Voter}
				if slices.Contains(down, at) {
					m.Err = "no answer"
				}
				s.Quorum.Machines = append(s.Quorum.Machines, m)
			}
			s.Quorum.Machines = append(s.Quorum.Machines, quorum.Machine{Address: "m4:7420", Role: quorum.Learner, Err: "no answer"})
		}
	}
	sequencer := func(set func(q *server.StatusSequencer)) change {
		return func(s *server.Status) { set(&s.Sequencers[0]) }
	}
	behind := vitals(1, func(v *member.Vitals) {
		v.Ready, v.Code, v.Why, v.For = false, "clock", "this clock is 59m56s behind 2 of 2 others", 28*time.Second
		v.Verdict, v.Offset, v.Against = "behind", -59*time.Minute-56*time.Second, 2
	})
	for name, tt := range map[string]struct {
		change change
		want   []string // level, kind, text, members, since
	}{
		"healthy": {func(*server.Status) {}, nil},
		"behind":  {behind, []string{"error clock: ids-2's clock is 59m56s behind 2 of 2 others [b] since 11:59:30"}},
		"ahead": {vitals(2, func(v *member.Vitals) { v.Verdict, v.Offset, v.Against, v.For = "ahead", 2*time.Hour, 2, 8*time.Second }), []string{
			"error clock: ids-3's clock is 2h0m ahead of 2 of 2 others [c] since 11:59:50",
		}},
		"tie": {all(vitals(0, func(v *member.Vitals) { v.Verdict, v.Offset = "tied", time.Hour }), vitals(1, func(v *member.Vitals) { v.Verdict, v.Offset = "tied", -time.Hour })), []string{
			"warning tie: clocks disagree, and no majority agrees, so that each is believed: ids-1 +1h0m and ids-2 -1h0m from the others [a b]",
		}},
		"copied": {all(vitals(1, func(v *member.Vitals) { v.CopiedAt = noon.Add(-time.Hour) }), vitals(2, func(v *member.Vitals) { v.CopiedAt = noon.Add(-25 * time.Hour) })), []string{
			"warning copied: ids-2 was copied or set back, as by a snapshot of its machine: it found that out 1h0m ago and started over; IDs of what it had reserved may exist twice [b] since 11:00:00",
		}},
		"smaller": {all(vitals(0, func(v *member.Vitals) { v.SmallerUntil = noon.Add(time.Hour) }), vitals(2, func(v *member.Vitals) { v.SmallerUntil = noon.Add(2 * time.Hour) })), []string{
			"warning order: IDs may exist up to 2026-11-22T14:00:00Z, 2h0m ahead of the clock: those that ids-1 and ids-3 give are unique, but smaller; with --if-ids-are-ahead wait a node waits instead [a c]",
		}},
		"smaller no more": {vitals(0, func(v *member.Vitals) { v.SmallerUntil = noon }), nil},
		"waits for IDs": {all(notReady(1, "clock", "IDs may exist", 28*time.Second), vitals(1, func(v *member.Vitals) { v.SmallerUntil = noon.Add(time.Hour) })), []string{
			"error order: IDs may exist up to 2026-11-22T13:00:00Z, 1h0m ahead of the clock: ids-2 waits, since its own would be unique, but smaller; with --if-ids-are-ahead go-on it does not [b] since 11:59:30",
		}},
		"behind, too":        {all(behind, vitals(1, func(v *member.Vitals) { v.SmallerUntil = noon.Add(time.Hour) })), []string{"error clock: ids-2's clock is 59m56s behind 2 of 2 others [b] since 11:59:30"}},
		"not ready":          {notReady(1, "not_ready", "it has reached its horizon", 10*time.Second), []string{"error not_ready: ids-2 is not ready: it has reached its horizon [b] since 11:59:48"}},
		"not ready at first": {notReady(1, "not_ready", "it is joining", 2*time.Second), nil},
		"not ready, both": {all(notReady(1, "not_ready", "it has reached its horizon", 10*time.Second), notReady(2, "not_ready", "it has reached its horizon", 20*time.Second)), []string{
			"error not_ready: ids-2 and ids-3 are not ready: it has reached its horizon [b c] since 11:59:38",
		}},
		"detached": {notReady(1, "detached", "the sequencer is detached", time.Minute), []string{"warning not_ready: ids-2 is not ready: the sequencer is detached [b] since 11:58:58"}},
		"waiting": {all(notReady(1, "waiting", "no node ID is free", time.Minute), sequencer(func(q *server.StatusSequencer) { q.Free, q.Waiting, q.Lacking = 0, []string{"b", "c"}, []string{"b"} })), []string{
			"warning node_ids: ids-2 waits for a node ID of default: none of 3 is free [b] of default",
		}},
		"waiting for another": {sequencer(func(q *server.StatusSequencer) { q.Free, q.Waiting, q.Lacking = 1021, []string{"b"}, []string{"b"} }), []string{
			"warning node_ids: ids-2 waits for a node ID of default: none that is accepted is free, of 1024 [b] of default",
		}},
		"waiting by the allocation": {sequencer(func(q *server.StatusSequencer) { q.Free, q.Waiting = 1021, []string{"b"} }), nil},
		"few node IDs":              {sequencer(func(q *server.StatusSequencer) { q.Nodes, q.Free = map[int64]string{}, 0; fill(q, 29); q.Free = 3 }), []string{"warning node_ids: 3 of 32 node IDs of default are free [] of default"}},
		"as many as used":           {sequencer(func(q *server.StatusSequencer) { q.Free = 0 }), nil},
		"horizon":                   {vitals(1, func(v *member.Vitals) { v.Left = 9 * time.Second }), []string{"error horizon: the reserved time of ids-2 ends in 7s [b]"}},
		"horizon of a short window": {all(vitals(1, func(v *member.Vitals) { v.Left = 3 * time.Second }), sequencer(func(q *server.StatusSequencer) { q.Definition.Window = 4 * time.Second })), nil},
		"horizon of a window that is not short": {all(vitals(1, func(v *member.Vitals) { v.Left = 9 * time.Second }), sequencer(func(q *server.StatusSequencer) { q.Definition.Window = time.Minute })), []string{
			"error horizon: the reserved time of ids-2 ends in 7s [b]",
		}},
		"layout": {sequencer(func(q *server.StatusSequencer) { q.Until = noon.AddDate(0, 0, 100) }), []string{"warning layout: the time of the layout of default ends on 2027-03-02, in 100 days [] of default"}},
		"layout over": {sequencer(func(q *server.StatusSequencer) { q.Until = noon.Add(-time.Hour) }), []string{
			"error layout: the time of the layout of default ended on 2026-11-22: it has no more IDs [] of default since 11:00:00",
		}},
		"gone": {gone(2), []string{"warning gone: ids-3 is gone, and is still in the cluster [c] since 11:59:41"}},
		"gone before it was seen": {func(s *server.Status) { s.Members[2].Pulse = server.Pulse{Alive: new(false)} }, []string{
			"warning gone: member c is gone, and is still in the cluster [c]",
		}},
		"late":     {late(2), []string{"warning late: ids-3 has not renewed its pulse; its reserved time ends in 16s [c] since 11:59:46"}},
		"no store": {noStore, []string{"error store: the store does not answer this node, for 19s: the store is unavailable; its reserved time ends in 28s [] since 11:59:41"}},
		"never a store": {func(s *server.Status) {
			*s = server.Status{At: noon, Store: server.StatusStore{Why: "it waits for m2"}}
		}, []string{
			"error store: the store does not answer this node: it waits for m2 []",
		}},
		"a machine": {machines(true, "m2:7420"), []string{"warning quorum: 1 of 3 machines of the quorum can't be reached: m2:7420 []"}},
		"two machines": {machines(false, "m2:7420", "m3:7420"), []string{
			"error quorum: 2 of 3 machines of the quorum can't be reached (m2:7420 and m3:7420): nothing can be written without a majority []",
		}},
		"versions": {vitals(2, func(v *member.Vitals) { v.Version = "v2" }), []string{"warning version: versions differ: ids-1 and ids-2 run v1; ids-3 runs v2 []"}},
		"one host": {all(behind, func(s *server.Status) { s.Members[0].Owner = "ids-2, process 9" }), []string{"error clock: ids-2, process 7's clock is 59m56s behind 2 of 2 others [b] since 11:59:30"}},
		"stale":    {all(noStore, behind), []string{"error store: the store does not answer this node, for 19s: the store is unavailable; its reserved time ends in 28s [] since 11:59:41"}},
		"all at once": {all(vitals(2, func(v *member.Vitals) { v.Version = "v2" }), behind, notReady(0, "internal", "a bug", time.Minute), machines(true, "m2:7420")), []string{
			"error clock: ids-2's clock is 59m56s behind 2 of 2 others [b] since 11:59:30",
			"error not_ready: ids-1 is not ready: a bug [a] since 11:58:58",
			"warning quorum: 1 of 3 machines of the quorum can't be reached: m2:7420 []",
			"warning version: versions differ: ids-1 and ids-2 run v1; ids-3 runs v2 []",
		}},
	} {
		s := healthy()
		tt.change(&s)
		var have []string
		for _, p := range server.Problems(s) {
			text := fmt.Sprintf("%s %s: %s %v", p.Level, p.Kind, p.Text, p.Members)
			if p.Sequencer != "" {
				text += " of " + p.Sequencer
			}
			if p.Since != nil {
				text += " since " + p.Since.UTC().Format(time.TimeOnly)
			}
			have = append(have, text)
		}
		if !slices.Equal(have, tt.want) {
			t.Errorf("%s: have\n%q\nwant\n%q", name, have, tt.want)
		}
	}
}

func fill(q *server.StatusSequencer, nodes int64) {
	for node := range nodes {
		q.Nodes[node] = fmt.Sprint(node)
	}
}

// A thousand nodes with one trouble are one problem.
func TestProblemsOfMany(t *testing.T) {
	s := healthy()
	for i := range 1000 {
		m := s.Members[0]
		m.ID, m.Owner = fmt.Sprint(i), fmt.Sprintf("h%03d, process 1", i)
		m.Vitals = &member.Vitals{Code: "not_ready", Why: "it has reached its horizon", For: time.Minute}
		s.Members = append(s.Members, m)
	}
	have := server.Problems(s)
	const want = "h000, h001, h002 and 997 more are not ready: it has reached its horizon"
	if len(have) != 1 || have[0].Text != want || len(have[0].Members) != 1000 {
		t.Errorf("have %v, want %q", have, want)
	}
}
