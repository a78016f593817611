package calls

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Problem is something that is wrong in a cluster, or soon will be, as JSON. People read it in this order: Effect,
// Since, Cause, Do, Link; see Sentence.
type Problem struct {
	Level      ProblemLevel `json:"level"`
	Kind       ProblemKind  `json:"kind"`
	Effect     string       `json:"effect"`               // what people notice, such as "No node gives IDs"
	Since      *time.Time   `json:"since,omitempty"`      // by the answering server's clock; nil: unknown
	Cause      string       `json:"cause"`                // a clause, with names and numbers
	Do         string       `json:"do"`                   // sentences
	Link       string       `json:"link"`                 // to what the documentation says of the kind
	Detail     string       `json:"detail,omitempty"`     // an error as the program met it; empty: none
	Members    []string     `json:"members,omitempty"`    // the IDs of those that it is about
	Sequencers []string     `json:"sequencers,omitempty"` // that it is about; empty: none, or all
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

// The kinds.
const (
	StoreProblem    ProblemKind = "store"     // out of reach
	CopiedProblem   ProblemKind = "copied"    // a process was copied or set back, so that IDs may exist twice
	QuorumProblem   ProblemKind = "quorum"    // machines are lost
	DiskProblem     ProblemKind = "disk"      // of a machine of the quorum, or of a quorum of one: nearly full, or slow
	ClockProblem    ProblemKind = "clock"     // a majority disagrees with a node's clock
	NotReadyProblem ProblemKind = "not_ready" // nodes can't issue IDs
	CallsProblem    ProblemKind = "calls"     // callers of some nodes get no IDs of a sequencer
	CounterProblem  ProblemKind = "counter"   // a counter stopped after the store has lost data, or its numbers end
	HorizonProblem  ProblemKind = "horizon"   // reserved time ends, and more is not reserved
	LayoutProblem   ProblemKind = "layout"    // the time of a layout ends
	GoneProblem     ProblemKind = "gone"      // a member's pulse is gone
	LostProblem     ProblemKind = "lost"      // a node went without leaving
	LateProblem     ProblemKind = "late"      // a member's pulse is overdue
	TieProblem      ProblemKind = "tie"       // clocks disagree, and no majority agrees
	OrderProblem    ProblemKind = "order"     // existing IDs are ahead of a clock
	NodeIDsProblem  ProblemKind = "node_ids"  // few are free, members wait for one, or one is not reserved yet
	RateProblem     ProblemKind = "rate"      // a node makes all IDs that its layout allows
	VersionProblem  ProblemKind = "version"   // versions differ
)

// remedies say what to do about each kind where nothing better is known, worst kind first.
var remedies = []struct {
	kind ProblemKind
	do   string
}{
	{StoreProblem, "Start the store, or mend the network between it and this node."},
	{CopiedProblem, "Look for IDs of its last minutes that exist twice, and never run two copies of one machine."},
	{QuorumProblem, "Run firn quorum status: it says what each machine waits for."},
	{DiskProblem, "Make room on that disk, or give it more."},
	{ClockProblem, "Correct that clock, as with chronyc makestep; it gives IDs 5 s later."},
	{NotReadyProblem, "Run firn doctor on that machine."},
	{
		CallsProblem,
		"Have callers or balancers ask nodes that give IDs of it: /readyz?sequencer= with its name says which do.",
	},
	{CounterProblem, "Create another counter with a greater maximum, and move the callers to it."},
	{HorizonProblem, "Run firn doctor on that machine."},
	{LayoutProblem, "Create a sequencer with a later epoch or more time bits, and move the callers to it."},
	{GoneProblem, "If nobody stopped it, start it again; the other members remove it from the cluster."},
	{LostProblem, "Start it again, or run firn cluster forget with its name."},
	{LateProblem, "Run firn doctor on that machine, to see whether the node runs and reaches the store."},
	{TieProblem, "Correct the clocks that are wrong."},
	{OrderProblem, "Correct a clock that is behind. If none is, wait."},
	{NodeIDsProblem, "Detach nodes that need none, or create a sequencer with more nodes."},
	{RateProblem, "Spread the calls over more nodes."},
	{VersionProblem, "Go on with the upgrade, one node after the other."},
}

// ProblemKinds returns all kinds, worst first.
func ProblemKinds() (all []ProblemKind) {
	for _, r := range remedies {
		all = append(all, r.kind)
	}
	return all
}

// runbook is the page that has a heading for each kind of problem.
const runbook = "https://github.com/firn-id/firn/blob/main/docs/problems.md#"

// complete adds what follows from the kind.
func (p Problem) complete() Problem {
	p.Link, p.Do = runbook+string(p.Kind), cmp.Or(p.Do, remedy(p.Kind))
	return p
}

func remedy(kind ProblemKind) string {
	for _, r := range remedies {
		if r.kind == kind {
			return r.do
		}
	}
	return ""
}

// What returns the effect, since when, and the cause, as a clause.
func (p Problem) What(now time.Time) string {
	text := p.Effect
	if p.Since != nil {
		text += " since " + TimeOfDay(*p.Since, now)
	}
	return text + ": " + p.Cause
}

// Sentence returns the problem for people, with the link and the detail last.
func (p Problem) Sentence(now time.Time) string {
	text := p.What(now) + ". " + p.Do + " " + p.Link
	if p.Detail != "" {
		text += " (" + p.Detail + ")"
	}
	return text
}

// TimeOfDay formats a time of a time zone that all share, with the day if it is not now's.
func TimeOfDay(at, now time.Time) string {
	if at = at.UTC(); at.Format(time.DateOnly) == now.UTC().Format(time.DateOnly) {
		return at.Format("15:04:05Z")
	}
	return at.Format(time.RFC3339)
}

// notNow are the kinds that are about what comes, or not about the default sequencer.
var notNow = []ProblemKind{HorizonProblem, DiskProblem, CounterProblem}

// Unready says why the node is not ready, in the words of Problems. It asks the machines of the quorum alone, for a
// quarter of a second at most.
func (s *Service) Unready(why error) string {
	if errors.Is(why, ErrDraining) {
		return why.Error()
	}
	status := s.ownStatus()
	for _, p := range Problems(status) {
		if p.Level == Failing && !slices.Contains(notNow, p.Kind) {
			p.Detail = "" // callers without a right see this
			return p.Sentence(status.At)
		}
	}
	return notReady(why).Sentence(status.At)
}

// notReady is the problem that this node gives no IDs, where nothing better is known.
func notReady(why error) Problem {
	return Problem{Level: Failing, Kind: NotReadyProblem, Effect: "This node gives no IDs", Cause: Why(why)}.complete()
}

// AndThisNode returns problems with, before them, that this node gives no IDs, for those who look at the node itself:
// at once, if none of the others says why callers are refused.
func (s *Service) AndThisNode(all []Problem) []Problem {
	why := s.Ready()
	if why == nil || slices.ContainsFunc(all, func(p Problem) bool { return p.Level == Failing }) {
		return all
	}
	return slices.Insert(slices.Clone(all), 0, notReady(why))
}

// folded makes one of all problems of a kind, a level and a cause that differ in the node or the sequencer only.
func folded(found []finding) (all []Problem) {
	for len(found) > 0 {
		first := found[0]
		same := func(f finding) bool { return f.Level == first.Level && f.Kind == first.Kind && f.group == first.group }
		p, others := first.Problem, []string{}
		rest := found[:0:0]
		for _, f := range found[1:] {
			if !same(f) {
				rest = append(rest, f)
				continue
			}
			others = append(others, f.about)
			p.Members, p.Sequencers = union(p.Members, f.Members), union(p.Sequencers, f.Sequencers)
			if f.Since != nil && (p.Since == nil || f.Since.Before(*p.Since)) {
				p.Since = f.Since
			}
		}
		if len(others) > 0 {
			p.Cause += fmt.Sprintf("; the same holds for %d more: %s", len(others), list(others))
		}
		all, found = append(all, p.complete()), rest
	}
	return all
}

// union returns all of a, and then those of b that are not in a.
func union(a, b []string) []string {
	for _, one := range b {
		if !slices.Contains(a, one) {
			a = append(a, one)
		}
	}
	return a
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
