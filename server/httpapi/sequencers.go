package httpapi

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cluster"
	"github.com/firn-id/firn/member"
)

// Sequencers are those of the cluster, as a *member.Member gets at them.
type Sequencers interface {
	Create(ctx context.Context, name string, d cluster.Definition) (created bool, err error)
	Attach(ctx context.Context, name string) (*member.Sequencer, error)
	Find(name string) (*member.Sequencer, bool)
	Lookup(ctx context.Context, name string) (cluster.Sequencer, error)
	Destroy(ctx context.Context, name string) error
}

// StatusSequencer is a sequencer as JSON shows it.
type StatusSequencer struct {
	Name       string             `json:"name"`
	Definition cluster.Definition `json:"definition"`
	Created    int64              `json:"created"`  // the position at which it was
	Capacity   int64              `json:"capacity"` // how many node IDs there are
	Until      time.Time          `json:"until"`    // when the time of its layout ends
	Rate       float64            `json:"rate"`     // IDs per second and node
	Nodes      map[int64]string   `json:"nodes"`    // which member has a node ID
	Waiting    []string           `json:"waiting"`  // for one, in order
	Free       int64              `json:"free"`     // how many node IDs nobody has
	Here       Here               `json:"here"`
}

// Here is where the member that answers stands with a sequencer, see member.State.
type Here struct {
	State string `json:"state"`           // a member.Phase; or none: it was never attached
	Node  *int64 `json:"node,omitempty"`  // the node ID, while attached
	Place int    `json:"place,omitempty"` // in line, from 1, while waiting
	Why   string `json:"why,omitempty"`   // there are no IDs
}

// never is the state of a member that was never attached.
const never = "none"

// String is the state for people.
func (e Here) String() string {
	switch {
	case e.Node != nil:
		return fmt.Sprintf("%s, node ID %d", e.State, *e.Node)
	case e.Place > 0:
		return fmt.Sprintf("%s, place %d in line", e.State, e.Place)
	case e.State == never:
		return "not attached"
	default:
		return e.State
	}
}

// Until is the end of a layout's time, as far as a date can say it: the last day of 9999 at the latest.
func Until(l firn.Layout) time.Time {
	last := lastTime.AddDate(0, 0, -1)
	if end := l.Lifetime(); end.Before(last) {
		return end
	}
	return last
}

// describe says what the cluster and this member know of a sequencer.
func (h *Handler) describe(name string, q cluster.Sequencer) StatusSequencer {
	d := q.Definition()
	return StatusSequencer{
		Name: name, Definition: d, Created: q.Created(), Capacity: d.Capacity(), Until: Until(d.IDLayout()), Rate: d.IDLayout().Rate(),
		Nodes: maps.Collect(q.Nodes()), Waiting: q.Waiting(), Free: q.Free(), Here: h.here(name),
	}
}

func (h *Handler) here(name string) Here {
	s, ok := h.cluster.Find(name)
	if !ok {
		return Here{State: never}
	}
	state := s.State()
	here := Here{State: state.Phase.String(), Place: state.Place}
	if state.Phase == member.Attached {
		here.Node = &state.Node
	}
	if err := s.Ready(); err != nil {
		here.Why = err.Error()
	}
	return here
}

func (h *Handler) list(w http.ResponseWriter, r *http.Request) {
	err := noParameters(r.URL.RawQuery, "for one sequencer GET /api/v1/sequencers/{name}")
	if err != nil {
		badRequest(w, err)
		return
	}
	v, err := h.latest()
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	header(w, jsonType)
	writeJSON(w, SequencerList{h.describeAll(v)})
}

// SequencerList is the answer that has all sequencers, by name.
type SequencerList struct {
	Sequencers []StatusSequencer `json:"sequencers"`
}

func (h *Handler) describeAll(v cluster.Value) []StatusSequencer {
	all := []StatusSequencer{}
	for name, q := range v.Sequencers() {
		all = append(all, h.describe(name, q))
	}
	return all
}

func (h *Handler) show(w http.ResponseWriter, r *http.Request) {
	if err := noParameters(r.URL.RawQuery, "leave it out"); err != nil {
		badRequest(w, err)
		return
	}
	name, q, err := h.lookup(r)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	header(w, jsonType)
	writeJSON(w, h.describe(name, q))
}

// lookup is the sequencer that a path names.
func (h *Handler) lookup(r *http.Request) (string, cluster.Sequencer, error) {
	name := r.PathValue("name")
	if err := cluster.CheckName(name); err != nil {
		return name, cluster.Sequencer{}, inputError{err}
	}
	ctx, cancel := context.WithTimeout(r.Context(), h.patience)
	defer cancel()
	q, err := h.cluster.Lookup(ctx, name)
	return name, q, err
}
