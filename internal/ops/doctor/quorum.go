package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn/internal/core/clocks"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/store/quorum"
)

// Quorum is the quorum that keeps the store.
type Quorum struct {
	quorum.Inspection
	List []string // --quorum
}

// seeQuorum asks the machines of the quorum.
func (c Config) seeQuorum(ctx context.Context) *Quorum {
	d := &Quorum{List: c.Quorum.Machines}
	q, err := quorum.New(c.Quorum)
	if err != nil { // unlikely: the caller has made one
		d.SelfErr = err
		return d
	}
	defer q.Close()
	d.Inspection = q.Inspect(ctx)
	return d
}

// seePort tries to listen where this machine does for the others.
func (q *Quorum) seePort() Port {
	p := seePort("quorum-listen", q.Listen)
	p.Firn = slices.ContainsFunc(q.Status.Machines, func(m quorum.Machine) bool {
		return m.Address == q.Self && m.Err == ""
	})
	return p
}

// tellsOfItsDisk reports whether the machine here says how much room its disk has.
func (q *Quorum) tellsOfItsDisk() bool {
	return slices.ContainsFunc(q.Status.Machines, func(m quorum.Machine) bool {
		return m.Address == q.Self && m.Disk != nil
	})
}

const farClock = time.Second

// begun reports whether the quorum has begun to keep data, so that it is a problem where no majority works.
func (q Quorum) begun() bool { return q.Status.Cluster != "" || q.Data.State == "started" }

func (q Quorum) check() (all []Finding) {
	const about = "quorum"
	add := func(f Finding) { all = append(all, f) }
	if n := len(q.List); n == 1 {
		add(OK.about(about, "1 machine: the cluster stops when it does"))
	} else {
		add(OK.about(about, "%d machines: together they survive the loss of %d", n, (n-1)/2))
	}
	switch {
	case q.SelfErr != nil:
		add(Fail.about("quorum-addr", "%v", q.SelfErr).do("name this machine with --quorum-addr, or give none"))
	case q.Self == "":
		add(OK.about("quorum-addr", "this machine is not in --quorum, and keeps no data"))
	default:
		add(OK.about("quorum-addr", "this machine is %s", q.Self))
	}
	for _, m := range q.Status.Machines {
		if m.Address != q.Self || m.Err == "" { // about its own port there is a finding
			add(q.checkMachine(m))
		}
	}
	if slices.ContainsFunc(q.Status.Record, func(m string) bool { return !slices.Contains(q.List, m) }) {
		record := strings.Join(q.Status.Record, ",")
		add(Warn.about(about, "the cluster's data is kept by %s, and --quorum is %s", record,
			strings.Join(q.List, ",")).do("give every node --quorum " + record))
	}
	all = append(all, q.checkClocks()...)
	if f, ok := q.checkData(); ok {
		add(f)
	}
	return all
}

func (q Quorum) checkMachine(m quorum.Machine) Finding {
	switch {
	case slices.Contains(q.Strangers, m.Address):
		what, do, _ := strings.Cut(strings.TrimPrefix(m.Err, m.Address+" "), "; ")
		return Fail.about(m.Address, "%s", what).do(cmp.Or(do, "give all machines the same key and the same --quorum"))
	case m.Err != "":
		return Warn.about(m.Address, "no answer: %s", m.Err).
			do("start firn serve there; if it runs, look at its name, its port and the firewalls in between")
	}
	about := string(m.Role)
	if m.Leader {
		about += " and leader"
	}
	text := fmt.Sprintf("%s, %s, answers in %v", about, m.Version, m.RoundTrip.Round(10*time.Microsecond))
	if m.Doing != "" {
		return Warn.about(m.Address, "%s; waiting: %s", text, m.Doing).do("it continues once the reason is gone")
	}
	return OK.about(m.Address, "%s", text)
}

// checkClocks compares the clocks of the machines that answer, and of this one. More than half that agree are right:
// only the others are found to be wrong.
func (q Quorum) checkClocks() (all []Finding) {
	const about = "clocks"
	const here = "this machine"
	machines := []quorum.Machine{{Address: here}}
	for _, m := range q.Status.Machines {
		if m.Err == "" && m.Address != q.Self {
			machines = append(machines, m)
		}
	}
	if len(machines) == 1 {
		return nil
	}
	slices.SortFunc(machines, func(a, b quorum.Machine) int { return cmp.Compare(a.Clock, b.Clock) })
	first, last := machines[0], machines[len(machines)-1]
	apart := func(a, b quorum.Machine) (far, doubt time.Duration) {
		return (a.Clock - b.Clock).Abs(), (a.RoundTrip + b.RoundTrip) / 2
	}
	agree := func(a, b quorum.Machine) bool {
		far, doubt := apart(a, b)
		return far-doubt <= farClock
	}
	if far, doubt := apart(first, last); far-doubt <= farClock {
		return []Finding{OK.about(about, "the machines' clocks are %v apart, give or take %v",
			far.Round(time.Millisecond), doubt.Round(100*time.Microsecond))}
	}
	middle := machines[len(machines)/2] // it belongs to any majority
	right := 0
	for _, m := range machines {
		if agree(m, middle) {
			right++
		}
	}
	if 2*right <= len(machines) {
		far, _ := apart(last, first)
		return []Finding{Warn.about(about,
			"no majority of the machines' clocks agrees: that of %s is %v ahead of that of %s", last.Address,
			calls.Rough(far), first.Address).
			do("correct them: run chrony or systemd-timesyncd on all machines")}
	}
	for _, m := range machines {
		if agree(m, middle) {
			continue
		}
		far, doubt := apart(m, middle)
		level, way := Warn, "ahead of"
		if m.Address == here && far-doubt > clocks.Skew {
			level = Fail
		}
		if m.Clock < middle.Clock {
			way = "behind"
		}
		all = append(all, level.about(about, "the clock of %s is %v %s %d of %d others", m.Address, calls.Rough(far),
			way, right, len(machines)-1).
			do("correct it: run chrony or systemd-timesyncd on that machine"))
	}
	return all
}

// checkData says what the data directory is to the cluster.
func (q Quorum) checkData() (Finding, bool) {
	const about = "data directory"
	there := q.Status.Cluster
	switch d := q.Data; {
	case q.Self == "":
		return Finding{}, false
	case q.DataErr != nil:
		return failed(q.DataErr), true
	case d.Cluster != "" && there != "" && d.Cluster != there && d.State != "promised":
		return Fail.about(about, "it belongs to cluster %s, and the other machines to %s", d.Cluster, there).
			do("give this machine the --quorum of its cluster, or a directory of its own"), true
	case d.State == "lost":
		return Warn.about(about, "it belongs to cluster %s, and its log is gone", d.Cluster).
			do("nothing, if the others have a majority: this machine replaces itself; else see docs/recover.md"), true
	case d.State == "removed":
		return Warn.about(about, "its machine was removed from cluster %s", d.Cluster).
			do("firn quorum replace, on any node, lets it take the place of another"), true
	case d.State == "empty":
		return OK.about(about, "it is part of no cluster yet"), true
	case d.State == "alone":
		return OK.about(about, "it was a quorum of one; it is the first of the quorum"), true
	default:
		return OK.about(about, "it belongs to cluster %s", d.Cluster), true
	}
}

// failed is the finding of an error about the data directory, which says what to do after a semicolon.
func failed(err error) Finding {
	what, do, _ := strings.Cut(err.Error(), "; ")
	return Fail.about("data directory", "%s", what).do(do)
}
