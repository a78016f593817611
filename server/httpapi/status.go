package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/firn-id/firn/cluster"
	"github.com/firn-id/firn/member"
	"github.com/firn-id/firn/store"
)

// Cluster is the cluster as one member sees it: what a *member.Member has come to, or what stands in for one.
// Its methods are called concurrently.
type Cluster interface {
	// ID is the member's own ID, and empty while it has none.
	ID() string

	// Value is the latest that the member has reached; zero while it has read nothing yet.
	Value() cluster.Value

	// Log is the log of the cluster. Nil: the store is not open yet.
	Log() store.Log

	// Pulses are those of all that live, by ID. An error is returned while they can't be read.
	Pulses(ctx context.Context) (map[string]member.Pulse, error)

	Sequencers
}

// Status is what a member knows of its cluster, as JSON shows it.
type Status struct {
	Member     string            `json:"member"`   // the one that answers; empty while it has no ID
	Position   int64             `json:"position"` // of the last entry that it has applied
	Entries    int64             `json:"entries"`  // how many it was of, since the log began
	Members    []StatusMember    `json:"members"`  // in the order in which they joined
	Joins      []StatusJoin      `json:"joins"`
	Sequencers []StatusSequencer `json:"sequencers"`
}

// StatusMember is a member in a Status.
type StatusMember struct {
	ID      string `json:"id"`
	Watches string `json:"watches,omitempty"` // nobody, when it is alone
	Joined  int64  `json:"joined"`            // the position at which it did
	Pulse
}

// Pulse is what a Status tells of the process behind an ID; nothing when the store could not tell.
type Pulse struct {
	Alive *bool  `json:"alive,omitempty"`
	Owner string `json:"owner,omitempty"` // its host and process, if it lives
}

// StatusJoin is a pending join in a Status.
type StatusJoin struct {
	Joiner string `json:"joiner"`
	Target string `json:"target"` // whom it is to watch
	Phase  string `json:"phase"`  // prepared; or accepted: it does so, and its watcher is to watch it
	Pulse
}

// Phases of a pending join.
const (
	Prepared = "prepared"
	Accepted = "accepted"
)

// statusOf describes a value, with the pulses of those who live; nil when they are not known.
func (h *Handler) statusOf(v cluster.Value, pulses map[string]member.Pulse) Status {
	pulse := func(id string) Pulse {
		if pulses == nil {
			return Pulse{}
		}
		p, alive := pulses[id]
		return Pulse{&alive, p.Owner}
	}
	s := Status{
		Member: h.cluster.ID(), Position: v.Position(), Entries: v.Entries(),
		Members: []StatusMember{}, Joins: []StatusJoin{}, Sequencers: h.describeAll(v),
	}
	for _, id := range v.Members() {
		m := StatusMember{ID: id, Pulse: pulse(id)}
		m.Joined, _ = v.Joined(id)
		if watched, ok := v.Watched(id); ok {
			m.Watches = watched
		}
		s.Members = append(s.Members, m)
	}
	for joiner, j := range v.Joins() {
		phase := Prepared
		if j.Accepted {
			phase = Accepted
		}
		s.Joins = append(s.Joins, StatusJoin{joiner, j.Target, phase, pulse(joiner)})
	}
	return s
}

func (h *Handler) status(w http.ResponseWriter, r *http.Request) {
	if err := noParameters(r.URL.RawQuery, "for another position GET /api/v1/cluster/value?at=N"); err != nil {
		badRequest(w, err)
		return
	}
	v, err := h.latest()
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	// Without the store there is a status all the same, and soon.
	ctx, cancel := context.WithTimeout(r.Context(), pulsesWithin)
	defer cancel()
	pulses, err := h.cluster.Pulses(ctx)
	if err != nil {
		pulses = nil
	}
	header(w, jsonType)
	writeJSON(w, h.statusOf(v, pulses))
}

const pulsesWithin = time.Second

// latest is the value that the member has reached. Every position is positive, so that a value at 0 is none
// that was read.
func (h *Handler) latest() (cluster.Value, error) {
	v := h.cluster.Value()
	if v.Position() == 0 {
		return v, fmt.Errorf("%w: it has not read the log of the cluster yet", member.ErrNotReady)
	}
	return v, nil
}
