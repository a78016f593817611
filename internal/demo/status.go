package demo

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/firn-id/firn/internal/console"
	"github.com/firn-id/firn/internal/node"
)

// States of a node of a demo.
const (
	Ready    = "ready"
	NotReady = "not ready"
	Paused   = "paused"
	Down     = "down"

	StoreRunning = "running"
	StoreStopped = "stopped"
)

// Status is how a demo is.
type Status struct {
	Seconds float64      `json:"seconds"` // since its start
	Store   string       `json:"store"`   // running or stopped
	Members int          `json:"members"` // of the cluster, for all that a node knows which runs
	Nodes   []NodeStatus `json:"nodes"`
	Load    Counts       `json:"load"`
}

type NodeStatus struct {
	Node      int     `json:"node"`
	State     string  `json:"state"`         // ready, not ready, paused or down
	Why       string  `json:"why,omitempty"` // it is not ready
	URL       string  `json:"url"`
	Admin     string  `json:"admin"`
	Member    string  `json:"member,omitempty"`
	NodeID    *int64  `json:"node_id,omitempty"`
	Clock     float64 `json:"clock_seconds"` // how far it is ahead of the right time
	IDs       int64   `json:"ids"`           // that it gave to anybody since the demo began
	PerSecond float64 `json:"ids_per_second"`
}

// status is how things are now, with the rates of the last second.
func (d *demo) status() Status {
	s := Status{Seconds: time.Since(d.began).Seconds(), Store: StoreRunning, Load: d.load.counts()}
	if d.store.isStopped() {
		s.Store = StoreStopped
	}
	var latest int64 // position that any of them has reached
	for _, n := range d.nodes {
		one := NodeStatus{
			Node: n.number, State: Down, URL: n.url, Admin: n.admin.String(),
			Clock: time.Duration(n.offset.Load()).Seconds(), IDs: n.ids(),
		}
		if l := n.running(); l != nil {
			one.State, one.Why = stateOf(l)
			if id, ok := l.nodeID(); ok && l.ready() == nil {
				one.NodeID = &id
			}
			one.Member = l.node.MemberID()
			if v := l.node.Value(); v.Position() > latest && !l.paused.Load() {
				latest, s.Members = v.Position(), len(v.Members())
			}
		}
		s.Nodes = append(s.Nodes, one)
	}
	d.rates.of(&s)
	return s
}

func stateOf(l *process) (state, why string) {
	if l.paused.Load() {
		return Paused, ""
	}
	if err := l.ready(); err != nil {
		return NotReady, node.Why(err)
	}
	return Ready, ""
}

// String is a status for people.
func (s Status) String() string {
	columns := []console.Column{
		{Head: "NODE", Right: true},
		{Head: "STATE"},
		{Head: "NODE ID", Right: true},
		{Head: "IDS/S", Right: true},
		{Head: "IDS", Right: true},
		{Head: "CLOCK", Right: true},
		{Head: "URL"},
		{Head: "ADMIN"},
	}
	var rows [][]string
	var whys strings.Builder
	for _, n := range s.Nodes {
		id, clock := "", "right"
		if n.NodeID != nil {
			id = strconv.FormatInt(*n.NodeID, 10)
		}
		if n.Clock != 0 {
			clock = console.Signed(time.Duration(n.Clock * float64(time.Second)))
		}
		rows = append(rows, []string{
			strconv.Itoa(n.Node), n.State, id, rounded(n.PerSecond), console.Number(float64(n.IDs)), clock, n.URL, n.Admin,
		})
		if n.Why != "" {
			fmt.Fprintf(&whys, "node %d: %s\n", n.Node, n.Why)
		}
	}
	text := console.Table(columns, rows)
	if whys.Len() > 0 {
		text += "\n" + whys.String()
	}
	return text + fmt.Sprintf("\nstore    %s\nmembers  %d\nload     %s; %s a second now; %s out of order\n",
		s.Store, s.Members, s.Load, rounded(s.Load.PerSecond), console.Number(float64(s.Load.Disorder)))
}

// line is a status in one line, short enough for a terminal.
func (s Status) line() string {
	var each []string
	ready := 0
	for _, n := range s.Nodes {
		if n.State == Ready {
			ready++
			each = append(each, rounded(n.PerSecond))
		} else {
			each = append(each, n.State)
		}
	}
	if len(each) > 4 {
		each = []string{fmt.Sprintf("%d of %d nodes ready", ready, len(each))}
	}
	text := fmt.Sprintf("%s IDs/s (%s)  %s  %s", rounded(s.Load.PerSecond), strings.Join(each, ", "), s.Load, console.Plural(int64(s.Members), "member"))
	if s.Store != StoreRunning {
		text += "  store " + s.Store
	}
	return text
}

func rounded(n float64) string { return console.Number(math.Round(n)) }

// rates are how fast counts grow: over the second, or a little more, before the latest look.
type rates struct {
	mu      sync.Mutex // guards what follows
	at      time.Time  // of the counts
	all     int64
	nodes   []int64
	rate    float64
	perNode []float64
}

// look takes the counts, and notes the rates since the last look.
func (r *rates) look(all int64, nodes []int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if took := now.Sub(r.at); !r.at.IsZero() {
		r.rate = float64(all-r.all) / took.Seconds()
		r.perNode = r.perNode[:0]
		for i, n := range nodes {
			r.perNode = append(r.perNode, max(0, float64(n-r.nodes[i])/took.Seconds()))
		}
	}
	r.at, r.all, r.nodes = now, all, nodes
}

// of puts the rates into a status.
func (r *rates) of(s *Status) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.Load.PerSecond = r.rate
	for i, rate := range r.perNode {
		s.Nodes[i].PerSecond = rate
	}
}

// changes are what is worth a line when one status follows another.
func (s Status) changes(before Status) []string {
	var all []string
	if s.Members != before.Members && s.Members > 0 && before.Members > 0 {
		all = append(all, fmt.Sprintf("the cluster has %s, and had %d", console.Plural(int64(s.Members), "member"), before.Members))
	}
	for i, n := range s.Nodes {
		was := before.Nodes[i]
		switch {
		case n.State == was.State:
		case n.State == Ready && n.NodeID != nil:
			all = append(all, fmt.Sprintf("node %d is ready, with node ID %d", n.Node, *n.NodeID))
		case n.State == NotReady && was.State == Ready:
			all = append(all, fmt.Sprintf("node %d is not ready: %s", n.Node, n.Why))
		}
	}
	return all
}
