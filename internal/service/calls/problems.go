package calls

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/codes"
	"github.com/firn-id/firn/sequencer"
)

// settling is for how long a node must say that it is not ready before that is a problem: one that begins is not ready
// in its first pulse.
const settling = 5 * time.Second

// toldFor is for how long it is a problem that a process was copied.
const toldFor = 24 * time.Hour

// Problems returns what is wrong by a status, worst first, and one for all that is the same. It is pure. Only what is
// confirmed counts, except for what is wrong because it is not.
func Problems(s Status) []Problem {
	p := problems{status: s, names: Names(s)}
	if !p.quorum() {
		p.store()
	}
	p.copies()
	p.disks()
	p.clocks()
	p.order()
	p.readiness()
	p.horizons()
	p.calls()
	p.pulses()
	p.lost()
	p.sequencers()
	p.unfenced()
	p.counters()
	p.versions()
	kinds := ProblemKinds()
	slices.SortStableFunc(p.found, func(a, b finding) int {
		return cmp.Or(
			cmp.Compare(levelRank(a.Level), levelRank(b.Level)),
			cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)),
			cmp.Compare(a.about, b.about),
		)
	})
	return append([]Problem{}, folded(p.found)...)
}

func levelRank(l ProblemLevel) int { return slices.Index([]ProblemLevel{Failing, Warning}, l) }

// finding is a problem before those of a kind are made one.
type finding struct {
	Problem
	about string // the node or the sequencer, for people
	group string // those of one kind that differ in this differ in more than whom they are about
}

// problems collects the problems of a status.
type problems struct {
	status Status
	names  map[string]string // of members, by ID
	found  []finding
}

// add adds a problem of the whole cluster.
func (p *problems) add(one Problem) { p.addAbout("", "", one) }

// addOf adds a problem of a member.
func (p *problems) addOf(m StatusMember, one Problem) {
	one.Members = []string{m.ID}
	p.addAbout(p.names[m.ID], "", one)
}

func (p *problems) addAbout(about, group string, one Problem) {
	p.found = append(p.found, finding{one, about, group})
}

// fresh are the members about which everything is confirmed.
func (p *problems) fresh(yield func(StatusMember) bool) {
	for _, m := range p.status.Members {
		if m.Fresh && m.Vitals != nil && !yield(m) {
			return
		}
	}
}

// copies finds members whose processes were copied or set back. They have started over, and IDs that were given before
// that may exist twice.
func (p *problems) copies() {
	for m := range p.fresh {
		at := m.Vitals.CopiedAt
		if ago := p.status.At.Sub(at); !at.IsZero() && ago < toldFor {
			p.addOf(m, Problem{
				Level: Warning, Kind: CopiedProblem, Effect: "IDs of " + p.names[m.ID] + " may exist twice", Since: &at,
				Cause: "its process was copied or set back, as by a snapshot of its machine; it found that out " +
					Rough(ago) + " ago, and started over",
			})
		}
	}
}

// readiness finds members that can't issue IDs, by code. Those that wait for a node ID are told with the sequencer, and
// those that lack the store with that.
func (p *problems) readiness() {
	by := map[string][]StatusMember{}
	for m := range p.fresh {
		v, code := m.Vitals, codes.Code(m.Vitals.Code)
		if !v.Ready && v.For >= settling && code != codes.Waiting && code != codes.Clock &&
			(code != codes.NotReady || p.status.Store.Reached) {
			by[m.Vitals.Code] = append(by[m.Vitals.Code], m)
		}
	}
	for _, code := range slices.Sorted(maps.Keys(by)) {
		one, all := Problem{Level: Failing, Kind: NotReadyProblem}, by[code]
		switch codes.Code(code) {
		case codes.Detached:
			one.Level, one.Do = Warning, "Attach it: firn sequencer attach." // somebody wanted that
		case codes.Lifetime:
			one.Do = remedy(LayoutProblem)
		}
		for _, m := range all {
			if at := p.since(m); at != nil && (one.Since == nil || at.Before(*one.Since)) {
				one.Since = at
			}
		}
		one.Effect, one.Members = p.verb(ids(all), "gives", "give")+" no IDs", ids(all)
		if one.Cause = all[0].Vitals.Why; codes.Code(code) == codes.Internal || codes.Code(code) == codes.Unavailable {
			one.Cause, one.Detail = "an error that firn does not expect; the log has it", all[0].Vitals.Why
		}
		p.addAbout(one.Effect, code, one)
	}
}

// calls finds sequencers of which callers of some members get no IDs. What is told of the default sequencer already is
// not told again.
func (p *problems) calls() {
	for m := range p.fresh {
		for _, name := range m.Vitals.Failing {
			if name == peer.DefaultSequencer && !m.Vitals.Ready {
				continue
			}
			cause := "it has no node ID of " + name
			if m.Vitals.Forwards {
				cause += ", and no other node gives it IDs"
			} else {
				cause += ", and asks no other node (--no-forward)"
			}
			p.addAbout(p.names[m.ID], name+cause, Problem{
				Level: Failing, Kind: CallsProblem, Members: []string{m.ID}, Sequencers: []string{name},
				Effect: "Calls for IDs of " + name + " fail at " + p.names[m.ID], Cause: cause,
			})
		}
	}
}

// pulses finds members whose pulses are gone or overdue.
func (p *problems) pulses() {
	for _, m := range p.status.Members {
		switch {
		case m.Alive == nil || m.Fresh:
		case !*m.Alive:
			p.addOf(m, Problem{
				Level: Warning, Kind: GoneProblem, Effect: p.names[m.ID] + " is gone", Since: m.AsOf,
				Cause: "its pulse has ended, and it is still in the cluster",
			})
		default:
			text := "it has not renewed its pulse"
			if m.AsOf == nil {
				text += ", or its clock is behind"
			}
			if left := p.left(m); left > 0 {
				text += "; its reserved time ends in " + Rough(left)
			}
			p.addOf(m, Problem{
				Level: Warning, Kind: LateProblem, Effect: p.names[m.ID] + " is late",
				Since: m.AsOf, Cause: text,
			})
		}
	}
}

// lostFor is for how long it is a problem that a node is lost.
const lostFor = time.Hour

// lost finds nodes that went without leaving, and are no members any more.
func (p *problems) lost() {
	for _, n := range p.status.Nodes {
		if n.State != NodeLost || len(n.Members) == 0 {
			continue
		}
		id := n.Members[len(n.Members)-1]
		if p.status.At.Sub(n.Seen) >= lostFor || p.knows(id) {
			continue
		}
		cause := "it went without leaving"
		if n.Host != "" && n.Host != n.Name {
			cause += ", on the host " + n.Host
		}
		if n.Reserved != nil {
			cause += "; its last horizon is " + TimeOfDay(*n.Reserved, p.status.At)
		}
		p.addAbout(n.Name, "", Problem{
			Level: Warning, Kind: LostProblem, Effect: n.Name + " is lost", Since: &n.Seen, Cause: cause,
			Do: fmt.Sprintf("Start it again, or run firn cluster forget %s.", n.Name), Members: []string{id},
		})
	}
}

// knows reports whether an ID is that of a member or a joiner.
func (p *problems) knows(id string) bool {
	return slices.ContainsFunc(p.status.Members, func(m StatusMember) bool { return m.ID == id }) ||
		slices.ContainsFunc(p.status.Joins, func(j StatusJoin) bool { return j.Joiner == id })
}

// sequencers finds layouts whose time ends, and scarce node IDs.
func (p *problems) sequencers() {
	for _, q := range p.status.Sequencers {
		if q.Definition.Kind == cluster.Counter {
			continue
		}
		add := func(group string, one Problem) {
			one.Sequencers = []string{q.Name}
			p.addAbout(q.Name, group, one)
		}
		until := q.Until.UTC().Format(time.DateOnly)
		switch left := q.Until.Sub(p.status.At); {
		case left <= 0:
			add("", Problem{
				Level: Failing, Kind: LayoutProblem, Effect: "Nobody gets IDs of " + q.Name, Since: &q.Until,
				Cause: "the time of its layout ended on " + until,
			})
		case left < sequencer.MinLifetimeLeft:
			add("", Problem{
				Level: Warning, Kind: LayoutProblem, Effect: q.Name + " has IDs for " + Rough(left) + " more",
				Cause: "the time of its layout ends on " + until,
			})
		}
		if full := p.full(q); len(full) > 0 {
			add("", Problem{
				Level: Warning, Kind: RateProblem, Members: full,
				Effect: "Callers wait for IDs of " + q.Name,
				Cause: fmt.Sprintf("%s %.0f a second, about as many as the layout allows a node",
					p.verb(full, "makes", "make"), q.Rate),
				Do: remedy(RateProblem) + faster(q.Definition),
			})
		}
		total, free := q.NodeIDs()
		switch {
		case len(q.Lacking) > 0:
			which := fmt.Sprintf("none of its %d node IDs is free", total)
			if free > 0 {
				which = fmt.Sprintf("none of its %d node IDs that is accepted is free", total)
			}
			add("lacking", Problem{
				Level: Warning, Kind: NodeIDsProblem, Members: q.Lacking,
				Effect: p.without(q), Cause: which,
			})
		case total >= 10 && free*10 < total:
			effect := fmt.Sprintf("Only %d more nodes can give IDs of %s", free, q.Name)
			if free == 0 {
				effect = "No more nodes can give IDs of " + q.Name
			}
			add("few", Problem{
				Level: Warning, Kind: NodeIDsProblem, Effect: effect,
				Cause: fmt.Sprintf("%d of its %d node IDs are taken", len(q.Nodes), total),
			})
		}
	}
}

// nearly is the part of a layout's rate from which on callers wait.
const nearly = 0.95

// full returns the members that make about as many IDs of a sequencer as its layout allows.
func (p *problems) full(q StatusSequencer) (members []string) {
	for m := range p.fresh {
		if q.Rate > 0 && m.Vitals.Rates[q.Name] >= nearly*q.Rate {
			members = append(members, m.ID)
		}
	}
	return members
}

// faster says how to create a sequencer like this one whose nodes make twice as many IDs, if there can be one.
func faster(d cluster.Definition) string {
	twice := 2 * d.IDLayout().Rate()
	d, err := d.ForRate(twice)
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" Or create a sequencer for at most %d nodes, which make twice as many each (--rate %.0f), and "+
		"move the callers to it.", d.Capacity(), twice)
}

// without says what members without a node ID of a sequencer do.
func (p *problems) without(q StatusSequencer) string {
	asking := 0
	for m := range p.fresh {
		if slices.Contains(q.Lacking, m.ID) && m.Vitals.Forwards {
			asking++
		}
	}
	if asking < len(q.Lacking) || len(q.Nodes) == 0 {
		return p.verb(q.Lacking, "gives", "give") + " no IDs of " + q.Name
	}
	return p.verb(q.Lacking, "asks", "ask") + " other nodes for IDs of " + q.Name
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
	p.add(Problem{
		Level: Warning, Kind: VersionProblem, Effect: "An upgrade is not finished",
		Cause: strings.Join(texts, "; "),
	})
}

// since is since when a member is as it is; nil: unknown.
func (p *problems) since(m StatusMember) *time.Time {
	if m.Vitals.For == 0 || m.AsOf == nil {
		return nil
	}
	at := m.AsOf.Add(-m.Vitals.For)
	return &at
}

// verb is the names of members, with their verb.
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

// Names returns the names of members for people, by ID.
func Names(s Status) map[string]string {
	all := map[string]string{}
	for _, m := range s.Members {
		switch {
		case m.Owner != "":
			all[m.ID] = m.Owner
		case m.ID == s.Member:
			all[m.ID] = "This node"
		default:
			all[m.ID] = "member " + m.ID
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
