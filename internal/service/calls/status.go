package calls

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/firn-id/firn/internal/base/space"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/codes"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/quorum"
)

// Status is what a member knows about its cluster, as JSON.
type Status struct {
	Cluster    string            `json:"cluster"`  // its ID; empty while the answering member does not know it
	Member     string            `json:"member"`   // the answering member's ID; empty while it has none
	Position   int64             `json:"position"` // of the last entry that it has applied
	Entries    int64             `json:"entries"`  // number of entries that it has applied since the log began
	At         time.Time         `json:"at"`       // when this was found, by the answering server's clock
	Store      StatusStore       `json:"store"`
	Problems   []Problem         `json:"problems"`        // see the function Problems
	Members    []StatusMember    `json:"members"`         // in the order in which they joined
	Nodes      []StatusNode      `json:"nodes,omitempty"` // by name
	Joins      []StatusJoin      `json:"joins"`
	Sequencers []StatusSequencer `json:"sequencers"`
	Quorum     *quorum.Status    `json:"quorum,omitempty"` // nil: the store is not a quorum
	// where a quorum of one keeps the data; nil: unknown, or others keep it
	Disk *space.Room `json:"disk,omitempty"`
}

// StatusStore says whether the store answers, in a Status. Times are by the answering server's clock; nil: not since
// that began.
type StatusStore struct {
	Reached bool `json:"reached"`
	// when it last told of the members, which the rest of the Status is as of
	AsOf *time.Time `json:"as_of,omitempty"`
	// while it does not: when it last answered that or a write; to a third of the window
	Answered *time.Time `json:"answered,omitempty"`
	Why      string     `json:"why,omitempty"` // it does not answer
}

// StatusNode is a node that lives, or has been gone for less than a day, in a Status. Times are by its own clock.
type StatusNode struct {
	Name     string     `json:"name"`
	Host     string     `json:"host,omitempty"` // empty: unknown
	Members  []string   `json:"members"`        // its member IDs, the latest last; at most 8
	State    NodeState  `json:"state"`
	Since    time.Time  `json:"since"`              // when it began under the latest member ID
	Seen     time.Time  `json:"seen"`               // when it last wrote its pulse
	Reserved *time.Time `json:"reserved,omitempty"` // it gave no ID of this instant or later then; nil: unknown
}

// NodeState says whether a node lives.
type NodeState string

// The states of a node.
const (
	NodeAlive   NodeState = "alive"
	NodeLeft    NodeState = "left"    // in order, at the time when it was seen
	NodeLost    NodeState = "lost"    // it went without leaving
	NodeUnknown NodeState = "unknown" // the store does not answer
)

// StatusMember is a member in a Status.
type StatusMember struct {
	ID      string `json:"id"`
	Watches string `json:"watches,omitempty"` // the member it watches; empty: it is alone
	Joined  int64  `json:"joined"`            // the position at which it joined
	Pulse
}

// Pulse is the state of the process behind a member ID. Zero value: unknown.
type Pulse struct {
	// nil: unknown, as the store did not answer, or it came or left while that was asked
	Alive *bool  `json:"alive,omitempty"`
	Owner string `json:"owner,omitempty"` // the name of its node; empty: unknown
	// Owner and Vitals are confirmed: its pulse was not overdue when the store last told of the members
	Fresh  bool          `json:"fresh"`
	AsOf   *time.Time    `json:"as_of,omitempty"`    // when it last wrote its pulse, as far as is known; nil: unknown
	Every  time.Duration `json:"every_ns,omitempty"` // it writes its pulse again within this time
	Vitals *peer.Vitals  `json:"vitals,omitempty"`   // with times by the answering server's clock; nil: unknown
}

// State is how the process behind a member ID is, in a word: one of these, or the code of why it is not ready.
type State string

// The states of a process beside the codes.
const (
	ReadyState   State = "ready"
	AliveState   State = "alive"   // it is of a version that tells no more
	LateState    State = "late"    // its pulse is overdue
	GoneState    State = "gone"    // it has no pulse
	NewState     State = "new"     // it has come or left since the store told of the members
	UnknownState State = "unknown" // the store does not answer
)

// StateOf returns the state of a process.
func (s Status) StateOf(p Pulse) State {
	switch {
	case p.Alive != nil && !*p.Alive:
		return GoneState
	case p.Fresh && p.Vitals == nil:
		return AliveState
	case p.Fresh && p.Vitals.Ready:
		return ReadyState
	case p.Fresh:
		return State(cmp.Or(p.Vitals.Code, string(codes.NotReady)))
	case p.Alive != nil:
		return LateState
	case s.Store.Reached:
		return NewState
	default:
		return UnknownState
	}
}

// StatusJoin is a pending join in a Status.
type StatusJoin struct {
	Joiner string `json:"joiner"`
	Target string `json:"target"` // the member it is to watch
	Phase  string `json:"phase"`  // prepared; or accepted: it watches the target, and its own watcher has yet to follow
	Pulse
}

// Phases of a pending join.
const (
	Prepared = "prepared"
	Accepted = "accepted"
)

// statusOf describes a value, with what was read of pulses, and the quorum; nil: unknown.
func (s *Service) statusOf(v cluster.Value, r *Reading, q *quorum.Status) Status {
	status := s.looking(r).status(v)
	status.Cluster, status.Sequencers, status.Quorum, status.Disk = s.member.Cluster(), s.describeAll(v), q, s.disk()
	for i := range status.Sequencers {
		if r != nil {
			status.Sequencers[i].Unfenced = r.unfenced[status.Sequencers[i].Name]
		}
	}
	return status.judged()
}

// Stored describes what a store has told one that is no member, by whose wall clock it was read now: the value at the
// end of the log, the pulses of all living members, and the owners of node IDs by the name of their sequencer.
func Stored(v cluster.Value, pulses map[string]peer.Pulse, owners map[string][]peer.Owner, wall time.Time) Status {
	now := time.Now()
	l := looking{
		now: now, at: wall.UTC().Truncate(time.Millisecond), reading: readingOf(v, pulses),
		seen: map[string]sight{}, read: now,
	}
	for id, p := range pulses {
		l.seen[id] = sight{pulse: p, first: now}
	}
	status := l.status(v)
	status.Sequencers = describeAll(v)
	for i, q := range status.Sequencers {
		if known, ok := owners[q.Name]; ok {
			there, _ := v.Sequencer(q.Name)
			status.Sequencers[i].Unfenced = UnfencedOf(there, known, wall)
		}
	}
	return status.judged()
}

// status describes a value without its sequencers.
func (l looking) status(v cluster.Value) Status {
	status := Status{
		Member: l.member, Position: v.Position(), Entries: v.Entries(), At: l.at, Store: l.store(),
		Members: []StatusMember{}, Nodes: l.describeNodes(), Joins: []StatusJoin{},
	}
	for _, id := range v.Members() {
		m := StatusMember{ID: id, Pulse: l.pulse(id)}
		m.Joined, _ = v.Joined(id)
		if watched, ok := v.Watched(id); ok {
			m.Watches = watched
		}
		status.Members = append(status.Members, m)
	}
	for joiner, j := range v.Joins() {
		phase := Prepared
		if j.Accepted {
			phase = Accepted
		}
		status.Joins = append(status.Joins, StatusJoin{joiner, j.Target, phase, l.pulse(joiner)})
	}
	return status
}

// judged adds what follows from the rest.
func (s Status) judged() Status {
	s.rateSequencers()
	s.Problems = Problems(s)
	return s
}

// rateSequencers adds what members tell of the rates of sequencers, while the store tells of them and one confirms it.
func (s *Status) rateSequencers() {
	sums, known := map[string]float64{}, false
	for _, m := range s.Members {
		if !m.Fresh || m.Vitals == nil {
			continue
		}
		known = true
		for name, rate := range m.Vitals.Rates {
			sums[name] += rate
		}
	}
	for i := range s.Sequencers {
		if known && s.Store.Reached {
			s.Sequencers[i].Given = new(sums[s.Sequencers[i].Name])
		}
	}
}

// ownStatus returns what the node knows of itself, of the store and of the quorum, without a call of the store. The
// store counts as reached unless the node is past its horizon and its next pulse is overdue.
func (s *Service) ownStatus() Status {
	l := s.looking(nil)
	status := Status{Member: l.member, At: l.at, Store: l.store(), Disk: s.disk()}
	own := StatusMember{ID: l.member, Pulse: l.pulse(l.member)}
	v := own.Vitals
	status.Store.Reached = v == nil || v.Ready || codes.Code(v.Code) != codes.NotReady || v.Left >= 0 || !l.overdue()
	status.Members = []StatusMember{own}
	soon, cancel := context.WithTimeout(context.Background(), 250*time.Millisecond)
	defer cancel()
	status.Quorum = s.RecentQuorum(soon)
	return status
}

// disk returns the room where a quorum of one keeps the data; nil: unknown, or others keep it.
func (s *Service) disk() *space.Room {
	if s.options.Disk == nil {
		return nil
	}
	room, ok := s.options.Disk()
	if !ok {
		return nil
	}
	return &room
}

// Status returns what the member knows about its cluster.
func (s *Service) Status(ctx context.Context, who *auth.Caller) (Status, error) {
	ctx, end, err := s.begin(ctx, who, auth.Look, "", 1)
	if err != nil {
		return Status{}, err
	}
	defer end()
	v, err := s.latest()
	if err != nil {
		return Status{}, err
	}
	about := make(chan *quorum.Status, 1)
	go func() { about <- s.quorum(ctx) }()
	// Without the store there is a status too, and soon.
	soon, cancel := context.WithTimeout(ctx, pulsesWithin)
	defer cancel()
	reading, _ := s.readPulses(soon) // an error is remembered
	return s.statusOf(v, reading, <-about), nil
}

// Resumed is the answer to Resume.
type Resumed struct {
	Resumed bool       `json:"resumed"`         // false: no node was waiting
	Until   *time.Time `json:"until,omitempty"` // when the wait would have ended
}

// Resume ends the wait of all nodes after the store has lost data.
func (s *Service) Resume(ctx context.Context, who *auth.Caller) (_ Resumed, err error) {
	defer func(ctx context.Context) { s.changed(ctx, who, "resume", "", err) }(ctx)
	ctx, end, err := s.begin(ctx, who, auth.Admin, "", 1)
	if err != nil {
		return Resumed{}, err
	}
	defer end()
	until, err := s.member.Resume(ctx)
	if err != nil || until.IsZero() {
		return Resumed{}, err
	}
	until = until.UTC()
	return Resumed{Resumed: true, Until: &until}, nil
}

const pulsesWithin = time.Second

// latest returns the value that the member has reached. Positions are at least 1: a value at 0 was not read.
func (s *Service) latest() (cluster.Value, error) {
	v := s.member.Value()
	if v.Position() == 0 {
		return v, fmt.Errorf("%w: it has not read the log of the cluster yet", peer.ErrNotReady)
	}
	return v, nil
}

// Skipped reports whether an entry of the log is passed over, as far as the member has read it.
func (s *Service) Skipped(position int64, entry string) bool {
	return s.member.Value().Skipped(position, entry)
}

// Value returns the value of the cluster that the member has reached. It counts against no limit.
func (s *Service) Value(who *auth.Caller) (cluster.Value, error) {
	if err := who.May(auth.Look, ""); err != nil {
		return cluster.Value{}, err
	}
	return s.latest()
}

// Recent returns what the node remembers of the log, while the store does not answer, and as of when that is the end of
// the log, by the member's wall clock.
func (s *Service) Recent() (store.Batch, time.Time, error) {
	batch, read, err := s.member.Recent()
	if err != nil {
		return batch, time.Time{}, err
	}
	l := s.looking(nil)
	if l.answered.After(read) {
		read = l.answered
	}
	return batch, l.ago(l.now.Sub(read)), nil
}

// RecentIfSilent returns as of when the node knows the end of the log, by the member's wall clock, where the store does
// not answer: its own next pulse is overdue. Zero: the store answers, or nothing was read.
func (s *Service) RecentIfSilent() (asOf time.Time) {
	if l := s.looking(nil); l.overdue() {
		_, asOf, _ = s.Recent()
	}
	return asOf
}

// Log returns the log of the cluster.
func (s *Service) Log(who *auth.Caller) (store.Log, error) {
	if err := who.May(auth.Look, ""); err != nil {
		return nil, err
	}
	if err := who.Spend(1); err != nil {
		return nil, err
	}
	return s.member.Log()
}
