package calls_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/space"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/store/quorum"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// healthy returns the status of three ready nodes, 2 s after each has written its pulse.
func healthy() calls.Status {
	s := calls.Status{Member: "a", At: noon, Store: calls.StatusStore{Reached: true, AsOf: new(noon)}}
	for i, id := range []string{"a", "b", "c"} {
		s.Members = append(s.Members, calls.StatusMember{ID: id, Pulse: calls.Pulse{
			Alive: new(true), Owner: fmt.Sprintf("ids-%d", i+1), Fresh: true, AsOf: new(noon.Add(-2 * time.Second)),
			Every: 10 * time.Second,
			Vitals: &peer.Vitals{
				Version: "v1", Ready: true, For: time.Minute, Verdict: "agreed",
				Left: 30 * time.Second, Others: 2,
			},
		}})
	}
	s.Sequencers = []calls.StatusSequencer{{
		Name: "default", Until: noon.AddDate(60, 0, 0),
		Nodes: map[int64]string{0: "a", 1: "b", 2: "c"}, Free: new(int64(1021)),
	}}
	return s
}

// Each problem is told in words, with who and since when, and the worst comes first.
func TestProblems(t *testing.T) {
	type change = func(s *calls.Status)
	vitals := func(i int, set func(v *peer.Vitals)) change {
		return func(s *calls.Status) { set(s.Members[i].Vitals) }
	}
	notReady := func(i int, code, why string, since time.Duration) change {
		return vitals(i, func(v *peer.Vitals) { v.Ready, v.Code, v.Why, v.For = false, code, why, since })
	}
	all := func(changes ...change) change {
		return func(s *calls.Status) {
			for _, c := range changes {
				c(s)
			}
		}
	}
	gone := func(i int) change {
		return func(s *calls.Status) {
			m := &s.Members[i]
			*m.Alive, m.Fresh, m.AsOf = false, false, new(noon.Add(-19*time.Second))
		}
	}
	late := func(i int) change {
		return func(s *calls.Status) { s.Members[i].Fresh, s.Members[i].AsOf = false, new(noon.Add(-14*time.Second)) }
	}
	noStore := func(s *calls.Status) {
		s.Store = calls.StatusStore{
			AsOf: new(noon.Add(-time.Minute)), Answered: new(noon.Add(-19 * time.Second)),
			Why: "the store is unavailable",
		}
		for i := range s.Members {
			s.Members[i].Alive, s.Members[i].Fresh = nil, i == 0
		}
	}
	machines := func(majority bool, down ...string) change {
		return func(s *calls.Status) {
			s.Quorum = &quorum.Status{Majority: majority}
			for _, at := range []string{"m1:7420", "m2:7420", "m3:7420"} {
				m := quorum.Machine{Address: at, Role: quorum.Voter}
				if slices.Contains(down, at) {
					m.Err = syscall.ECONNREFUSED.Error()
				}
				s.Quorum.Machines = append(s.Quorum.Machines, m)
			}
			s.Quorum.Machines = append(s.Quorum.Machines,
				quorum.Machine{Address: "m4:7420", Role: quorum.Learner, Err: "no answer"})
		}
	}
	over := notReady(0, "not_ready", "the horizon is reached", 10*time.Second)
	silentFor := func(d time.Duration) change {
		return func(s *calls.Status) { s.Store.Answered = new(noon.Add(-d)) }
	}
	mute := func(s *calls.Status) {
		for i := range s.Quorum.Machines {
			if m := &s.Quorum.Machines[i]; m.Err != "" {
				m.Err = "no answer"
			}
		}
	}
	sequencer := func(set func(q *calls.StatusSequencer)) change {
		return func(s *calls.Status) { set(&s.Sequencers[0]) }
	}
	behind := vitals(1, func(v *peer.Vitals) {
		v.Ready, v.Code, v.Why, v.For = false, "clock", "this clock is 59m56s behind 2 of 2 others", 28*time.Second
		v.Verdict, v.Offset, v.Against = "behind", -59*time.Minute-56*time.Second, 2
	})
	for name, tt := range map[string]struct {
		change change
		want   []string // level, kind, text, members, since
	}{
		"healthy": {func(*calls.Status) {}, nil},
		"behind": {
			behind,
			[]string{"error clock: ids-2 gives no IDs since 11:59:30Z: its clock is 59m56s behind 2 of 2 others [b]"},
		},
		"ahead": {vitals(2, func(v *peer.Vitals) {
			v.Verdict, v.Offset, v.Against, v.For, v.Judged, v.VerdictSince = "ahead", 2*time.Hour, 2, time.Hour,
				noon.Add(-3*time.Second), noon.Add(-10*time.Second)
		}), []string{
			"error clock: ids-3 can reserve no more time since 11:59:50Z: its clock is 2h0m ahead of 2 of 2 others [c]",
		}},
		"tie": {all(vitals(0, func(v *peer.Vitals) {
			v.Verdict, v.Offset = "tied", time.Hour
		}), vitals(1, func(v *peer.Vitals) { v.Verdict, v.Offset = "tied", -time.Hour })), []string{
			"warning tie: IDs of different nodes carry different times: clocks disagree, and no majority agrees, so " +
				"that each is believed: ids-1 +1h0m and ids-2 -1h0m from the others [a b]",
		}},
		"copied": {all(vitals(1, func(v *peer.Vitals) {
			v.CopiedAt = noon.Add(-time.Hour)
		}), vitals(2, func(v *peer.Vitals) { v.CopiedAt = noon.Add(-25 * time.Hour) })), []string{
			"warning copied: IDs of ids-2 may exist twice since 11:00:00Z: its process was copied or set back, as by " +
				"a snapshot of its machine; it found that out 1h0m ago, and started over [b]",
		}},
		"smaller": {all(vitals(0, func(v *peer.Vitals) {
			v.SmallerUntil = noon.Add(time.Hour)
		}), vitals(2, func(v *peer.Vitals) { v.SmallerUntil = noon.Add(2 * time.Hour) })), []string{
			"warning order: ids-1 and ids-3 give IDs that are unique, but smaller than existing ones: IDs may exist " +
				"up to 2026-11-22T14:00:00Z, 2h0m ahead of the clock [a c]",
		}},
		"smaller no more": {vitals(0, func(v *peer.Vitals) { v.SmallerUntil = noon }), nil},
		"waits for IDs": {all(notReady(1, "clock", "IDs may exist", 28*time.Second), vitals(1, func(v *peer.Vitals) {
			v.SmallerUntil = noon.Add(time.Hour)
		})), []string{
			"error order: ids-2 gives no IDs since 11:59:30Z: IDs may exist up to 2026-11-22T13:00:00Z, 1h0m " +
				"ahead of " +
				"the clock, so that its own would be unique, but smaller [b]",
		}},
		"behind, too": {all(behind, vitals(1, func(v *peer.Vitals) {
			v.SmallerUntil = noon.Add(time.Hour)
		})), []string{"error clock: ids-2 gives no IDs since 11:59:30Z: its clock is 59m56s behind 2 of 2 others [b]"}},
		"not ready": {
			notReady(1, "not_ready", "it has reached its horizon", 10*time.Second),
			[]string{"error not_ready: ids-2 gives no IDs since 11:59:48Z: it has reached its horizon [b]"},
		},
		"not ready at first": {notReady(1, "not_ready", "it is joining", 2*time.Second), nil},
		"not ready, both": {all(notReady(1, "not_ready", "it has reached its horizon", 10*time.Second),
			notReady(2, "not_ready", "it has reached its horizon", 20*time.Second)), []string{
			"error not_ready: ids-2 and ids-3 give no IDs since 11:59:38Z: it has reached its horizon [b c]",
		}},
		"detached": {
			notReady(1, "detached", "the sequencer is detached", time.Minute),
			[]string{"warning not_ready: ids-2 gives no IDs since 11:58:58Z: the sequencer is detached [b]"},
		},
		"waiting": {all(notReady(1, "waiting", "no node ID is free", time.Minute),
			sequencer(func(q *calls.StatusSequencer) {
				q.Free, q.Waiting, q.Lacking = new(int64(0)), []string{"b", "c"}, []string{"b"}
			})), []string{
			"warning node_ids: ids-2 gives no IDs of default: none of its 3 node IDs is free [b] of default",
		}},
		"waiting for another": {sequencer(func(q *calls.StatusSequencer) {
			q.Free, q.Waiting, q.Lacking = new(int64(1021)), []string{"b"}, []string{"b"}
		}), []string{
			"warning node_ids: ids-2 gives no IDs of default: none of its 1024 node IDs that is accepted is free [b] " +
				"of default",
		}},
		"waiting, and asks others": {all(vitals(1, func(v *peer.Vitals) {
			v.Forwards = true
		}), sequencer(func(q *calls.StatusSequencer) { q.Free, q.Lacking = new(int64(0)), []string{"b"} })), []string{
			"warning node_ids: ids-2 asks other nodes for IDs of default: none of its 3 node IDs is free [b] of " +
				"default",
		}},
		"waiting, and one asks others": {all(vitals(1, func(v *peer.Vitals) {
			v.Forwards = true
		}), sequencer(func(q *calls.StatusSequencer) {
			q.Free, q.Lacking = new(int64(0)), []string{"b", "c"}
		})), []string{
			"warning node_ids: ids-2 and ids-3 give no IDs of default: none of its 3 node IDs is free [b c] of default",
		}},
		"calls": {all(vitals(1, func(v *peer.Vitals) {
			v.Failing = []string{"orders"}
		}), vitals(2, func(v *peer.Vitals) { v.Failing, v.Forwards = []string{"orders", "users"}, true })), []string{
			"error calls: Calls for IDs of orders fail at ids-2: it has no node ID of orders, and asks no other node " +
				"(--no-forward) [b] of orders",
			"error calls: Calls for IDs of orders fail at ids-3: it has no node ID of orders, and no other " +
				"node gives " +
				"it IDs [c] of orders",
			"error calls: Calls for IDs of users fail at ids-3: it has no node ID of users, and no other node gives " +
				"it IDs [c] of users",
		}},
		"calls, of nodes alike": {all(vitals(1, func(v *peer.Vitals) {
			v.Failing = []string{"orders"}
		}), vitals(2, func(v *peer.Vitals) { v.Failing = []string{"orders"} })), []string{
			"error calls: Calls for IDs of orders fail at ids-2: it has no node ID of orders, and asks no other node " +
				"(--no-forward); the same holds for 1 more: ids-3 [b c] of orders",
		}},
		"calls, not ready": {all(notReady(1, "not_ready", "so", time.Minute), vitals(1, func(v *peer.Vitals) {
			v.Failing = []string{"default"}
		})), []string{
			"error not_ready: ids-2 gives no IDs since 11:58:58Z: so [b]",
		}},
		"waiting by the allocation": {sequencer(func(q *calls.StatusSequencer) {
			q.Free, q.Waiting = new(int64(1021)), []string{"b"}
		}), nil},
		"no node IDs": {sequencer(func(q *calls.StatusSequencer) {
			q.Nodes = map[int64]string{}
			fill(q, 32)
			q.Free = new(int64(0))
		}), []string{"warning node_ids: No more nodes can give IDs of default: 32 of its 32 node IDs are taken [] of " +
			"default"}},
		"few node IDs": {sequencer(func(q *calls.StatusSequencer) {
			q.Nodes = map[int64]string{}
			fill(q, 29)
			q.Free = new(int64(3))
		}), []string{"warning node_ids: Only 3 more nodes can give IDs of default: 29 of its 32 node IDs are " +
			"taken [] " +
			"of default"}},
		"as many IDs as the layout allows": {all(sequencer(func(q *calls.StatusSequencer) {
			q.Definition = cluster.Define(firn.Default)
			q.Rate = firn.Default.Rate()
		}), vitals(0, func(v *peer.Vitals) { v.Rates = map[string]float64{"default": 4_000_000} }),
			vitals(1, func(v *peer.Vitals) { v.Rates = map[string]float64{"default": 3_800_000} })), []string{
			"warning rate: Callers wait for IDs of default: ids-1 makes 4096000 a second, about as many as the " +
				"layout allows a node [a] of default",
		}},
		"a counter": {func(s *calls.Status) {
			s.Sequencers = append(s.Sequencers, calls.StatusSequencer{
				Name: "invoices", Definition: cluster.Definition{Kind: cluster.Counter},
			})
		}, nil},
		"as many as used": {sequencer(func(q *calls.StatusSequencer) { q.Free = new(int64(0)) }), nil},
		"horizon": {vitals(1, func(v *peer.Vitals) {
			v.Left = 9 * time.Second
		}), []string{"error horizon: ids-2 gives IDs for 7s more: it should have reserved more time, and has not [b]"}},
		"horizon of a short window": {all(vitals(1, func(v *peer.Vitals) {
			v.Left = 3 * time.Second
		}), sequencer(func(q *calls.StatusSequencer) { q.Definition.Window = 4 * time.Second })), nil},
		"horizon of a window that is not short": {all(vitals(1, func(v *peer.Vitals) {
			v.Left = 9 * time.Second
		}), sequencer(func(q *calls.StatusSequencer) { q.Definition.Window = time.Minute })), []string{
			"error horizon: ids-2 gives IDs for 7s more: it should have reserved more time, and has not [b]",
		}},
		"layout": {sequencer(func(q *calls.StatusSequencer) {
			q.Until = noon.AddDate(0, 0, 100)
		}), []string{"warning layout: default has IDs for 100 days more: the time of its layout ends on " +
			"2027-03-02 [] " +
			"of default"}},
		"layout over": {sequencer(func(q *calls.StatusSequencer) { q.Until = noon.Add(-time.Hour) }), []string{
			"error layout: Nobody gets IDs of default since 11:00:00Z: the time of its layout ended on 2026-11-22 [] " +
				"of default",
		}},
		"gone": {
			gone(2),
			[]string{"warning gone: ids-3 is gone since 11:59:41Z: its pulse has ended, and it is still in the " +
				"cluster [c]"},
		},
		"gone before it was seen": {func(s *calls.Status) {
			s.Members[2].Pulse = calls.Pulse{Alive: new(false)}
		}, []string{
			"warning gone: member c is gone: its pulse has ended, and it is still in the cluster [c]",
		}},
		"lost": {func(s *calls.Status) {
			node := func(name, id string, state calls.NodeState, seen time.Duration) {
				s.Nodes = append(s.Nodes, calls.StatusNode{
					Name: name, Host: "h4", Members: []string{"former", id}, State: state, Seen: noon.Add(-seen),
					Reserved: new(noon.Add(30*time.Second - seen)),
				})
			}
			node("ids-3", "c", calls.NodeLost, time.Second) // a member still
			node("ids-4", "x", calls.NodeLost, time.Minute)
			node("ids-5", "y", calls.NodeLost, time.Hour)
			node("ids-6", "z", calls.NodeLeft, time.Minute)
			node("ids-7", "w", calls.NodeUnknown, time.Minute)
		}, []string{
			"warning lost: ids-4 is lost since 11:59:00Z: it went without leaving, on the host h4; its last horizon " +
				"is 11:59:30Z [x]",
		}},
		"late": {
			late(2),
			[]string{"warning late: ids-3 is late since 11:59:46Z: it has not renewed its pulse; its reserved time " +
				"ends in 16s [c]"},
		},
		"no store": {
			noStore,
			[]string{"error store: ids-1 can reserve no more time since 11:59:41Z: the store has not answered it for " +
				"19s; the IDs of ids-1 end in 28s []"},
		},
		"never a store": {func(s *calls.Status) {
			*s = calls.Status{At: noon, Store: calls.StatusStore{Why: "it waits for m2"}}
		}, []string{
			"error store: This node gives no IDs: the store does not answer it []",
		}},
		"disks": {
			all(machines(true), func(s *calls.Status) {
				m := s.Quorum.Machines
				m[0].Disk, m[0].Sync = &space.Room{Free: 300 << 20, Share: 0.03, Inodes: 1}, 3*time.Second
				m[1].Disk = &space.Room{Free: 300 << 20, Share: 0.5, Inodes: 0.1}
				m[2].Disk = &space.Room{Free: 300 << 30, Share: 0.03, Inodes: 1}
			}), []string{
				"error disk: The machine m1 of the quorum ends when its disk is full: 300 MiB (3 %) are left []",
				"warning disk: The machine m1 of the quorum delays writes: its disk took 3s for a small one []",
				"warning disk: The machine m2 of the quorum ends when its disk is full: 300 MiB (50 %) and 10 % of " +
					"the inodes are left []",
			},
		},
		"the disk of a quorum of one": {
			func(s *calls.Status) { s.Disk = &space.Room{Free: 300 << 20, Share: 0.1, Inodes: 1} },
			[]string{"warning disk: This node ends when its disk is full: 300 MiB (10 %) are left []"},
		},
		"a machine": {
			machines(true, "m2:7420"),
			[]string{"warning quorum: The quorum can lose no other machine: 1 of 3 machines is down (m2) []"},
		},
		"a machine that never told its role": {all(machines(true, "m2:7420"), func(s *calls.Status) {
			s.Quorum.Machines[1].Role, s.Quorum.Record = "", []string{"m2:7420"}
		}), []string{
			"warning quorum: The quorum can lose no other machine: 1 of 3 machines is down (m2) []",
		}},
		"two machines": {machines(false, "m2:7420", "m3:7420"), []string{
			"error quorum: No node can reserve more time: 2 of 3 machines are down (m2, m3); the IDs of ids-1 end " +
				"in 28s []",
		}},
		"no majority": {all(noStore, machines(false, "m2:7420", "m3:7420")), []string{
			"error quorum: No node can reserve more time since 11:59:41Z: 2 of 3 machines are down (m2, m3); the IDs " +
				"of ids-1 end in 28s []",
		}},
		"no majority, and its horizon is reached": {all(noStore, machines(false, "m2:7420", "m3:7420"), over), []string{
			"error quorum: Nodes stop giving IDs since 11:59:48Z: 2 of 3 machines are down (m2, m3) []",
		}},
		"no majority for a window": {all(noStore, machines(false, "m2:7420", "m3:7420"), over,
			silentFor(31*time.Second)), []string{
			"error quorum: No node gives IDs since 11:59:48Z: 2 of 3 machines are down (m2, m3) []",
		}},
		"no majority for a part of a long window": {all(noStore, machines(false, "m2:7420", "m3:7420"), over,
			silentFor(31*time.Second), vitals(1, func(v *peer.Vitals) { v.Left = 2 * time.Minute })), []string{
			"error quorum: Nodes stop giving IDs since 11:59:48Z: 2 of 3 machines are down (m2, m3) []",
		}},
		"no majority since its horizon": {all(noStore, machines(false, "m2:7420", "m3:7420"), over,
			silentFor(31*time.Second), vitals(0, func(v *peer.Vitals) { v.Left = -5 * time.Second })), []string{
			"error quorum: No node gives IDs since 11:59:53Z: 2 of 3 machines are down (m2, m3) []",
		}},
		"no majority, or cut off": {all(noStore, machines(false, "m2:7420", "m3:7420"), over, silentFor(31*time.Second),
			mute), []string{
			"error quorum: ids-1 gives no IDs since 11:59:48Z: 2 of 3 machines do not answer (m2, m3) []",
		}},
		"a majority that does not work yet": {all(noStore, machines(false, "m2:7420"), over), []string{
			"error quorum: ids-1 gives no IDs since 11:59:48Z: no majority of the machines of the quorum works yet []",
		}},
		"machines that begin": {func(s *calls.Status) {
			*s = calls.Status{At: noon, Quorum: &quorum.Status{
				Waiting:  "waiting for m2:7420",
				Machines: []quorum.Machine{{Address: "m1:7420"}, {Address: "m2:7420", Err: "no answer"}},
			}}
		}, []string{
			"error quorum: This node gives no IDs: no majority of the machines of the quorum works yet; this " +
				"machine: waiting for m2:7420 []",
		}},
		"several of a kind": {all(gone(1), gone(2)), []string{
			"warning gone: ids-2 is gone since 11:59:41Z: its pulse has ended, and it is still in the cluster; the " +
				"same holds for 1 more: ids-3 [b c]",
		}},
		"many sequencers": {func(s *calls.Status) {
			s.Sequencers[0].Until = noon.AddDate(0, 0, 100)
			for i := range 61 {
				s.Sequencers = append(s.Sequencers,
					calls.StatusSequencer{Name: fmt.Sprintf("s%02d", i), Until: noon.AddDate(0, 0, 100)})
			}
		}, []string{
			"warning layout: default has IDs for 100 days more: the time of its layout ends on 2027-03-02; the same " +
				"holds for 61 more: s00, s01, s02 and 58 more [] of 62",
		}},
		"versions": {vitals(2, func(v *peer.Vitals) {
			v.Version = "v2"
		}), []string{"warning version: An upgrade is not finished: ids-1 and ids-2 run v1; ids-3 runs v2 []"}},
		"stale": {
			all(noStore, behind),
			[]string{"error store: ids-1 can reserve no more time since 11:59:41Z: the store has not answered it for " +
				"19s; the IDs of ids-1 end in 28s []"},
		},
		"all at once": {all(vitals(2, func(v *peer.Vitals) {
			v.Version = "v2"
		}), behind, notReady(0, "internal", "a bug", time.Minute), machines(true, "m2:7420")), []string{
			"error clock: ids-2 gives no IDs since 11:59:30Z: its clock is 59m56s behind 2 of 2 others [b]",
			"error not_ready: ids-1 gives no IDs since 11:58:58Z: an error that firn does not expect; the log " +
				"has it [a]",
			"warning quorum: The quorum can lose no other machine: 1 of 3 machines is down (m2) []",
			"warning version: An upgrade is not finished: ids-1 and ids-2 run v1; ids-3 runs v2 []",
		}},
	} {
		s := healthy()
		tt.change(&s)
		var have []string
		for _, p := range calls.Problems(s) {
			text := fmt.Sprintf("%s %s: %s %v", p.Level, p.Kind, p.What(s.At), p.Members)
			if len(p.Sequencers) > 0 {
				text += " of " + strings.Join(p.Sequencers, ", ")
			}
			if n := len(p.Sequencers); n > 3 {
				text = fmt.Sprintf("%s %s: %s %v of %d", p.Level, p.Kind, p.What(s.At), p.Members, n)
			}
			have = append(have, text)
			if p.Do == "" || p.Link != "https://github.com/firn-id/firn/blob/main/docs/problems.md#"+string(p.Kind) {
				t.Errorf("%s: %s: what to do is %q, the link %q", name, text, p.Do, p.Link)
			}
		}
		if !slices.Equal(have, tt.want) {
			t.Errorf("%s: have\n%q\nwant\n%q", name, have, tt.want)
		}
	}
}

func fill(q *calls.StatusSequencer, nodes int64) {
	for node := range nodes {
		q.Nodes[node] = fmt.Sprint(node)
	}
}

// A thousand nodes with one trouble are one problem.
func TestProblemsOfMany(t *testing.T) {
	s := healthy()
	for i := range 1000 {
		m := s.Members[0]
		m.ID, m.Owner = fmt.Sprint(i), fmt.Sprintf("h%03d", i)
		m.Vitals = &peer.Vitals{Code: "not_ready", Why: "it has reached its horizon", For: time.Minute}
		s.Members = append(s.Members, m)
	}
	have := calls.Problems(s)
	const want = "h000, h001, h002 and 997 more give no IDs since 11:58:58Z: it has reached its horizon"
	if len(have) != 1 || have[0].What(s.At) != want || len(have[0].Members) != 1000 {
		t.Errorf("have %v, want %q", have, want)
	}
}

// Where the time of a layout is over the remedy is the same, whether the node or the sequencer tells.
func TestLifetimeRemedy(t *testing.T) {
	s := healthy()
	*s.Members[0].Vitals = peer.Vitals{Code: "lifetime", Why: "its time has ended", For: time.Minute}
	s.Sequencers[0].Until = noon
	have := calls.Problems(s)
	if len(have) != 2 || have[0].Kind != calls.NotReadyProblem || have[1].Kind != calls.LayoutProblem ||
		have[0].Do != have[1].Do {
		t.Errorf("have %+v", have)
	}
}

// Each kind of problem has a heading of its name in the documentation, worst first, to which its link leads.
func TestEachKindHasAHeading(t *testing.T) {
	text, err := os.ReadFile("../../../docs/problems.md")
	if err != nil {
		t.Fatal(err)
	}
	var want, have []string
	for _, kind := range calls.ProblemKinds() {
		want = append(want, string(kind))
	}
	for line := range strings.Lines(string(text)) {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			have = append(have, strings.TrimSpace(heading))
		}
	}
	if !slices.Equal(have, want) {
		t.Errorf("docs/problems.md has %q, want %q", have, want)
	}
}

// A problem is read in this order: what people notice, since when, why, what to do, where to read on, and the error
// itself.
func TestSentence(t *testing.T) {
	s := healthy()
	s.Store = calls.StatusStore{Answered: new(noon.Add(-25 * time.Hour)), Why: "list peers/: context deadline exceeded"}
	s.Members = nil
	have := calls.Problems(s)
	const want = "This node gives no IDs since 2026-11-21T11:00:00Z: the store has not answered it for 25h0m. " +
		"Start the store, or mend the network between it and this node. " +
		"https://github.com/firn-id/firn/blob/main/docs/problems.md#store (list peers/: context deadline exceeded)"
	if len(have) != 1 || have[0].Sentence(s.At) != want {
		t.Errorf("have %q\nwant %q", have[0].Sentence(s.At), want)
	}
}
