package doctor

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn/internal/core/clocks"
	"github.com/firn-id/firn/internal/core/peer"
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

// Stored is what the store tells of the cluster.
type Stored struct {
	Status   *calls.Status  // nil: its log can't be read
	Clock    clocks.Verdict // over this machine's clock, by what other members wrote in their pulses
	Furthest time.Duration  // from now, by this machine's clock, to the latest horizon of the default sequencer
	Window   time.Duration
}

func (d Stored) check() (all []Finding) {
	if d.Furthest > 3*d.Window+clocks.Skew {
		all = append(all, Warn.about("node IDs", "one was used until %v from now, by this machine's clock",
			d.Furthest.Round(time.Second)).
			do("nothing, if this clock is right: another was ahead, and nobody uses that node ID until then"))
	}
	const about = "clocks"
	switch v := d.Clock; v.Kind {
	case clocks.Ahead, clocks.Behind:
		all = append(all, Fail.about(about, "this machine's clock is %s", v).
			do("correct it: run chrony or systemd-timesyncd on that machine; the node there gives IDs again "+
				"within 5 s"))
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
	return all
}

// Node is a node that already runs on this machine.
type Node struct {
	URL    string
	Why    string        // why it is not ready; empty: ready
	Status *calls.Status // of its cluster; nil: unknown
}

func (n Node) check() Finding {
	if n.Why != "" {
		return Fail.about("node", "%s is not ready: %s", n.URL, n.Why).
			do("see its log; it becomes ready once the reason is gone")
	}
	return OK.about("node", "%s is ready", n.URL)
}

// cluster returns how many members live, how many node IDs are free, and the problems of the cluster, as far as is
// known. One about other members only is a warning, however bad it is for them.
func (s Seen) cluster() (all []Finding) {
	status := s.status()
	if len(status.Members) > 0 {
		alive := 0
		for _, m := range status.Members {
			if m.Alive == nil || *m.Alive {
				alive++
			}
		}
		all = append(all, OK.about("members", "%d alive", alive))
	}
	for _, q := range status.Sequencers {
		switch total, free := q.NodeIDs(); {
		case q.Name != peer.DefaultSequencer || total == 0: // or it is not there yet
		case free == 0:
			all = append(all, Fail.about("node IDs", "none of %d is free in the default sequencer", total).
				do("create a sequencer whose layout has more node bits, or run fewer nodes; with --wait nodes wait "+
					"in line"))
		default:
			all = append(all, OK.about("node IDs", "%d of %d are free in the default sequencer", free, total))
		}
	}
	for _, p := range status.Problems {
		level := Warn
		if p.Level == calls.Failing && (len(p.Members) == 0 || slices.Contains(p.Members, status.Member)) {
			level = Fail
		}
		all = append(all, level.about("cluster", "%s", p.What(status.At)).do(p.Do+" "+p.Link))
	}
	return all
}

// status is what the node here tells of the cluster or, if it tells nothing, what the store, the machines of the quorum
// and the configuration do.
func (s Seen) status() calls.Status {
	if s.Node != nil && s.Node.Status != nil {
		return *s.Node.Status
	}
	status := calls.Status{At: s.Now, Store: calls.StatusStore{Reached: true}}
	if s.Stored != nil && s.Stored.Status != nil {
		status = *s.Stored.Status
	}
	if s.Quorum != nil && s.Quorum.begun() {
		q := s.Quorum.Status
		q.Waiting = "" // it is about this process, which runs no machine
		status.Quorum = &q
	}
	if s.Data != nil && (s.Quorum == nil || !s.Quorum.tellsOfItsDisk()) {
		status.Disk = s.Data.Room
	}
	if !slices.ContainsFunc(status.Sequencers, func(q calls.StatusSequencer) bool {
		return q.Name == peer.DefaultSequencer
	}) {
		status.Sequencers = append(slices.Clip(status.Sequencers), s.Layout.sequencer())
	}
	status.Problems = calls.Problems(status)
	return status
}
