package ui

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/store/quorum"
)

const (
	changesEvery = 500 * time.Millisecond // between two checks for changes
	beatEvery    = time.Second            // between two beats
	pulsesEvery  = 3 * time.Second        // between two reads of who is alive
	lookEvery    = 2 * time.Second        // between two reads of what changes without an entry in the log
)

// To read and to draw many members takes long. The more there are, the less often it is done, so that a page of 10,000
// costs no more than one of 1,000.
const (
	many        = 64                     // pages draw more than these at most once a second
	pulsePerOne = time.Millisecond       // between two reads of who is alive, for each member
	scenePerOne = 400 * time.Microsecond // between two scenes
)

// every returns how much time is between two of something, at least, in a cluster of so many members.
func every(least, perOne time.Duration, members int) time.Duration {
	return max(least, perOne*time.Duration(members))
}

// scene is the cluster as a page shows it. It does not change.
type scene struct {
	position int64
	tree     tree
}

// facts are the single values.
type facts struct {
	Member   string             `json:"member"`   // of this server
	Position int64              `json:"position"` // that it has reached
	Entries  int64              `json:"entries"`
	NotReady string             `json:"not_ready"`       // why the node is not ready; empty: it is
	Store    *calls.StatusStore `json:"store,omitempty"` // while it does not answer
}

// inRing is a member.
type inRing struct {
	Watches string `json:"watches,omitempty"`
	Joined  int64  `json:"joined"`
	Voter   string `json:"voter,omitempty"` // the machine that is a voter of the quorum and ends with it
	Last    bool   `json:"last,omitempty"`  // without that the quorum has no majority
	process
}

// process describes the process of a member, except for its signs.
type process struct {
	State calls.State `json:"state"`
	Fresh bool        `json:"fresh"` // it is confirmed
	// unless it is fresh: when the rest was true, in Unix milliseconds; 0: unknown
	AsOf      int64             `json:"as_of,omitempty"`
	Owner     string            `json:"owner,omitempty"`
	Version   string            `json:"version,omitempty"`
	Addresses map[string]string `json:"addresses,omitempty"`
	Since     int64             `json:"since,omitempty"` // the process began, in Unix milliseconds
	Why       string            `json:"why,omitempty"`
}

// signs are the vital signs of a process that change all the time. They are rounded as they are shown, so that most of
// them are the same at the next look. Nil: unknown.
type signs struct {
	Rate  *float64 `json:"rate,omitempty"` // IDs per second
	Given *float64 `json:"given,omitempty"`
	// by how much the wall clock was ahead of the others' median, at least, in milliseconds
	Offset *float64 `json:"offset,omitempty"`
	Left   *float64 `json:"left,omitempty"` // to the nearest horizon, in seconds
	RTT    *float64 `json:"rtt,omitempty"`  // the store's, in milliseconds
}

type join struct {
	Target string `json:"target"`
	Phase  string `json:"phase"`
	process
}

// layout is a layout that IDs may be inspected with, like a sequencer's.
type layout struct {
	Definition cluster.Definition `json:"definition"`
	Capacity   int64              `json:"capacity"`
}

// layouts are the presets.
var layouts = func() map[string]layout {
	all := map[string]layout{}
	for _, p := range firn.Presets() {
		d := cluster.Define(p.Layout)
		all[p.Name] = layout{d, d.Capacity()}
	}
	return all
}()

// origin is the part of a sequencer that never changes. A counter has only the first two.
type origin struct {
	Definition cluster.Definition `json:"definition"`
	Created    int64              `json:"created"`
	Capacity   int64              `json:"capacity,omitzero"`
	Until      time.Time          `json:"until,omitzero"`
	Rate       float64            `json:"rate,omitzero"`
}

// rules are what operators have said of a sequencer.
type rules struct {
	Allocation *cluster.Allocation `json:"allocation"`
	Share      *int64              `json:"share,omitempty"` // nil: the policy does not name it
	Drained    []string            `json:"drained"`

	Reservations []calls.Reservation `json:"reservations,omitempty"`
}

// quiet returns the quorum without what changes all the time and nobody looks at.
func quiet(q quorum.Status) quorum.Status {
	q.Machines = slices.Clone(q.Machines)
	for i := range q.Machines {
		m := &q.Machines[i]
		m.Index, m.InUse, m.RoundTrip, m.Disk = 0, 0, 0, nil
		m.Clock, m.Sync = m.Clock.Round(10*time.Microsecond), m.Sync.Round(10*time.Microsecond)
	}
	return q
}

// scenes makes scenes for all pages: one at a time, and only when something has changed.
type scenes struct {
	service *calls.Service

	mu      sync.Mutex // guards what follows
	latest  *scene
	made    time.Time
	reading reading
	read    time.Time // when the pulses were last read
	asking  bool
	news    bool // a reading has come in
}

// reading is the last read of who is alive, and of the quorum.
type reading struct {
	pulses *calls.Reading // nil: unknown
	done   bool           // false: nothing was read yet, or only long ago
	quorum *quorum.Status // nil: there is none, or it is not known yet
}

// look returns the scene at a time, for a caller who may see it.
func (s *scenes) look(who *auth.Caller, now time.Time) (*scene, error) {
	if err := who.May(auth.Look, ""); err != nil {
		return nil, err
	}
	v, _ := s.service.Value(who) // the zero value until the member has read the log
	s.mu.Lock()
	defer s.mu.Unlock()
	if every := every(pulsesEvery, pulsePerOne, v.Size()); now.Sub(s.read) >= every && !s.asking {
		if now.Sub(s.read) >= every+2*pulsesEvery {
			s.reading, s.news = reading{}, true // nobody looked meanwhile
		}
		s.asking, s.read = true, now
		defer func() { go s.ask(who) }() // or else the scene might have a part of what that reads
	}
	age := now.Sub(s.made) + changesEvery/2
	if s.latest != nil && v.Size() > many && age < every(beatEvery, scenePerOne, v.Size()) {
		return s.latest, nil
	}
	same := s.latest != nil && s.latest.position == v.Position() && !s.news
	if same && age < every(lookEvery, pulsePerOne, v.Size()) {
		return s.latest, nil
	}
	status, err := s.service.Look(who, s.reading.pulses, s.reading.quorum)
	if err != nil {
		return nil, err
	}
	if !s.reading.done {
		status.Problems = []calls.Problem{} // that the store does not answer, as it was not asked
	}
	status.Problems = s.service.AndThisNode(status.Problems)
	s.latest, s.made, s.news = sceneOf(status, s.reading.done, s.service.Ready()), now, false
	return s.latest, nil
}

// ask reads the pulses and the state of the quorum, for the next scene.
func (s *scenes) ask(who *auth.Caller) {
	ctx, cancel := context.WithTimeout(context.Background(), pulsesEvery)
	defer cancel()
	about := make(chan *quorum.Status, 1)
	go func() {
		q, _ := s.service.LookQuorum(ctx, who) // look refuses a caller who may not
		about <- q
	}()
	pulses, _ := s.service.Pulses(ctx, who) // an error is remembered
	q := <-about
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asking, s.news = false, true
	s.reading = reading{pulses, true, q}
}

// sceneOf arranges a status, for which the store was asked or not.
func sceneOf(status calls.Status, asked bool, notReady error) *scene {
	members, joins, sequencers, vitals := tree{}, tree{}, tree{}, tree{}
	names := tree{}
	for _, n := range status.Nodes {
		for _, id := range n.Members {
			names[id] = n.Name
		}
	}
	for _, m := range status.Members {
		p := inRing{Watches: m.Watches, Joined: m.Joined, process: processOf(status, m.Pulse)}
		if machine := status.MachineOf(m.ID, m.Owner); machine != nil && machine.Role == quorum.Voter {
			p.Voter = machine.Address
			p.Last, _, _ = calls.EndsMajority(status.Quorum, machine)
		}
		members[m.ID] = p
		if m.Vitals != nil {
			vitals[m.ID] = signsOf(*m.Vitals)
		}
	}
	for _, j := range status.Joins {
		joins[j.Joiner] = join{j.Target, j.Phase, processOf(status, j.Pulse)}
	}
	for _, q := range status.Sequencers {
		about := tree{
			"origin": origin{q.Definition, q.Created, q.Capacity, q.Until, q.Rate}, "here": q.Here,
			"given": rounded(q.Given),
		}
		sequencers[q.Name] = about
		if q.Definition.Claimed() {
			continue
		}
		nodes := tree{}
		for node, holder := range q.Nodes {
			nodes[strconv.FormatInt(node, 10)] = holder
		}
		about["nodes"], about["waiting"], about["rules"] = nodes, q.Waiting,
			rules{q.Allocation, q.Share, q.Drained, q.Reservations}
	}
	f := facts{Member: status.Member, Position: status.Position, Entries: status.Entries}
	if notReady != nil {
		f.NotReady = calls.Why(notReady)
	}
	if asked && !status.Store.Reached {
		f.Store = &status.Store
	}
	all := tree{
		"facts": f, "problems": status.Problems,
		"members": members, "vitals": vitals, "joins": joins, "sequencers": sequencers, "names": names,
	}
	if status.Quorum != nil {
		all["quorum"] = quiet(*status.Quorum)
	}
	return &scene{status.Position, all}
}

func processOf(s calls.Status, p calls.Pulse) process {
	about := process{State: s.StateOf(p), Fresh: p.Fresh, Owner: p.Owner}
	if !p.Fresh {
		about.AsOf = milliseconds(p.AsOf)
	}
	if v := p.Vitals; v != nil {
		about.Version, about.Addresses, about.Why = v.Version, v.Addresses, v.Why
		about.Since = milliseconds(&v.Since)
	}
	return about
}

func signsOf(v peer.Vitals) signs {
	s := signs{Rate: digits(v.Rate, 2), Given: digits(float64(v.Given), 3)}
	if v.Verdict != "" {
		s.Offset = digits(float64(v.Offset.Round(time.Millisecond).Milliseconds()), 2)
	}
	if v.Left != 0 {
		left := v.Left.Round(time.Second).Seconds()
		s.Left = &left
	}
	if v.RoundTrip != 0 {
		s.RTT = digits(float64(v.RoundTrip)/float64(time.Millisecond), 1)
	}
	return s
}

// rounded rounds as rates are shown; nil stays.
func rounded(rate *float64) *float64 {
	if rate == nil {
		return nil
	}
	return digits(*rate, 2)
}

// digits rounds to so many digits.
func digits(n float64, count int) *float64 {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(n, 'g', count, 64), 64) // it reads what it wrote
	return &rounded
}

// milliseconds is a time in Unix milliseconds; 0: unknown.
func milliseconds(t *time.Time) int64 {
	if t == nil || t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
