package server

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn/store/quorum"
)

// Problem is something that is wrong in a cluster, or soon will be, as JSON.
type Problem struct {
	Level     ProblemLevel `json:"level"`
	Kind      ProblemKind  `json:"kind"`
	Text      string       `json:"text"`                // a sentence without a full stop, with names and numbers
	Members   []string     `json:"members,omitempty"`   // the IDs of those that it is about
	Sequencer string       `json:"sequencer,omitempty"` // that it is about; empty: none, or all
	Since     *time.Time   `json:"since,omitempty"`     // by the answering server's clock; nil: unknown
}

// ProblemLevel says how bad a problem is.
type ProblemLevel string

// The levels.
const (
	Failing ProblemLevel = "error"   // callers of some node are refused, or soon will be
	Warning ProblemLevel = "warning" // nobody is refused yet
)

// ProblemKind is a kind of problem that programs tell apart.
type ProblemKind string

// The kinds, worst first.
const (
	StoreProblem    ProblemKind = "store"     // out of reach
	CopiedProblem   ProblemKind = "copied"    // a process was copied or set back, so that IDs may exist twice
	QuorumProblem   ProblemKind = "quorum"    // machines are lost
	ClockProblem    ProblemKind = "clock"     // a majority disagrees with a node's clock
	NotReadyProblem ProblemKind = "not_ready" // nodes can't issue IDs
	HorizonProblem  ProblemKind = "horizon"   // reserved time ends, and more is not reserved
	LayoutProblem   ProblemKind = "layout"    // the time of a layout ends
	GoneProblem     ProblemKind = "gone"      // a member's pulse is gone
	LateProblem     ProblemKind = "late"      // a member's pulse is overdue
	TieProblem      ProblemKind = "tie"       // clocks disagree, and no majority agrees
	OrderProblem    ProblemKind = "order"     // existing IDs are ahead of a clock
	NodeIDsProblem  ProblemKind = "node_ids"  // few are free, or members wait for one
	VersionProblem  ProblemKind = "version"   // versions differ
)

var kinds = []ProblemKind{
	StoreProblem, CopiedProblem, QuorumProblem, ClockProblem, NotReadyProblem, HorizonProblem, LayoutProblem,
	GoneProblem, LateProblem, TieProblem, OrderProblem, NodeIDsProblem, VersionProblem,
}

// soonOver is how long before the end of a layout's time it is a problem.
const soonOver = 365 * 24 * time.Hour

// settling is for how long a node must say that it is not ready before that is a problem: one that begins is not ready
// in its first pulse.
const settling = 5 * time.Second

// toldFor is for how long it is a problem that a process was copied.
const toldFor = 24 * time.Hour

// Problems returns what is wrong by a status, worst first. It is pure. Only what is confirmed counts, except for what is
// wrong because it is not.
func Problems(s Status) []Problem {
	p := problems{status: s, names: Names(s), found: []Problem{}}
	p.store()
	p.copies()
	p.quorum()
	p.clocks()
	p.order()
	p.readiness()
	p.pulses()
	p.sequencers()
	p.versions()
	slices.SortStableFunc(p.found, func(a, b Problem) int {
		return cmp.Or(
			cmp.Compare(levelRank(a.Level), levelRank(b.Level)),
			cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)),
			cmp.Compare(a.Text, b.Text),
		)
	})
	return p.found
}

func levelRank(l ProblemLevel) int { return slices.Index([]ProblemLevel{Failing, Warning}, l) }

// problems collects the problems of a status.
type problems struct {
	status Status
	names  map[string]string // of members, by ID
	found  []Problem
}

func (p *problems) add(level ProblemLevel, kind ProblemKind, since *time.Time, about []string, format string, args ...any) {
	p.found = append(p.found, Problem{Level: level, Kind: kind, Text: fmt.Sprintf(format, args...), Members: about, Since: since})
}

// fresh are the members about which everything is confirmed.
func (p *problems) fresh(yield func(StatusMember) bool) {
	for _, m := range p.status.Members {
		if m.Fresh && m.Vitals != nil && !yield(m) {
			return
		}
	}
}

func (p *problems) store() {
	s := p.status.Store
	if s.Reached {
		return
	}
	var text strings.Builder
	text.WriteString("the store does not answer this node")
	if s.Answered != nil {
		text.WriteString(", for " + Rough(p.status.At.Sub(*s.Answered)))
	}
	if s.Why != "" {
		text.WriteString(": " + s.Why)
	}
	for m := range p.fresh {
		if left := p.left(m); m.ID == p.status.Member && left > 0 {
			text.WriteString("; its reserved time ends in " + Rough(left))
		}
	}
	p.add(Failing, StoreProblem, s.Answered, nil, "%s", text.String())
}

// copies finds members whose processes were copied or set back. They have started over, and IDs that were given before that
// may exist twice.
func (p *problems) copies() {
	for m := range p.fresh {
		at := m.Vitals.CopiedAt
		if ago := p.status.At.Sub(at); !at.IsZero() && ago < toldFor {
			p.add(Warning, CopiedProblem, &at, []string{m.ID},
				"%s was copied or set back, as by a snapshot of its machine: it found that out %s ago and started over; IDs of what it had reserved may exist twice",
				p.names[m.ID], Rough(ago))
		}
	}
}

func (p *problems) quorum() {
	q := p.status.Quorum
	if q == nil {
		return
	}
	voters, lost := 0, []string{}
	for _, m := range q.Machines {
		if m.Role != quorum.Voter {
			continue
		}
		voters++
		if m.Err != "" {
			lost = append(lost, m.Address)
		}
	}
	of := fmt.Sprintf("%d of %d machines of the quorum", len(lost), voters)
	switch {
	case !q.Majority && len(lost) > 0:
		p.add(Failing, QuorumProblem, nil, nil, "%s can't be reached (%s): nothing can be written without a majority", of, list(lost))
	case !q.Majority:
		p.add(Failing, QuorumProblem, nil, nil, "a majority of the machines of the quorum can't be reached")
	case len(lost) > 0:
		p.add(Warning, QuorumProblem, nil, nil, "%s can't be reached: %s", of, list(lost))
	}
}

// clocks finds clocks that are out, and those that disagree without a majority.
func (p *problems) clocks() {
	var tied, offsets []string
	for m := range p.fresh {
		switch v := m.Vitals; v.Verdict {
		case "ahead", "behind":
			text := fmt.Sprintf("%s's clock is %s %s", p.names[m.ID], Rough(v.Offset.Abs()), v.Verdict)
			if v.Others > 0 {
				text += fmt.Sprintf(" of %d of %d others", v.Against, v.Others)
				if v.Verdict == "behind" {
					text = strings.Replace(text, "behind of", "behind", 1)
				}
			}
			p.add(Failing, ClockProblem, p.since(m), []string{m.ID}, "%s", text)
		case "tied":
			tied = append(tied, m.ID)
			offsets = append(offsets, fmt.Sprintf("%s %s", p.names[m.ID], signed(v.Offset)))
		}
	}
	if len(tied) > 0 {
		p.add(Warning, TieProblem, nil, tied, "clocks disagree, and no majority agrees, so that each is believed: %s from the others", list(offsets))
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
		case Code(v.Code) == Clock && v.Verdict != "ahead" && v.Verdict != "behind":
			p.add(Failing, OrderProblem, p.since(m), []string{m.ID},
				"IDs may exist up to %s, %s: %s waits, since its own would be unique, but smaller; with --if-ids-are-ahead go-on it does not",
				instant(v.SmallerUntil), p.ahead(v.SmallerUntil), p.names[m.ID])
		}
	}
	if len(smaller) > 0 {
		p.add(Warning, OrderProblem, nil, smaller,
			"IDs may exist up to %s, %s: those that %s are unique, but smaller; with --if-ids-are-ahead wait a node waits instead",
			instant(until), p.ahead(until), p.verb(smaller, "gives", "give"))
	}
}

func (p *problems) ahead(t time.Time) string {
	return Rough(t.Sub(p.status.At)) + " ahead of the clock"
}

func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// readiness finds members that can't issue IDs, by code. Those that wait for a node ID are told with the sequencer.
func (p *problems) readiness() {
	by := map[string][]StatusMember{}
	for m := range p.fresh {
		v, code := m.Vitals, Code(m.Vitals.Code)
		if !v.Ready && v.For >= settling && code != Waiting && code != "clock" {
			by[m.Vitals.Code] = append(by[m.Vitals.Code], m)
		}
	}
	for _, code := range slices.Sorted(maps.Keys(by)) {
		level, all := Failing, by[code]
		if Code(code) == Detached {
			level = Warning // somebody wanted that
		}
		var since *time.Time
		for _, m := range all {
			if at := p.since(m); at != nil && (since == nil || at.Before(*since)) {
				since = at
			}
		}
		p.add(level, NotReadyProblem, since, ids(all), "%s not ready: %s", p.are(ids(all)), all[0].Vitals.Why)
	}
	for m := range p.fresh {
		left := p.left(m)
		if v := m.Vitals; p.status.Store.Reached && v.Ready && m.Every > 0 && left > 0 && p.leftThen(m) < m.Every && !p.short(m) {
			p.add(Failing, HorizonProblem, nil, []string{m.ID}, "the reserved time of %s ends in %s", p.names[m.ID], Rough(left))
		}
	}
}

// pulses finds members whose pulses are gone or overdue.
func (p *problems) pulses() {
	for _, m := range p.status.Members {
		switch {
		case m.Alive == nil || m.Fresh:
		case !*m.Alive:
			p.add(Warning, GoneProblem, m.AsOf, []string{m.ID}, "%s is gone, and is still in the cluster", p.names[m.ID])
		default:
			text := p.names[m.ID] + " has not renewed its pulse"
			if m.AsOf == nil {
				text += ", or its clock is behind"
			}
			if left := p.left(m); left > 0 {
				text += "; its reserved time ends in " + Rough(left)
			}
			p.add(Warning, LateProblem, m.AsOf, []string{m.ID}, "%s", text)
		}
	}
}

// sequencers finds layouts whose time ends, and scarce node IDs.
func (p *problems) sequencers() {
	for _, q := range p.status.Sequencers {
		before := len(p.found)
		until := q.Until.UTC().Format(time.DateOnly)
		switch left := q.Until.Sub(p.status.At); {
		case left <= 0:
			p.add(Failing, LayoutProblem, &q.Until, nil, "the time of the layout of %s ended on %s: it has no more IDs", q.Name, until)
		case left < soonOver:
			p.add(Warning, LayoutProblem, nil, nil, "the time of the layout of %s ends on %s, in %s", q.Name, until, Rough(left))
		}
		used := int64(len(q.Nodes))
		switch total := q.Free + used; {
		case len(q.Lacking) > 0:
			which := fmt.Sprintf("none of %d is free", total)
			if q.Free > 0 {
				which = fmt.Sprintf("none that is accepted is free, of %d", total)
			}
			p.add(Warning, NodeIDsProblem, nil, q.Lacking, "%s for a node ID of %s: %s", p.verb(q.Lacking, "waits", "wait"), q.Name, which)
		case total >= 10 && q.Free*10 < total:
			p.add(Warning, NodeIDsProblem, nil, nil, "%d of %d node IDs of %s are free", q.Free, total, q.Name)
		}
		for i := range p.found[before:] {
			p.found[before+i].Sequencer = q.Name
		}
	}
}

// versions finds members that run different versions.
func (p *problems) versions() {
	by := map[string][]string{}
	for m := range p.fresh {
		if m.Vitals.Version != "" {
			by[m.Vitals.Version] = append(by[m.Vitals.Version], m.ID)
		}
	}
	if len(by) < 2 {
		return
	}
	var texts []string
	for _, version := range slices.Sorted(maps.Keys(by)) {
		texts = append(texts, p.verb(by[version], "runs", "run")+" "+version)
	}
	p.add(Warning, VersionProblem, nil, nil, "versions differ: %s", strings.Join(texts, "; "))
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

// short reports whether a member holds a node ID of a sequencer with a window of its own that is so short that its pulse,
// which comes three times in the window of the node, can't tell whether more is reserved.
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

// since is since when a member is as it is; nil: unknown.
func (p *problems) since(m StatusMember) *time.Time {
	if m.Vitals.For == 0 || m.AsOf == nil {
		return nil
	}
	at := m.AsOf.Add(-m.Vitals.For)
	return &at
}

// are is the names of members, with their verb.
func (p *problems) are(members []string) string { return p.verb(members, "is", "are") }

func (p *problems) verb(members []string, one, more string) string {
	var all []string
	for _, id := range members {
		all = append(all, cmp.Or(p.names[id], "member "+id))
	}
	if len(all) > 1 {
		one = more
	}
	return list(all) + " " + one
}

// Names returns the names of members for people, by ID: their hosts, or their whole owners where several are on one host.
func Names(s Status) map[string]string {
	on := map[string]int{}
	host := func(owner string) string { before, _, _ := strings.Cut(owner, ", process "); return before }
	for _, m := range s.Members {
		on[host(m.Owner)]++
	}
	all := map[string]string{}
	for _, m := range s.Members {
		switch {
		case m.Owner == "":
			all[m.ID] = "member " + m.ID
		case on[host(m.Owner)] > 1:
			all[m.ID] = m.Owner
		default:
			all[m.ID] = host(m.Owner)
		}
	}
	return all
}

func ids(members []StatusMember) (all []string) {
	for _, m := range members {
		all = append(all, m.ID)
	}
	return all
}

// list lists at most three things.
func list(all []string) string {
	const most = 3
	switch n := len(all); {
	case n > most+1:
		return fmt.Sprintf("%s and %d more", strings.Join(all[:most], ", "), n-most)
	case n > 1:
		return strings.Join(all[:n-1], ", ") + " and " + all[n-1]
	default:
		return strings.Join(all, "")
	}
}

// Rough formats a duration for people: to a second, or to a day or an hour where it is long.
func Rough(d time.Duration) string {
	const day = 24 * time.Hour
	switch abs := d.Abs(); {
	case abs >= 2*day:
		return fmt.Sprintf("%d days", d/day)
	case abs >= time.Second:
		d = d.Round(time.Second)
	default:
		d = d.Round(time.Millisecond)
	}
	text := d.String()
	if abs := d.Abs(); abs >= time.Minute && abs%time.Minute == 0 {
		text = strings.TrimSuffix(text, "0s")
	}
	return text
}

func signed(d time.Duration) string {
	if d < 0 {
		return Rough(d)
	}
	return "+" + Rough(d)
}
