package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn/internal/ops/console"
	"github.com/firn-id/firn/internal/ops/remote"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/codes"
)

func stateColour(state string) console.Colour {
	switch calls.State(state) {
	case calls.ReadyState, calls.AliveState:
		return console.Green
	case calls.LateState, calls.NewState, calls.UnknownState, calls.State(codes.Waiting), calls.State(codes.Detached):
		return console.Yellow
	default:
		return console.Red
	}
}

// membersTable describes all members, by name.
func (p *program) membersTable(s calls.Status, wide bool) string {
	columns := []console.Column{
		{Head: "NODE"},
		{Head: "MEMBER"},
		{Head: "STATE", Colour: p.colours(stateColour)},
		{Head: "IDS/S", Right: true},
		{Head: "CLOCK", Right: true},
		{Head: "LEFT", Right: true},
		{Head: "STORE", Right: true},
		{Head: "UP", Right: true},
		{Head: "SEEN", Right: true},
	}
	if wide {
		columns = append(columns, console.Column{Head: "GIVEN", Right: true},
			console.Column{Head: "JUDGED", Right: true}, console.Column{Head: "WATCHES"},
			console.Column{Head: "JOINED AT", Right: true}, console.Column{Head: "VERSION"},
			console.Column{Head: "ADDRESSES"})
	}
	names := calls.Names(s)
	members := slices.SortedFunc(slices.Values(s.Members), func(a, b calls.StatusMember) int {
		return cmp.Or(cmp.Compare(names[a.ID], names[b.ID]), cmp.Compare(a.ID, b.ID))
	})
	var rows [][]string
	for _, m := range members {
		name := printable(names[m.ID])
		if m.Owner == "" {
			name = "-"
		}
		row := append([]string{name, console.Shown(m.ID), console.Shown(string(s.StateOf(m.Pulse)))},
			vitalColumns(m.Pulse, s.At)...)
		if wide {
			row = append(row, wideColumns(m, s.At)...)
		}
		rows = append(rows, row)
	}
	if len(rows) == 0 {
		return "no members\n"
	}
	return console.Table(columns, rows)
}

// vitalColumns are IDS/S to SEEN. What is not confirmed is left out.
func vitalColumns(p calls.Pulse, now time.Time) []string {
	row := []string{"-", "-", "-", "-", "-", "-"}
	if p.AsOf != nil {
		row[5] = short(now.Sub(*p.AsOf).Round(time.Second))
	}
	v := p.Vitals
	if !p.Fresh || v == nil {
		return row
	}
	row[0] = console.Number(v.Rate)
	if v.Others > 0 {
		row[1] = short(v.Offset.Round(100 * time.Millisecond))
		if v.Offset >= 0 {
			row[1] = "+" + row[1]
		}
	}
	if v.Left != 0 && p.AsOf != nil {
		row[2] = short((v.Left - now.Sub(*p.AsOf)).Round(time.Second))
	}
	if v.RoundTrip > 0 {
		row[3] = short(v.RoundTrip)
	}
	if !v.Since.IsZero() {
		row[4] = short(now.Sub(v.Since).Round(time.Second))
	}
	return row
}

// wideColumns are GIVEN to ADDRESSES. The last two are of use also where they are not confirmed.
func wideColumns(m calls.StatusMember, now time.Time) []string {
	row := []string{"-", "-", "nobody", strconv.FormatInt(m.Joined, 10), "-", "-"}
	if m.Watches != "" {
		row[2] = console.Shown(m.Watches)
	}
	v := m.Vitals
	if v == nil {
		return row
	}
	if m.Fresh {
		row[0] = console.Number(float64(v.Given))
		if !v.Judged.IsZero() {
			row[1] = short(now.Sub(v.Judged).Round(time.Second))
		}
	}
	row[4] = cmp.Or(console.Shown(v.Version), "-")
	var at []string
	for _, protocol := range slices.Sorted(maps.Keys(v.Addresses)) {
		at = append(at, console.Shown(protocol)+"="+console.Shown(v.Addresses[protocol]))
	}
	row[5] = cmp.Or(strings.Join(at, " "), "-")
	return row
}

// memberTable says who watches whom.
func memberTable(members []calls.StatusMember) string {
	columns := []console.Column{{Head: "MEMBER"}, {Head: "WATCHES"}}
	var rows [][]string
	for _, m := range members {
		watches := "nobody"
		if m.Watches != "" {
			watches = console.Shown(m.Watches)
		}
		rows = append(rows, []string{console.Shown(m.ID), watches})
	}
	if len(rows) == 0 {
		return "no members\n"
	}
	return console.Table(columns, rows)
}

func (p *program) joinTable(s calls.Status, owners bool) string {
	columns := []console.Column{
		{Head: "JOINER"},
		{Head: "TARGET"},
		{Head: "PHASE"},
		{Head: "OWNER", Colour: p.colours(ownerColour)},
	}
	var rows [][]string
	for _, j := range s.Joins {
		rows = append(rows,
			[]string{console.Shown(j.Joiner), console.Shown(j.Target), console.Shown(j.Phase), owner(s, j.Pulse)})
	}
	if !owners {
		columns = columns[:3]
	}
	return console.Table(columns, rows)
}

// What owner says of a pulse that names no process.
const (
	ownerNew     = "new: it has come or left a moment ago"
	ownerUnknown = "unknown: the store does not answer"
	ownerDead    = "nobody: its pulse is gone"
)

func ownerColour(owner string) console.Colour {
	return map[string]console.Colour{
		ownerNew: console.Yellow, ownerUnknown: console.Yellow,
		ownerDead: console.Red,
	}[owner]
}

// owner says whose process is behind an ID.
func owner(s calls.Status, p calls.Pulse) string {
	switch state := s.StateOf(p); {
	case state == calls.NewState:
		return ownerNew
	case state == calls.UnknownState:
		return ownerUnknown
	case state == calls.GoneState:
		return ownerDead
	case p.Owner == "":
		return "unnamed"
	default:
		return console.ShownText(p.Owner)
	}
}

func sequencerTable(sequencers []calls.StatusSequencer) string {
	columns := []console.Column{
		{Head: "SEQUENCER"},
		{Head: "NODE IDS", Right: true},
		{Head: "FREE", Right: true},
		{Head: "IDS/S", Right: true},
		{Head: "FOR"},
		{Head: "LAYOUT"},
	}
	var rows [][]string
	for _, s := range sequencers {
		rate := "-"
		if s.Given != nil {
			rate = console.Number(*s.Given)
		}
		if s.Definition.Claimed() {
			rows = append(rows, []string{console.Shown(s.Name), "-", "-", rate, "-", s.Definition.Shape()})
			continue
		}
		all, free := s.NodeIDs()
		rows = append(rows, []string{
			console.Shown(s.Name), strconv.FormatInt(all, 10), strconv.FormatInt(free, 10), rate,
			forText(s), s.Definition.IDLayout().String(),
		})
	}
	return console.Table(columns, rows)
}

// addOthers adds the holders of node IDs that are no members, as databases are, unless the server can't tell.
func addOthers(ctx context.Context, ask remote.Client, sequencers []calls.StatusSequencer) {
	for i := range sequencers {
		s := &sequencers[i]
		if s.Free == nil { // a counter, which has none
			continue
		}
		for from := new(int64); from != nil; {
			var nodes calls.Owners
			path := fmt.Sprintf("%s?from=%d&limit=%d", remote.SequencerPath(s.Name, "/nodes"), *from, calls.MaxOwners)
			if _, err := ask.Call(ctx, http.MethodGet, path, nil, &nodes); err != nil {
				break
			}
			for _, n := range nodes.Nodes {
				if !n.Live || n.Member != "" || n.For != "" || s.Nodes[n.Node] != "" {
					continue
				}
				if *s.Free--; s.Nodes == nil {
					s.Nodes = map[int64]string{}
				}
				s.Nodes[n.Node] = n.Owner
			}
			from = nodes.Next
		}
	}
}

func nodeTable(sequencers []calls.StatusSequencer) string {
	columns := []console.Column{{Head: "SEQUENCER"}, {Head: "NODE ID", Right: true}, {Head: "HOLDER"}}
	var rows [][]string
	for _, s := range sequencers {
		for _, node := range slices.Sorted(maps.Keys(s.Nodes)) {
			rows = append(rows,
				[]string{console.Shown(s.Name), strconv.FormatInt(node, 10), console.ShownText(s.Nodes[node])})
		}
		for _, member := range s.Waiting {
			rows = append(rows, []string{console.Shown(s.Name), "waiting", console.Shown(member)})
		}
	}
	return console.Table(columns, rows)
}
