package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/ops/console"
	"github.com/firn-id/firn/internal/ops/load"
	"github.com/firn-id/firn/internal/ops/remote"
	"github.com/firn-id/firn/internal/service/calls"
)

// planAgainst has a plan compare the IDs that the command of --against prints. It asks the first server for the
// definition of the sequencer.
func (p *program) planAgainst(ctx context.Context, o *benchOptions, plan *load.Plan) error {
	if o.against == "" {
		return nil
	}
	if o.protocol.Name != "http" {
		return usagef("--against goes with --protocol http, over which bench asks for the layout of the sequencer")
	}
	server, err := remote.ParseURL(o.servers[0])
	if err != nil {
		return usagef("--server: %w", err)
	}
	access := o.access
	access.url = server
	client, err := access.client()
	if err != nil {
		return err
	}
	path := remote.SequencerPath(cmp.Or(o.sequencer, peer.DefaultSequencer), "")
	if _, err := client.Call(ctx, http.MethodGet, path, nil, &o.asked); err != nil {
		return err
	}
	d := o.asked.Definition
	plan.Against, plan.Scattered = &load.Other{Command: o.against, Stderr: p.stderr}, d.Scattered
	if !d.Claimed() {
		plan.Against.Layout = new(d.IDLayout())
	}
	return nil
}

// unreserved are the node IDs of the other generator that no reservation has: a node can get them.
func (o *benchOptions) unreserved(a *load.Against) (nodes []int64) {
	for _, node := range a.Theirs {
		if !slices.ContainsFunc(o.asked.Reservations, func(r calls.Reservation) bool {
			return slices.Contains(r.Nodes, node)
		}) {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// againstErr is an error if the two generators gave the same ID, or used the same node ID.
func againstErr(o *benchOptions, a *load.Against) error {
	switch {
	case a == nil:
		return nil
	case a.Same > 0:
		return fmt.Errorf("%s came from the service and from the command of --against, the first %v%s",
			console.Plural(a.Same, "ID"), a.Some[0], nodeText(o, a.Some[0]))
	case len(a.Both) > 0:
		return fmt.Errorf("the service and the command of --against both use node ID %d, and so can give the same ID; "+
			"want node IDs of its own for each: see firn sequencer reserve --help", a.Both[0])
	}
	return nil
}

// nodeText names the node ID in an ID, if there is one.
func nodeText(o *benchOptions, id firn.ID) string {
	d := o.asked.Definition
	if d.Claimed() {
		return ""
	}
	if d.Scattered {
		id = firn.Gather(id)
	}
	node, err := d.IDLayout().NodeID(id)
	if err != nil {
		return ""
	}
	return fmt.Sprintf(", under node ID %d", node)
}

// againstRows are the lines about the other generator in a result for people.
func againstRows(o *benchOptions, a *load.Against) (rows [][2]string) {
	printed := console.Plural(a.IDs, "ID") + " of the command"
	if a.Stopped {
		printed += " before bench ended it"
	}
	if a.Again > 0 {
		printed += fmt.Sprintf(", %s repeated", console.Number(float64(a.Again)))
	}
	if times := againstTimes(o, a); times != nil {
		printed += fmt.Sprintf(", of %s to %s", times[0], times[1])
	}
	if a.Checked < a.IDs {
		printed += fmt.Sprintf("; memory did not suffice to compare %s of them",
			console.Number(float64(a.IDs-a.Checked)))
	}
	same := "none"
	if a.Same > 0 {
		same = fmt.Sprintf("%s, such as %s", console.Number(float64(a.Same)), strings.Join(texts(a.Some), ", "))
	}
	rows = [][2]string{{"against", printed}, {"the same", same}}
	if o.asked.Definition.Claimed() {
		return rows
	}
	both := "none on both sides"
	if len(a.Both) > 0 {
		both = console.Stretches(a.Both) + " on both sides"
	}
	rows = append(rows, [2]string{"node IDs", fmt.Sprintf("%s of the service, %s of the command, %s",
		stretches(a.Ours), stretches(a.Theirs), both)})
	if open := o.unreserved(a); len(open) > 0 {
		rows = append(rows, [2]string{"unreserved", stretches(open) + " of the command: nodes of firn can get these"})
	}
	return rows
}

// stretches writes node IDs for people, and only the first ones of many.
func stretches(nodes []int64) string {
	const most = 32
	switch {
	case len(nodes) == 0:
		return "none"
	case len(nodes) > most:
		return fmt.Sprintf("%s and %d more", console.Stretches(nodes[:most]), len(nodes)-most)
	}
	return console.Stretches(nodes)
}

// againstTimes are the times of the smallest and the greatest ID of the other generator, in RFC 3339; nil: they have
// none.
func againstTimes(o *benchOptions, a *load.Against) []string {
	if o.asked.Definition.Kind == cluster.Counter || a.IDs == 0 {
		return nil
	}
	l := o.asked.Definition.IDLayout()
	var times []string
	for _, id := range []firn.ID{a.From, a.To} {
		at, err := l.Time(id)
		if err != nil {
			return nil
		}
		times = append(times, at.Format(time.RFC3339Nano))
	}
	return times
}

// benchAgainst is what programs read of the other generator.
type benchAgainst struct {
	Command    string   `json:"command"`
	IDs        int64    `json:"ids"`
	Stopped    bool     `json:"stopped"`
	Checked    int64    `json:"checked"`
	Repeated   int64    `json:"repeated"`
	Same       int64    `json:"same"`
	Some       []string `json:"some"`
	Times      []string `json:"times,omitempty"` // of the smallest and the greatest ID of the command
	Ours       []int64  `json:"service_nodes"`
	Theirs     []int64  `json:"command_nodes"`
	Both       []int64  `json:"both_nodes"`
	Unreserved []int64  `json:"unreserved_nodes"` // of those of the command
}

func againstJSON(o *benchOptions, a *load.Against) *benchAgainst {
	if a == nil {
		return nil
	}
	list := func(nodes []int64) []int64 { return append([]int64{}, nodes...) } // not null
	return &benchAgainst{
		Command: o.against, IDs: a.IDs, Stopped: a.Stopped, Checked: a.Checked, Repeated: a.Again, Same: a.Same,
		Some: texts(a.Some), Times: againstTimes(o, a),
		Ours: list(a.Ours), Theirs: list(a.Theirs), Both: list(a.Both), Unreserved: list(o.unreserved(a)),
	}
}
