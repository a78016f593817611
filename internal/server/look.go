package server

import (
	"context"
	"sync"
	"time"

	"github.com/firn-id/firn/cluster"
	"github.com/firn-id/firn/internal/server/auth"
	"github.com/firn-id/firn/member"
	"github.com/firn-id/firn/store/quorum"
)

// Pulses returns the pulses of all living members, by ID, for callers that watch continuously: it counts against
// no limit.
func (s *Service) Pulses(ctx context.Context, who *auth.Caller) (map[string]member.Pulse, error) {
	if err := who.May(auth.Look, ""); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, pulsesWithin)
	defer cancel()
	return s.readPulses(ctx)
}

// readPulses reads the pulses of all living members, and remembers them.
func (s *Service) readPulses(ctx context.Context) (map[string]member.Pulse, error) {
	began := time.Now()
	pulses, err := s.member.Pulses(ctx)
	s.sights.saw(pulses, err, began, s.member.Value())
	return pulses, err
}

// Look returns a Status with pulses and the state of the quorum that were read before; nil: unknown. It does not ask the
// store, and counts against no limit.
func (s *Service) Look(who *auth.Caller, pulses map[string]member.Pulse, q *quorum.Status) (Status, error) {
	v, err := s.Value(who)
	if err != nil {
		return Status{}, err
	}
	return s.statusOf(v, pulses, q), nil
}

// sights are the pulses that were read last: what is known of members while the store does not answer, and of those
// that are gone.
type sights struct {
	mu   sync.Mutex // guards what follows
	seen map[string]sight
	read time.Time // when the store last answered
	err  error     // of the latest attempt
}

// sight is what was read last of a pulse. When it was written is in it only by the writer's clock. By this process's
// clock it was written before first, and after the reading before that, if there was one.
type sight struct {
	pulse         member.Pulse
	before, first time.Time // before is zero if it was not known to be older then
}

// saw remembers a reading that began at a time. What was seen of those that are gone is kept while the value has them.
func (s *sights) saw(pulses map[string]member.Pulse, err error, began time.Time, v cluster.Value) {
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
		_, joins := v.Pending(id)
		if !alive && (v.IsMember(id) || joins) {
			seen[id] = was
		}
	}
	s.seen, s.read = seen, began
}

// late is by how much a pulse may be overdue.
const late = time.Second

// unsure is by how much the clocks of others may differ, which are believed where nothing better is known.
const unsure = 10 * time.Second

// age returns how long ago a pulse was written, whether that is known, and whether the pulse is fresh: not overdue. An
// unknown age is the least possible one. Wall is the member's wall clock at now.
func (s sight) age(now, wall time.Time) (age time.Duration, known, fresh bool) {
	age = wall.Sub(s.pulse.Clock)
	if v := s.pulse.Vitals; v.Verdict == "ahead" || v.Verdict == "behind" {
		age += v.Offset
	}
	least, allowed := max(now.Sub(s.first), 0), s.pulse.Every+late
	switch {
	case !s.before.IsZero():
		age = min(age, now.Sub(s.before))
	case age > allowed+unsure && least <= allowed+unsure: // or its clock is behind
		return least, false, false
	default:
		allowed += unsure
	}
	age = max(age, least)
	return age, true, age <= allowed
}

// looking is what a Status is made from, at one time.
type looking struct {
	member   string        // the ID of the answering member
	own      member.Vitals // its own
	now      time.Time
	at       time.Time // now, by its wall clock, as it is shown
	alive    map[string]member.Pulse
	seen     map[string]sight
	read     time.Time
	answered time.Time
	err      error
}

// looking looks at what is remembered, and at the pulses that were read before; nil: it is unknown who is alive.
func (s *Service) looking(pulses map[string]member.Pulse) looking {
	l := looking{
		member: s.member.ID(), own: s.member.Vitals(), now: time.Now(), at: s.member.Wall().UTC().Truncate(time.Millisecond), alive: pulses,
	}
	s.sights.mu.Lock()
	defer s.sights.mu.Unlock()
	l.seen, l.read, l.err = s.sights.seen, s.sights.read, s.sights.err
	if l.answered = s.member.Answered(); l.answered.Before(l.read) {
		l.answered = l.read
	}
	return l
}

func (l looking) store() StatusStore {
	found := StatusStore{Reached: l.alive != nil}
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

// ago returns the time so long ago, by the member's wall clock.
func (l looking) ago(d time.Duration) time.Time { return l.at.Add(-d.Truncate(time.Millisecond)) }

// pulse describes the process behind an ID.
func (l looking) pulse(id string) (p Pulse) {
	if l.alive != nil {
		_, alive := l.alive[id]
		p.Alive = &alive
	}
	if seen, ok := l.seen[id]; ok {
		p.Owner, p.Every = seen.pulse.Owner, seen.pulse.Every
		p.Fresh = p.Alive != nil && *p.Alive
		if !seen.pulse.Clock.IsZero() { // else it is of an older version
			age, known, fresh := seen.age(l.now, l.at)
			if p.Fresh = p.Fresh && fresh; known {
				p.AsOf = new(l.ago(age))
			}
			v := seen.pulse.Vitals
			for _, at := range []*time.Time{&v.Since, &v.Judged, &v.CopiedAt} {
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
	}
	return p
}
