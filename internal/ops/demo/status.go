package demo

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn/internal/ops/console"
	"github.com/firn-id/firn/internal/service/calls"
)

// States of a node of a demo.
const (
	Ready    = "ready"
	NotReady = "not ready"
	Paused   = "paused"
	Down     = "down"

	StoreRunning = "running"
	StoreStopped = "stopped"
	StoreLost    = "without a majority"
)

// Status is the state of a demo.
type Status struct {
	Seconds float64      `json:"seconds"` // since its start
	Store   string       `json:"store"`   // running, stopped or without a majority
	Members int          `json:"members"` // of the cluster, as far as a running node knows
	Nodes   []NodeStatus `json:"nodes"`
	Load    Counts       `json:"load"`
}

// NodeStatus is the state of a node of a demo.
type NodeStatus struct {
	Node      int     `json:"node"`
	State     string  `json:"state"`         // ready, not ready, paused or down
	Why       string  `json:"why,omitempty"` // why it is not ready
	URL       string  `json:"url"`
	Admin     string  `json:"admin"`
	Member    string  `json:"member,omitempty"`
	NodeID    *int64  `json:"node_id,omitempty"`
	Clock     float64 `json:"clock_seconds"` // seconds ahead of the right time
	IDs       int64   `json:"ids"`           // issued to all callers since the demo began
	PerSecond float64 `json:"ids_per_second"`
}

// status returns the state now, with the rates of the last second.
func (d *demo) status() Status {
	s := Status{Seconds: time.Since(d.began).Seconds(), Store: StoreRunning, Load: d.load.counts()}
	switch {
	case d.stopped.Load():
		s.Store = StoreStopped
	case d.quorum != nil && !d.quorum.majority(d.runs()):
		s.Store = StoreLost
	}
	var latest int64 // the latest position that a node has reached
	for _, h := range d.hosts {
		one := NodeStatus{
			Node: h.number, State: Down, URL: h.url, Admin: h.admin.String(),
			Clock: time.Duration(h.offset.Load()).Seconds(),
		}
		for _, n := range h.given() {
			one.IDs += int64(n)
		}
		if p := h.running(); p != nil {
			one.State, one.Why = stateOf(p)
			if id, ok := p.nodeID(); ok && p.node.Ready() == nil {
				one.NodeID = &id
			}
			one.Member = p.node.MemberID()
			if v := p.node.Value(); v.Position() > latest && !p.paused.Load() {
				latest, s.Members = v.Position(), len(v.Members())
			}
		}
		s.Nodes = append(s.Nodes, one)
	}
	if m := d.measured.Load(); m != nil {
		s.Load.PerSecond = m.Load.PerSecond
		for i := range s.Nodes {
			s.Nodes[i].PerSecond = m.Nodes[i].PerSecond
		}
	}
	return s
}

// measure updates the rates from the growth of the counts since its last call.
func (d *demo) measure() {
	now, before := d.status(), d.measured.Load()
	if before != nil {
		took := now.Seconds - before.Seconds
		now.Load.PerSecond = float64(now.Load.IDs-before.Load.IDs) / took
		for i := range now.Nodes {
			now.Nodes[i].PerSecond = max(0, float64(now.Nodes[i].IDs-before.Nodes[i].IDs)/took)
		}
	}
	d.measured.Store(&now)
}

func stateOf(p *process) (state, why string) {
	if p.paused.Load() {
		return Paused, ""
	}
	if err := p.node.Ready(); err != nil {
		return NotReady, calls.Why(err)
	}
	return Ready, ""
}

// String returns the status for people.
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
			strconv.Itoa(n.Node), n.State, id, rounded(n.PerSecond), console.Number(float64(n.IDs)), clock,
			n.URL, n.Admin,
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

// line returns the status in one line, short enough for a terminal.
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
	text := fmt.Sprintf("%s IDs/s (%s)  %s  %s", rounded(s.Load.PerSecond), strings.Join(each, ", "), s.Load,
		console.Plural(int64(s.Members), "member"))
	if s.Store != StoreRunning {
		text += "  store " + s.Store
	}
	return text
}

func rounded(n float64) string { return console.Number(math.Round(n)) }

// changes returns the lines to print when one status follows another.
func (s Status) changes(before Status) []string {
	var all []string
	if s.Members != before.Members && s.Members > 0 && before.Members > 0 {
		all = append(all,
			fmt.Sprintf("the cluster has %s, and had %d", console.Plural(int64(s.Members), "member"), before.Members))
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
