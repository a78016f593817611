// Package servertest has members in any state for tests of the service and its protocols, and what stands in for an
// issuer, a meter and a quorum.
package servertest

import (
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/codes"
)

// Meter remembers what was counted: how many calls came to what, and how many of these were timed. Make it with
// NewMeter.
type Meter struct {
	mu          sync.Mutex // guards the rest
	seen, timed map[string]int
}

// NewMeter returns one that has seen nothing.
func NewMeter() *Meter { return &Meter{seen: map[string]int{}, timed: map[string]int{}} }

// Call implements [calls.Meter].
func (m *Meter) Call(protocol, name string) calls.Call { return metered{m, protocol + " " + name} }

type metered struct {
	*Meter
	name string
}

// Done implements [calls.Call].
func (m metered) Done(code codes.Code, n int, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen[m.name+" "+string(code)] += n
	if took >= 0 {
		m.timed[m.name]++
	}
}

// Take tells how many calls came to any of these, and forgets that they did.
func (m *Meter) Take(seen ...string) (calls int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range seen {
		calls += m.seen[name]
		delete(m.seen, name)
	}
	return calls
}

// Wants fails the test unless exactly that was counted, by "protocol name code", and that was timed, by
// "protocol name", since the last call.
func (m *Meter) Wants(t *testing.T, seen, timed map[string]int) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if !maps.Equal(m.seen, seen) || !maps.Equal(m.timed, timed) {
		t.Errorf("counted were %v, timed %v\nwant            %v and   %v", m.seen, m.timed, seen, timed)
	}
	clear(m.seen)
	clear(m.timed)
}
