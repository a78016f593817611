package doctor

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/firn-id/firn/internal/core/clocks"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/store"
)

// lastOf returns the last error of a chain: that of the store's server or of the network.
func lastOf(err error) string {
	const silent = "no answer in time"
	text := err.Error()
	inTime := context.DeadlineExceeded.Error()
	late := errors.Is(err, context.DeadlineExceeded) || strings.HasSuffix(text, inTime)
	if at := strings.LastIndex(text, "desc = "); at >= 0 && !late {
		return text[at+len("desc = "):]
	} else if at >= 0 {
		return silent
	}
	for _, prefix := range []string{
		"connect: ", "read: ", "write: ", "login: ", store.ErrRefused.Error() + ": ",
		store.ErrUnavailable.Error() + ": ",
	} {
		text = strings.TrimPrefix(text, prefix)
	}
	if late { // what was tried before the time was over tells more
		text = strings.TrimSuffix(strings.TrimSuffix(text, inTime), ": ")
	}
	return cmp.Or(text, silent)
}

// Nodes is what the store knows about the default sequencer's node IDs.
type Nodes struct {
	NodeIDs  int64
	Live     int           // node IDs that have an owner
	Members  int           // members with a pulse
	Furthest time.Duration // the latest horizon, from now by this clock
	Window   time.Duration
}

func (n Nodes) check() (all []Finding) {
	all = append(all, OK.about("members", "%d alive", n.Members))
	const more = "create a sequencer whose layout has more node bits, or run fewer nodes; with --wait nodes wait " +
		"in line"
	free := n.NodeIDs - int64(n.Live)
	found := OK.about("node IDs", "%d of %d are free in the default sequencer", free, n.NodeIDs)
	switch {
	case free <= 0:
		found.Level, found.Do = Fail, more
	case free*10 < n.NodeIDs:
		found.Level, found.Do = Warn, more
	}
	all = append(all, found)
	if n.Furthest > 3*n.Window+clocks.Skew {
		all = append(all, Warn.about("node IDs", "one was used until %v from now, by this machine's clock",
			n.Furthest.Round(time.Second)).
			do("nothing, if this clock is right: another was ahead, and nobody uses that node ID until then"))
	}
	return all
}

// Clocks is what members of the cluster say about clocks in their pulses.
type Clocks struct {
	Here  clocks.Verdict // about this machine's clock
	Wrong []string       // what other members say whose clocks a majority contradicts
}

func (c Clocks) check() (all []Finding) {
	const about = "clocks"
	const setRight = "correct it: run chrony or systemd-timesyncd on that machine; the node there gives IDs again " +
		"within 5 s"
	switch v := c.Here; v.Kind {
	case clocks.Ahead, clocks.Behind:
		all = append(all, Fail.about(about, "this machine's clock is %s", v).do(setRight))
	case clocks.Tied:
		all = append(all, Warn.about(about,
			"no majority of the clocks agrees: %d of %d others agree with this machine's", v.With, v.Others).
			do("correct the wrong clocks; until then all nodes serve, and their IDs carry different times"))
	case clocks.Unclear:
		all = append(all, Warn.about(about, "the other nodes have not reported their clocks lately").
			do("check that they reach the store, and look again"))
	case clocks.Agreed:
		all = append(all, OK.about(about, "this machine's clock agrees with %d of %d others", v.With, v.Others))
	}
	for _, wrong := range c.Wrong {
		all = append(all, Warn.about(about, "%s", wrong).do(setRight))
	}
	return all
}

// Node is a node that already runs on this machine.
type Node struct {
	URL    string
	Member string // its member ID; empty: unknown
	Why    string // why it is not ready; empty: ready
	Over   bool   // it is not ready, because the layout of the default sequencer has no IDs for this time
	Dead   int    // members of the cluster without a pulse
	Alive  int    // members with a pulse; negative: unknown

	Problems []calls.Problem // that it sees in its cluster
	At       time.Time       // when, by its clock
}

func (n Node) check() (all []Finding) {
	switch {
	case n.Over:
		all = append(all, Fail.about("node", "%s is not ready: %s", n.URL, n.Why).
			do("if this machine's clock is right, take IDs of another sequencer: firn sequencer create"))
	case n.Why != "":
		all = append(all, Fail.about("node", "%s is not ready: %s", n.URL, n.Why).
			do("see its log; it becomes ready once the reason is gone"))
	default:
		all = append(all, OK.about("node", "%s is ready", n.URL))
	}
	switch {
	case n.Alive < 0: // unknown
	case n.Dead > 0:
		all = append(all, Warn.about("members", "%d alive, %d whose pulse is gone", n.Alive, n.Dead).
			do("the others remove them within --ttl; if not, see firn cluster status"))
	default:
		all = append(all, OK.about("members", "%d alive", n.Alive))
	}
	for _, p := range n.Problems {
		if p.Kind != calls.GoneProblem { // told above
			all = append(all, Warn.about("cluster", "%s", p.What(n.At)).do(p.Do+" "+p.Link))
		}
	}
	return all
}
