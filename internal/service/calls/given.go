package calls

import (
	"sync"
	"sync/atomic"

	"github.com/firn-id/firn/internal/core/peer"
)

// given counts, by sequencer, the IDs that callers got. The zero value is ready.
type given struct {
	byDefault atomic.Uint64 // of the default sequencer

	mu     sync.RWMutex // guards what follows
	byName map[string]*atomic.Uint64
	ended  uint64 // of sequencers that byName no longer has
}

func (g *given) add(name string, count int) { g.of(name).Add(uint64(count)) }

func (g *given) of(name string) *atomic.Uint64 {
	if name == peer.DefaultSequencer {
		return &g.byDefault
	}
	g.mu.RLock()
	counter := g.byName[name]
	g.mu.RUnlock()
	if counter != nil {
		return counter
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.byName == nil {
		g.byName = map[string]*atomic.Uint64{}
	}
	if g.byName[name] == nil {
		g.byName[name] = new(atomic.Uint64)
	}
	return g.byName[name]
}

// Given returns how many IDs of each sequencer callers got since the process began, over all protocols. The
// default sequencer is always in it, others from their first ID until they are destroyed.
func (s *Service) Given() map[string]uint64 {
	v := s.member.Value()
	g := &s.given
	all := map[string]uint64{peer.DefaultSequencer: g.byDefault.Load()}
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, counter := range g.byName {
		if _, there := v.Sequencer(name); there || v.Position() == 0 {
			all[name] = counter.Load()
		} else {
			delete(g.byName, name) // or new names would fill the memory
			g.ended += counter.Load()
		}
	}
	return all
}

// total returns how many IDs callers got since the process began, of all sequencers.
func (g *given) total() uint64 {
	g.mu.RLock()
	defer g.mu.RUnlock()
	sum := g.byDefault.Load() + g.ended
	for _, counter := range g.byName {
		sum += counter.Load()
	}
	return sum
}
