package ui

import (
	"maps"
	"slices"
)

// patch is what a page must change to show the next scene. Absent values stay, null ones are removed.
type patch struct {
	Anew       bool                      `json:"anew,omitempty"` // first remove everything
	Facts      *facts                    `json:"facts,omitempty"`
	Members    map[string]*peer          `json:"members,omitempty"`
	Joins      map[string]*join          `json:"joins,omitempty"`
	Sequencers map[string]*sequencerDiff `json:"sequencers,omitempty"`
}

// sequencerDiff is what changes of a sequencer.
type sequencerDiff struct {
	Origin  *origin           `json:"origin,omitempty"` // it is a new sequencer, maybe of an old name
	Here    *standing         `json:"here,omitempty"`
	Nodes   map[int64]*string `json:"nodes,omitempty"`
	Waiting *[]string         `json:"waiting,omitempty"`
}

// between returns the changes from one scene to the next, and false if there are none. From nil it returns everything.
func between(before, after *scene) (p patch, some bool) {
	if before == after {
		return p, false
	}
	if before == nil {
		before = &scene{}
		p.Anew = true
	}
	if before.facts != after.facts {
		p.Facts = &after.facts
	}
	p.Members = changes(before.members, after.members)
	p.Joins = changes(before.joins, after.joins)
	p.Sequencers = map[string]*sequencerDiff{}
	for name := range before.sequencers {
		if _, ok := after.sequencers[name]; !ok {
			p.Sequencers[name] = nil
		}
	}
	for name, q := range after.sequencers {
		former, ok := before.sequencers[name]
		if d, some := former.to(q, ok); some {
			p.Sequencers[name] = &d
		}
	}
	return p, p.Anew || p.Facts != nil || len(p.Members)+len(p.Joins)+len(p.Sequencers) > 0
}

// to returns the changes of a sequencer; was tells whether it existed before.
func (q sequencer) to(next sequencer, was bool) (d sequencerDiff, some bool) {
	if !was || q.Created != next.Created {
		q = sequencer{}
		d.Origin = &next.origin
	}
	if q.standing != next.standing {
		d.Here = &next.standing
	}
	d.Nodes = changes(q.nodes, next.nodes)
	if !slices.Equal(q.waiting, next.waiting) {
		d.Waiting = &next.waiting
	}
	return d, d.Origin != nil || d.Here != nil || d.Nodes != nil || d.Waiting != nil
}

// changes are those from one map to another; nil values are removed.
func changes[K, V comparable](before, after map[K]V) map[K]*V {
	if maps.Equal(before, after) {
		return nil
	}
	all := map[K]*V{}
	for key := range before {
		if _, ok := after[key]; !ok {
			all[key] = nil
		}
	}
	for key, value := range after {
		if former, ok := before[key]; !ok || former != value {
			all[key] = &value
		}
	}
	return all
}
