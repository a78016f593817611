package calls

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/quorum"
)

// Reading is what was read of all pulses at one time.
type Reading struct {
	alive map[string]peer.Pulse
	gone  map[string]bool // members and joiners without a pulse
	lost  map[string]bool // by name: nodes that went without leaving

	unfenced map[string][]Unfenced // by sequencer
}

// Pulses reads the pulses of all living members, for callers that watch continuously: it counts against no limit.
func (s *Service) Pulses(ctx context.Context, who *auth.Caller) (*Reading, error) {
	if err := who.May(auth.Look, ""); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, pulsesWithin)
	defer cancel()
	return s.readPulses(ctx)
}

// readPulses reads the pulses of all living members, and remembers them.
func (s *Service) readPulses(ctx context.Context) (*Reading, error) {
	before, began := s.member.Value(), time.Now()
	nodes, unread := s.member.Nodes(ctx)
	pulses, err := s.member.Pulses(ctx)
	s.sights.saw(pulses, err, began, s.member.Value())
	if err != nil || pulses == nil {
		return nil, err
	}
	r := readingOf(before, pulses)
	if len(r.gone) > 0 { // or has left since: who leaves does so in the log before its pulse ends
		now := s.atTheEnd(ctx)
		maps.DeleteFunc(r.gone, func(id string, _ bool) bool { return !isPeer(now, id) })
	}
	if unread == nil { // else they are as they were
		r.lost = s.lost(ctx, nodes, pulses)
	}
	r.unfenced = s.unfenced(ctx, before)
	return r, nil
}

// readingOf is a reading of these pulses, by a value from before it.
func readingOf(v cluster.Value, pulses map[string]peer.Pulse) *Reading {
	r := &Reading{alive: pulses, gone: map[string]bool{}}
	for _, id := range peersOf(v) {
		if _, alive := pulses[id]; !alive {
			r.gone[id] = true
		}
	}
	return r
}

// lost returns the names of the nodes that have no pulse and have not left, and remembers what is kept about all. Where
// there are some it reads that again: one may have left, or joined under another member ID, while the pulses were read.
func (s *Service) lost(ctx context.Context, nodes []peer.NodeRecord, pulses map[string]peer.Pulse) map[string]bool {
	silent := func(nodes []peer.NodeRecord) map[string]string {
		found := map[string]string{}
		for _, r := range nodes {
			if _, alive := pulses[r.Member()]; !alive && r.Left.IsZero() {
				found[r.Name] = r.Member()
			}
		}
		return found
	}
	lost := map[string]bool{}
	if before := silent(nodes); len(before) > 0 {
		var err error
		if nodes, err = s.member.Nodes(ctx); err != nil {
			return lost
		}
		for name, id := range silent(nodes) {
			lost[name] = before[name] == id
		}
	}
	s.sights.sawNodes(nodes)
	return lost
}

// atTheEnd returns the value of the cluster at the end of the log; where that can't be read, the one that the member
// has reached.
func (s *Service) atTheEnd(ctx context.Context) cluster.Value {
	v := s.member.Value()
	log, err := s.member.Log()
	if err != nil {
		return v
	}
	batch, err := log.Read(ctx, store.Position(v.Position()))
	if err != nil || batch.Checkpoint != nil {
		return s.member.Value()
	}
	for _, e := range batch.Entries {
		entry, err := cluster.Decode(int64(e.Position), e.Data)
		if err != nil {
			return s.member.Value()
		}
		v, _ = cluster.Apply(v, entry)
	}
	return v
}

// peersOf are the members and joiners.
func peersOf(v cluster.Value) []string {
	return slices.AppendSeq(v.Members(), maps.Keys(maps.Collect(v.Joins())))
}

func isPeer(v cluster.Value, id string) bool {
	_, joins := v.Pending(id)
	return joins || v.IsMember(id)
}

// Look returns a Status with pulses and the state of the quorum that were read before; nil: unknown. Of a cluster whose
// log the member has not read it has no members. It does not ask the store, and counts against no limit.
func (s *Service) Look(who *auth.Caller, r *Reading, q *quorum.Status) (Status, error) {
	if err := who.May(auth.Look, ""); err != nil {
		return Status{}, err
	}
	return s.statusOf(s.member.Value(), r, q), nil
}

// sights are the pulses that were read last: what is known of members while the store does not answer, and of those
// that are gone.
type sights struct {
	mu   sync.Mutex // guards what follows
	seen map[string]sight
	read time.Time // when the store last answered
	err  error     // of the latest attempt

	nodes []peer.NodeRecord // as they were read last
}

func (s *sights) sawNodes(nodes []peer.NodeRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nodes = nodes
}

// sight is what was read last of a pulse. When it was written is in it only by the writer's clock. By this process's
// clock it was written before first, and after the reading before that, if there was one.
type sight struct {
	pulse         peer.Pulse
	before, first time.Time // before is zero if it was not known to be older then
}

// saw remembers a reading that began at a time. What was seen of those that are gone is kept while the value has them.
func (s *sights) saw(pulses map[string]peer.Pulse, err error, began time.Time, v cluster.Value) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err = err; err != nil || pulses == nil {
		return
	}
	seen := make(map[string]sight, len(pulses))
	for id, p := range pulses {
		was, known := s.seen[id]
		switch {
		case !known:
			seen[id] = sight{pulse: p, first: began}
		case was.pulse.Clock.Equal(p.Clock):
			seen[id] = sight{p, was.before, was.first}
		default:
			seen[id] = sight{p, s.read, began}
		}
	}
	for id, was := range s.seen {
		_, alive := seen[id]
		if !alive && isPeer(v, id) {
			seen[id] = was
		}
	}
	s.seen, s.read = seen, began
}

// late is by how much a pulse may be overdue.
const late = time.Second

// unsure is by how much the clocks of others may differ, which are believed where nothing better is known.
const unsure = 10 * time.Second

// age returns how long before now a pulse was written, whether that is known, and whether the pulse is fresh: not
// overdue. An unknown age is the least possible one, and where only the clocks of others say that it is overdue, it is
// the longest one of a fresh pulse. Wall is the member's wall clock at now.
func (s sight) age(now, wall time.Time) (age time.Duration, known, fresh bool) {
	age = wall.Sub(s.pulse.Clock)
	if v := s.pulse.Vitals.Judgement(); v.Out() {
		age += v.Offset
	}
	least, allowed := max(now.Sub(s.first), 0), s.pulse.Every+late
	switch {
	case !s.before.IsZero():
		age = min(age, now.Sub(s.before))
	case age > allowed+unsure && least <= allowed+unsure: // or its clock is behind
		return least, false, false
	case age <= allowed+unsure:
		age = min(age, allowed)
	}
	age = max(age, least)
	return age, true, age <= allowed
}

// looking is what a Status is made from, at one time.
type looking struct {
	window   time.Duration // the answering member's; zero: unknown
	member   string        // the ID of the answering member
	own      peer.Vitals   // its own
	now      time.Time
	at       time.Time // now, by its wall clock, as it is shown
	reading  *Reading  // nil: it is unknown who is alive
	seen     map[string]sight
	read     time.Time
	answered time.Time
	err      error
	nodes    []peer.NodeRecord
}

// looking looks at what is remembered, and at what was read before; nil: it is unknown who is alive.
func (s *Service) looking(r *Reading) looking {
	l := looking{
		window: s.options.Window, member: s.member.ID(), own: s.member.Vitals(), now: time.Now(),
		at: s.member.Wall().UTC().Truncate(time.Millisecond), reading: r,
	}
	s.sights.mu.Lock()
	defer s.sights.mu.Unlock()
	l.seen, l.read, l.err, l.nodes = s.sights.seen, s.sights.read, s.sights.err, s.sights.nodes
	if l.answered = s.member.Answered(); l.answered.Before(l.read) {
		l.answered = l.read
	}
	return l
}

func (l looking) store() StatusStore {
	found := StatusStore{Reached: l.reading != nil}
	if !l.read.IsZero() {
		found.AsOf = new(l.ago(l.now.Sub(l.read)))
	}
	if !found.Reached && !l.answered.IsZero() {
		found.Answered = new(l.ago(l.now.Sub(l.answered)))
	}
	if !found.Reached && l.err != nil {
		found.Why = l.err.Error()
	}
	return found
}

// Now returns the time: by the member's wall clock or, while a majority of the others is against that, by theirs.
func (s *Service) Now() time.Time {
	now := s.member.Wall()
	if v := s.member.Vitals().Judgement(); v.Out() {
		now = now.Add(-v.Offset)
	}
	return now
}

// ago returns the time so long ago, by the member's wall clock.
func (l looking) ago(d time.Duration) time.Time { return l.at.Add(-d.Truncate(time.Millisecond)) }

// judgedAt is the time as of which pulses are fresh or overdue: that of the last reading. Those that were due since may
// well be there.
func (l looking) judgedAt() time.Time {
	if l.reading == nil {
		return l.now
	}
	return l.read
}

// describeNodes describes the nodes that are remembered.
func (l looking) describeNodes() []StatusNode {
	var all []StatusNode
	for _, r := range l.nodes {
		n := StatusNode{Name: r.Name, Host: r.Host, Members: r.Members, Since: r.Since, Seen: r.Seen}
		if !r.Reserved.IsZero() {
			n.Reserved = &r.Reserved
		}
		switch {
		case !r.Left.IsZero():
			n.State = NodeLeft
		case l.reading == nil:
			n.State = NodeUnknown
		case l.reading.lost[r.Name]:
			n.State = NodeLost
		default:
			n.State = NodeAlive
		}
		all = append(all, n)
	}
	return all
}

// overdue reports whether the store has not answered the member for longer than its next pulse may take.
func (l looking) overdue() bool { return l.now.Sub(l.answered) > l.pulse(l.member).Every+late }

// pulse describes the process behind an ID.
func (l looking) pulse(id string) (p Pulse) {
	if l.reading != nil {
		if _, alive := l.reading.alive[id]; alive || l.reading.gone[id] {
			p.Alive = &alive
		}
	}
	if seen, ok := l.seen[id]; ok {
		p.Owner, p.Every = seen.pulse.Owner, seen.pulse.Every
		p.Fresh = p.Alive != nil && *p.Alive
		if !seen.pulse.Clock.IsZero() { // else it is of an older version
			since := l.now.Sub(l.judgedAt())
			age, known, fresh := seen.age(l.judgedAt(), l.at.Add(-since))
			age += since
			if p.Fresh = p.Fresh && fresh; known {
				p.AsOf = new(l.ago(age))
			}
			v := seen.pulse.Vitals
			for _, at := range []*time.Time{&v.Since, &v.Judged, &v.VerdictSince, &v.CopiedAt} {
				if !at.IsZero() {
					*at = l.ago(age + seen.pulse.Clock.Sub(*at))
				}
			}
			p.Vitals = &v
		}
	}
	if id == l.member && (p.Alive == nil || *p.Alive) { // it knows these itself
		own := l.own
		p.Fresh, p.AsOf, p.Vitals = true, &l.at, &own
		p.Every = cmp.Or(p.Every, l.window/3)
	}
	return p
}
