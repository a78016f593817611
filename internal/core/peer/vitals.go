package peer

import (
	"slices"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/clocks"
	"github.com/firn-id/firn/internal/core/fence"
)

// Vitals are facts about a member for people. They decide nothing. Zero values are unknown.
type Vitals struct {
	Version string `json:"version,omitempty"` // of the program
	// where it serves, by protocol: http and admin are URLs, grpc and redis host:port
	Addresses map[string]string `json:"addresses,omitempty"`
	Since     time.Time         `json:"since,omitzero"` // when its process began, by its clock

	Ready bool   `json:"ready"`          // it can issue IDs of the default sequencer
	Code  string `json:"code,omitempty"` // why not: a code of docs/errors.md
	Why   string `json:"why,omitempty"`  // the same in words

	For time.Duration `json:"for_ns,omitzero"` // how long Ready and Code are as they are

	Given uint64  `json:"given"` // IDs since the process began, of all sequencers
	Rate  float64 `json:"rate"`  // IDs per second, lately

	Rates map[string]float64 `json:"rates,omitempty"` // those of the busiest sequencers that give any, by name

	// sequencers of which callers lately got no IDs from it, for want of a node ID
	Failing  []string `json:"failing,omitempty"`
	Forwards bool     `json:"forwards,omitempty"` // it asks other nodes for IDs where it has no node ID

	// how far it is with those that it gave numbers of, by name
	Counters map[string]Counting `json:"counters,omitempty"`

	Verdict string `json:"verdict,omitempty"` // over its clock, when it was last judged; empty: never
	// by how much its wall clock was ahead of the others' median then, at least; negative: behind
	Offset  time.Duration `json:"offset_ns"`
	Against int           `json:"against,omitempty"` // how many others disagreed with it
	Others  int           `json:"others,omitempty"`  // of so many
	Judged  time.Time     `json:"judged,omitzero"`   // when that was, by its clock

	VerdictSince time.Time `json:"verdict_since,omitzero"` // since when the verdict is the same, by its clock

	// when it last found that it was copied or set back, by its clock; zero: never
	CopiedAt time.Time `json:"copied_at,omitzero"`

	// IDs may exist up to this instant, beyond its clock, so that its own are smaller; zero: none are known
	SmallerUntil time.Time `json:"smaller_until,omitzero"`

	// to its nearest horizon that it renews with its pulse, negative once passed; zero: it holds no such node ID
	Left      time.Duration `json:"left_ns,omitzero"`
	RoundTrip time.Duration `json:"rtt_ns,omitzero"` // of its latest write to the store
}

// Counting is how far a member is with a counter.
type Counting struct {
	// the greatest number that it knows to be reserved, by anybody; 0: none
	Reserved firn.ID `json:"reserved,omitempty"`
	Lost     bool    `json:"lost,omitempty"` // it stopped, since the store has lost data
}

// Judgement returns the verdict over the member's clock, without With; the zero value: it was never judged.
func (v Vitals) Judgement() clocks.Verdict {
	return clocks.Verdict{Kind: clocks.KindOf(v.Verdict), Offset: v.Offset, Against: v.Against, Others: v.Others}
}

// Vitals returns the member's vital signs now. It does not ask the store.
func (m *Member) Vitals() Vitals { return m.vitals(nil) }

// vitals returns the vital signs once these fences are renewed.
func (m *Member) vitals(renewed []*fence.Fence) (v Vitals) {
	if m.options.Vitals != nil {
		v = m.options.Vitals()
	} else {
		v.Ready = m.Ready() == nil
	}
	if !v.Since.IsZero() {
		v.Since = m.Wall().Add(-time.Since(v.Since)) // by its own clock
	}
	v.Counters = m.countings()
	if j := m.judged(); !j.at.IsZero() {
		v.Verdict, v.Offset, v.Against, v.Others = j.Kind.String(), j.Offset, j.Against, j.Others
		v.Judged, v.VerdictSince = m.Wall().Add(-time.Since(j.at)), m.Wall().Add(-time.Since(j.since))
	}
	if at := m.copiedAt.Load(); at != nil {
		v.CopiedAt = m.Wall().Add(-time.Since(*at))
	}
	v.RoundTrip = time.Duration(m.keeper.roundTrip.Load())
	first := true
	for _, s := range m.Sequencers() {
		st := s.status.Load()
		// Those of other windows are renewed between pulses, too.
		if t := st.inUse(); t.fence != nil && s.fences.Window == m.options.Window {
			left := t.fence.Horizon().Sub(m.now())
			if slices.Contains(renewed, t.fence) {
				left = m.options.Window
			}
			if first || left < v.Left {
				v.Left, first = left, false
			}
		}
		if st.smaller.After(m.now()) {
			v.SmallerUntil = later(v.SmallerUntil, st.smaller)
		}
	}
	return v
}

// Answered returns when the store last answered a write of the member's vital signs, which come at least three times in
// the window, with a monotonic clock reading. Zero: never. It is safe for concurrent use.
func (m *Member) Answered() time.Time { return m.keeper.answeredAt() }

// Wall returns the time by the member's wall clock, which may step.
func (m *Member) Wall() time.Time { return time.Unix(0, m.options.Clock.Wall()) }

// Refresh has the member write its vital signs soon, rather than within a third of the window: for when they have
// changed.
func (m *Member) Refresh() { m.keeper.hurry() }
