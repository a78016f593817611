package calls

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
)

// History is the last hour of a cluster, as JSON. Each list has one value for each minute; null: not known.
type History struct {
	At      time.Time      `json:"at"`      // when it was read, by the answering server's clock
	Minutes []time.Time    `json:"minutes"` // from the first to the last that is known, without gaps
	Cluster HistoryCluster `json:"cluster"`
	Nodes   []HistoryNode  `json:"nodes"` // by owner
}

// HistoryCluster is the whole cluster in a History.
type HistoryCluster struct {
	Members []*int     `json:"members"` // with a pulse
	Ready   []*int     `json:"ready"`   // of them
	Rate    []*float64 `json:"rate"`    // IDs per second
}

// HistoryNode is a process in a History.
type HistoryNode struct {
	Owner  string           `json:"owner"` // its host and process
	Rate   []*float64       `json:"rate"`  // IDs per second
	Ready  []*bool          `json:"ready"`
	Offset []*time.Duration `json:"offset_ns"` // by how much its wall clock was ahead of the others' median, at least
}

// maxMinutes is how many minutes a History has at most.
const maxMinutes = 60

// historyWithin is how long a call waits for the last hour.
const historyWithin = 3 * time.Second

// History returns the last hour of the cluster, or, while the store does not answer, what was last read of it.
func (s *Service) History(ctx context.Context, who *auth.Caller) (History, error) {
	ctx, end, err := s.begin(ctx, who, auth.Look, "", 1)
	if err != nil {
		return History{}, err
	}
	defer end()
	ctx, cancel := context.WithTimeout(ctx, historyWithin)
	defer cancel()
	minutes, err := s.member.History(ctx)
	if last := s.history.Load(); err != nil && last != nil {
		return *last, nil
	}
	if err != nil {
		return History{}, err
	}
	h := historyOf(minutes, time.Now().UTC())
	s.history.Store(&h)
	return h, nil
}

// historyOf arranges minutes, ordered by time.
func historyOf(minutes []peer.Minute, now time.Time) History {
	h := History{
		At: now, Minutes: []time.Time{}, Nodes: []HistoryNode{},
		Cluster: HistoryCluster{Members: []*int{}, Ready: []*int{}, Rate: []*float64{}},
	}
	if len(minutes) == 0 {
		return h
	}
	last := minutes[len(minutes)-1].At
	first := minutes[0].At
	if oldest := last.Add(-(maxMinutes - 1) * time.Minute); first.Before(oldest) {
		first = oldest
	}
	for at := first; !at.After(last); at = at.Add(time.Minute) {
		h.Minutes = append(h.Minutes, at.UTC())
	}
	n := len(h.Minutes)
	h.Cluster = HistoryCluster{make([]*int, n), make([]*int, n), make([]*float64, n)}
	nodes := map[string]HistoryNode{}
	for _, m := range minutes {
		i := int(m.At.Sub(first) / time.Minute)
		if m.At.Before(first) {
			continue
		}
		h.Cluster.Members[i], h.Cluster.Ready[i], h.Cluster.Rate[i] = &m.Members, &m.Ready, &m.Rate
		for _, one := range m.Nodes {
			node, ok := nodes[one.Owner]
			if !ok {
				node = HistoryNode{one.Owner, make([]*float64, n), make([]*bool, n), make([]*time.Duration, n)}
				nodes[one.Owner] = node
			}
			node.Rate[i], node.Ready[i], node.Offset[i] = &one.Rate, &one.Ready, &one.Offset
		}
	}
	for _, node := range nodes {
		h.Nodes = append(h.Nodes, node)
	}
	slices.SortFunc(h.Nodes, func(a, b HistoryNode) int { return cmp.Compare(a.Owner, b.Owner) })
	return h
}
