package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// valueJSON is a value as JSON, for people and programs.
type valueJSON struct {
	Members    []string                 `json:"members"`
	Pairs      map[string]string        `json:"pairs"`
	Prepared   map[string]string        `json:"prepared"`
	Accepted   map[string]string        `json:"accepted"`
	Sequencers map[string]sequencerJSON `json:"sequencers"`
	Expelled   []string                 `json:"expelled,omitempty"` // the latest last
	Policy     []shareJSON              `json:"policy,omitempty"`   // by name
	Region     Region                   `json:"region,omitzero"`
	Skipped    []int64                  `json:"skipped,omitempty"` // positions
}

type shareJSON struct {
	Sequencer string   `json:"sequencer"`
	Percent   int64    `json:"percent,omitempty"` // absent: the rest
	Members   []string `json:"members"`           // those that serve it, in the order in which they joined
}

type sequencerJSON struct {
	Nodes      map[int64]string `json:"nodes"`
	Waiting    []string         `json:"waiting"`
	Drained    []string         `json:"drained,omitempty"`
	Allocation *Allocation      `json:"allocation,omitempty"` // if it is another than that of the definition

	Reserved map[string][]int64 `json:"reserved,omitempty"` // node IDs, by what they are reserved for
}

// MarshalJSON writes the members, pending joins and node IDs. It can't be read back, unlike a checkpoint, see
// EncodeCheckpoint.
func (v Value) MarshalJSON() ([]byte, error) {
	w := valueJSON{
		Members: v.Members(), Pairs: map[string]string{},
		Prepared: map[string]string{}, Accepted: map[string]string{},
		Sequencers: map[string]sequencerJSON{},
	}
	for id := range v.peers.all() {
		if watched, ok := v.Watched(id); ok {
			w.Pairs[id] = watched
		}
	}
	for joiner, j := range v.joins.all() {
		if j.Accepted {
			w.Accepted[joiner] = j.Target
		} else {
			w.Prepared[joiner] = j.Target
		}
	}
	for name, s := range v.sequencers.all() {
		reserved := map[string][]int64{}
		for r := range s.Reservations() {
			reserved[r.For] = r.Nodes
		}
		w.Sequencers[name] = sequencerJSON{
			maps.Collect(s.nodes.all()), s.Waiting(),
			slices.Collect(keys(s.drained)), s.changedAllocation(), reserved,
		}
	}
	w.Region, _ = v.Region()
	w.Skipped = slices.Collect(keys(v.skipped))
	w.Expelled = slices.Collect(values(v.expulsions))
	for name, s := range v.shares.all() {
		w.Policy = append(w.Policy, shareJSON{name, s.percent, slices.AppendSeq([]string{}, values(s.members))})
	}
	return json.Marshal(w)
}

// changedAllocation returns the allocation in force if it is not that of the definition, and nil if it is.
func (s Sequencer) changedAllocation() *Allocation {
	if s.allocation == s.definition.Allocation.Plain() {
		return nil
	}
	return &s.allocation
}

// ring returns the members so that each watches the next and the last watches the first, beginning with the one
// that joined first.
func (v Value) ring() []string {
	if v.peers.len() == 0 {
		return nil
	}
	first, oldest := v.peers.at(0)
	for id, p := range v.peers.all() {
		if p.joined < oldest.joined {
			first, oldest = id, p
		}
	}
	ring := []string{first}
	for id := oldest.watches; id != first; {
		ring = append(ring, id)
		p, _ := v.peers.get(id)
		id = p.watches
	}
	return ring
}

// String returns the value on one line:
//
//	ring a>b>c; d prepares at a; e accepted at b; orders 0:a 1:b, waiting c
func (v Value) String() string {
	parts := []string{"ring " + strings.Join(v.ring(), ">")}
	for joiner, j := range v.joins.all() {
		phase := "prepares"
		if j.Accepted {
			phase = "accepted"
		}
		parts = append(parts, fmt.Sprintf("%s %s at %s", joiner, phase, j.Target))
	}
	for name, s := range v.sequencers.all() {
		line := []string{name}
		for node, member := range s.nodes.all() {
			line = append(line, fmt.Sprintf("%d:%s", node, member))
		}
		for _, list := range []struct {
			title   string
			members []string
		}{
			{"waiting", s.Waiting()},
			{"drained", slices.Collect(keys(s.drained))},
		} {
			if len(list.members) > 0 {
				line[len(line)-1] += ","
				line = append(append(line, list.title), list.members...)
			}
		}
		if a := s.changedAllocation(); a != nil {
			line[len(line)-1] += ","
			line = append(line, "for "+a.String())
		}
		for r := range s.Reservations() {
			line[len(line)-1] += ","
			line = append(line, fmt.Sprintf("%d reserved for %s", r.Nodes, r.For))
		}
		parts = append(parts, strings.Join(line, " "))
	}
	for name, s := range v.shares.all() {
		line := []string{fmt.Sprintf("%d%% for %s:", s.percent, name)}
		if s.percent == 0 {
			line[0] = fmt.Sprintf("the rest for %s:", name)
		}
		parts = append(parts, strings.Join(slices.AppendSeq(line, values(s.members)), " "))
	}
	if v.expulsions.len() > 0 {
		parts = append(parts, strings.Join(slices.AppendSeq([]string{"expelled"}, values(v.expulsions)), " "))
	}
	return strings.Join(parts, "; ")
}
