package calls

import (
	"cmp"
	"fmt"
	"iter"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/firn-id/firn/store/quorum"
)

// own is the answering member, if it is one, and how its sentences begin.
func (p *problems) own() (m StatusMember, name string) {
	for m := range p.fresh {
		if m.ID == p.status.Member {
			return m, cmp.Or(p.names[m.ID], "This node")
		}
	}
	return StatusMember{}, "This node"
}

// cutOff says what it means for a node that it does not reach the store, and since when.
func (p *problems) cutOff() (effect string, since *time.Time, more string) {
	m, name := p.own()
	since = p.status.Store.Answered
	if m.Vitals == nil || !m.Vitals.Ready {
		switch {
		case m.Vitals == nil:
		case m.Vitals.Left < 0: // since its horizon
			since = new(m.AsOf.Add(m.Vitals.Left))
		case p.since(m) != nil:
			since = p.since(m)
		}
		return name + " gives no IDs", since, ""
	}
	if left := p.left(m); left > 0 {
		more = "; the IDs of " + strings.Replace(name, "This node", "this node", 1) + " end in " + Rough(left)
	}
	return name + " can reserve no more time", since, more
}

func (p *problems) store() {
	s := p.status.Store
	if s.Reached {
		return
	}
	effect, since, more := p.cutOff()
	cause := "the store does not answer it"
	if s.Answered != nil {
		cause = "the store has not answered it for " + Rough(p.status.At.Sub(*s.Answered))
	}
	p.add(Problem{Level: Failing, Kind: StoreProblem, Effect: effect, Since: since, Cause: cause + more, Detail: s.Why})
}

// missing are the machines of the quorum that do not answer.
type missing struct {
	down, silent []string // nobody listens there; nothing is known of it
	voters       int
}

// votersOf are the voters; one that has never told its role is one if the record has it.
func votersOf(q quorum.Status) iter.Seq[quorum.Machine] {
	return func(yield func(quorum.Machine) bool) {
		for _, m := range q.Machines {
			if (m.Role == quorum.Voter || m.Role == "" && slices.Contains(q.Record, m.Address)) && !yield(m) {
				return
			}
		}
	}
}

func missingOf(q quorum.Status) (lost missing) {
	names := hostsOf(q.Machines)
	for m := range votersOf(q) {
		lost.voters++
		switch m.Err {
		case "":
		case syscall.ECONNREFUSED.Error():
			lost.down = append(lost.down, names[m.Address])
		default:
			lost.silent = append(lost.silent, names[m.Address])
		}
	}
	return lost
}

func (l missing) n() int { return len(l.down) + len(l.silent) }

// needed is how many more machines it takes for a majority; negative: so many it can lose.
func (l missing) needed() int { return l.voters/2 + 1 - (l.voters - l.n()) }

func (l missing) String() string {
	verb := "are down"
	switch one := l.n() == 1; {
	case len(l.silent) > 0 && one:
		verb = "does not answer"
	case len(l.silent) > 0:
		verb = "do not answer"
	case one:
		verb = "is down"
	}
	return fmt.Sprintf("%d of %d machines %s (%s)", l.n(), l.voters, verb,
		strings.Join(slices.Concat(l.down, l.silent), ", "))
}

// quorum finds machines that are lost. It reports whether a majority is, so that the store does not answer.
func (p *problems) quorum() (lost bool) {
	q := p.status.Quorum
	if q == nil {
		return false
	}
	l := missingOf(*q)
	if !q.Majority {
		p.noMajority(l)
		return true
	}
	if l.n() > 0 {
		effect, do := "The quorum can lose no other machine", "Start it, or replace it: firn quorum replace."
		if l.needed() < 0 {
			effect = "The quorum can lose only " + inWords(-l.needed()) + " more"
		}
		if l.n() > 1 {
			do = "Start them, or replace them: firn quorum replace."
		}
		p.add(Problem{Level: Warning, Kind: QuorumProblem, Effect: effect, Cause: l.String(), Do: do})
	}
	return false
}

// answers reports whether a majority of the voters answers, or no voter is known, so that it is not for those that are
// missing that the quorum does not work.
func (l missing) answers() bool { return l.voters == 0 || l.needed() <= 0 }

// noMajority says why no majority works.
func (l missing) noMajority() string {
	if l.answers() {
		return "no majority of the machines of the quorum works yet"
	}
	return l.String()
}

// NoMajority says why no majority of the machines works; empty: one does. It speaks of machines that are missing only
// if a majority does not work for them.
func NoMajority(q quorum.Status) string {
	if q.Majority {
		return ""
	}
	return missingOf(q).noMajority()
}

func (p *problems) noMajority(l missing) {
	effect, since, more := p.cutOff()
	one := Problem{Level: Failing, Kind: QuorumProblem, Since: since, Cause: l.noMajority(), Detail: p.status.Store.Why}
	switch m, _ := p.own(); {
	case l.answers():
		if doing := p.status.Quorum.Waiting; doing != "" {
			one.Cause += "; this machine: " + doing
		}
		if mostSilent(p.status.Quorum.Machines) { // of whom nobody knows whether they are voters
			one.Do = "Start the machines that do not answer."
		}
	case len(l.silent) > 0: // the network may be to blame, and other nodes be well
		one.Do = "Start " + inWords(l.needed()) + " of them, or mend the network to them."
	default:
		one.Do = "Start " + inWords(l.needed()) + " of them."
		if effect = "No node gives IDs"; m.Vitals != nil && m.Vitals.Ready {
			effect = "No node can reserve more time"
		} else if !p.over() {
			effect = "Nodes stop giving IDs"
		}
	}
	one.Effect, one.Cause = effect, one.Cause+more
	p.add(one)
}

// mostSilent reports whether no majority of the machines answers.
func mostSilent(machines []quorum.Machine) bool {
	silent := 0
	for _, m := range machines {
		if m.Err != "" {
			silent++
		}
	}
	return 2*silent >= len(machines) && silent > 0
}

// over reports whether what any member has reserved is over, since the store has answered nobody for a window.
func (p *problems) over() bool {
	window := time.Duration(0)
	for _, m := range p.status.Members {
		window = max(window, 3*m.Every)
		if m.Vitals != nil {
			window = max(window, m.Vitals.Left) // a long one has more pulses in it
		}
	}
	at := p.status.Store.Answered
	return at != nil && window > 0 && p.status.At.Sub(*at) > window
}

// inWords is a small number in words.
func inWords(n int) string {
	if words := []string{"none", "one", "two", "three", "four"}; n >= 0 && n < len(words) {
		return words[n]
	}
	return strconv.Itoa(n)
}

// hostsOf names machines by their nodes, or else by their hosts, or by their addresses where several have the same.
func hostsOf(machines []quorum.Machine) map[string]string {
	on := map[string]int{}
	name := func(m quorum.Machine) string {
		host, _, _ := net.SplitHostPort(m.Address)
		return cmp.Or(m.Node, host)
	}
	for _, m := range machines {
		on[name(m)]++
	}
	all := map[string]string{}
	for _, m := range machines {
		all[m.Address] = m.Address
		if n := name(m); n != "" && on[n] == 1 {
			all[m.Address] = n
		}
	}
	return all
}
