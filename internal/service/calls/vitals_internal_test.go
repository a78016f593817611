package calls

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/core/peer"
)

// A node tells the rates of its busiest sequencers: those that give IDs, and no more than all nodes can read of all.
func TestRatesOfSequencers(t *testing.T) {
	before := map[string]uint64{"default": 1000, "idle": 7, "again": 900}
	// the last one was destroyed, and created again
	now := map[string]uint64{"default": 1500, "idle": 7, "new": 1, "again": 3}
	want := map[string]float64{"default": 100, "new": 0.2}
	if have := ratesOf(before, now, 5*time.Second); !maps.Equal(have, want) {
		t.Errorf("the rates are %v, want %v", have, want)
	}
	clear(now)
	for i := range 2 * mostRates {
		now[fmt.Sprintf("q%02d", i)] = uint64(10 * (i + 1))
	}
	have := ratesOf(nil, now, time.Second)
	if _, least := have[fmt.Sprintf("q%02d", mostRates-1)]; len(have) != mostRates || least ||
		have[fmt.Sprintf("q%02d", 2*mostRates-1)] != 20*mostRates {
		t.Errorf("of %d sequencers these rates are told: %v", len(now), have)
	}
}

// The rate of a sequencer is what the confirmed nodes tell together. Without one it is not known.
func TestRatesOfAllNodes(t *testing.T) {
	rates := func(all map[string]float64) *peer.Vitals { return &peer.Vitals{Rates: all} }
	s := Status{
		Store:      StatusStore{Reached: true},
		Sequencers: []StatusSequencer{{Name: "default"}, {Name: "orders"}},
		Members: []StatusMember{
			{ID: "a", Pulse: Pulse{Fresh: true, Vitals: rates(map[string]float64{"default": 10, "gone": 1})}},
			{ID: "b", Pulse: Pulse{Fresh: true, Vitals: rates(map[string]float64{"default": 5})}},
			{ID: "c", Pulse: Pulse{Vitals: rates(map[string]float64{"default": 100, "orders": 100})}},
		},
	}
	s.rateSequencers()
	if a, b := s.Sequencers[0].Given, s.Sequencers[1].Given; a == nil || *a != 15 || b == nil || *b != 0 {
		t.Errorf("the rates are %v and %v, want 15 and 0", a, b)
	}
	s.Sequencers[0].Given, s.Store.Reached = nil, false
	if s.rateSequencers(); s.Sequencers[0].Given != nil {
		t.Errorf("the rate is %v without the store", *s.Sequencers[0].Given)
	}
	s.Members, s.Store.Reached = s.Members[2:], true
	if s.rateSequencers(); s.Sequencers[0].Given != nil {
		t.Errorf("the rate is %v by one that is not confirmed", *s.Sequencers[0].Given)
	}
}
