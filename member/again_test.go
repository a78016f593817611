package member

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cluster"
	"github.com/firn-id/firn/store/memstore"
)

// hostile is a world in which members create, attach to, detach from and destroy sequencers of two names with all
// kinds of definitions, over a store that delays, loses and reorders, while they are cut off, lose their sessions, and
// their clocks step.
type hostile struct {
	*world
	seed   uint64
	steps  bool // of the clocks
	random *rand.Rand

	mu        sync.Mutex
	given     map[string]map[firn.ID]string // who gave it
	gone      map[string]int64              // the latest sequencer of which nobody may give one
	destroyed int
	ordered   int // commands of operators that were applied
}

func (h *hostile) pick(n int64) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.random.Int64N(n)
}

func (h *hostile) chance(n int64) bool { return h.pick(n) == 0 }

func (h *hostile) upTo(d time.Duration) time.Duration { return time.Duration(h.pick(int64(d))) }

func (h *hostile) fault(memstore.Call) memstore.Fault {
	if !h.chance(8) {
		return memstore.Fault{}
	}
	outcomes := []memstore.Outcome{memstore.Answered, memstore.FailBefore, memstore.FailAfter, memstore.ApplyLate}
	return memstore.Fault{Outcome: outcomes[h.pick(4)], Delay: h.upTo(8 * time.Second)}
}

// work is what a member does, again and again.
func (h *hostile) work(ctx context.Context, n *node) {
	for ctx.Err() == nil {
		name := []string{"one", "two"}[h.pick(2)]
		d := cluster.Define(layout)
		d.Nodes = []int64{1, 2, 3, 64, 1024}[h.pick(5)]
		within, cancel := context.WithTimeout(ctx, h.upTo(20*time.Second))
		m := n.mem.Load()
		s, err := m.EnsureSequencer(within, name, d)
		if err != nil {
			s, err = m.Attach(within, name)
		}
		if err == nil {
			h.take(within, n, s)
			if h.chance(3) {
				_ = s.Detach(within)
			}
		}
		if h.chance(4) {
			h.destroy(within, m, name)
		}
		if h.order(within, m, name, s) == nil {
			h.mu.Lock()
			h.ordered++
			h.mu.Unlock()
		}
		cancel()
		time.Sleep(h.upTo(300 * time.Millisecond))
	}
}

// order has a member write a command of an operator about a member that the value has.
func (h *hostile) order(ctx context.Context, m *Member, name string, s *Sequencer) error {
	v := m.Value()
	members := v.Members()
	if len(members) == 0 || s == nil {
		return ErrNotReady
	}
	id := members[h.pick(int64(len(members)))]
	switch h.pick(6) {
	case 0:
		return m.Drain(ctx, name, id)
	case 1, 2:
		return m.Undrain(ctx, name, id)
	case 3:
		return m.Move(ctx, name, h.pick(s.Definition().Capacity()), id)
	case 4:
		return m.Allocate(ctx, name, cluster.Allocation{Kind: cluster.AllocateCount, Count: 1 + h.pick(4)})
	default:
		return m.SetPolicy(ctx, [][]cluster.Share{nil, {{Sequencer: "one", Percent: 50}, {Sequencer: "two"}}}[h.pick(2)])
	}
}

// take takes some IDs, and checks each.
func (h *hostile) take(ctx context.Context, n *node, s *Sequencer) {
	for range h.pick(400) {
		h.mu.Lock()
		over := s.status.Load().created <= h.gone[s.name]
		h.mu.Unlock()
		id, err := s.Next(ctx)
		if err != nil {
			return
		}
		h.mu.Lock()
		if by := h.given[s.name][id]; by != "" {
			h.t.Errorf("seed %d: %s gives %d of %s, which %s gave", h.seed, n.name, id, s.name, by)
		}
		h.given[s.name][id] = n.name
		h.mu.Unlock()
		if over && !h.steps { // else clocks differ, and with them when it is over
			h.t.Errorf("seed %d: %s gives %d of %s, which was destroyed everywhere", h.seed, n.name, id, s.name)
		}
		time.Sleep(h.upTo(5 * time.Millisecond))
	}
}

// destroy has a member destroy the sequencer of a name that there is, or a later one, and notes that nobody may give
// an ID of it or of any before once that has returned.
func (h *hostile) destroy(ctx context.Context, m *Member, name string) {
	q, err := m.latest(ctx, name)
	if err != nil || m.Destroy(ctx, name) != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.destroyed++
	h.gone[name] = max(h.gone[name], q.Created())
}

// trouble makes trouble for the members.
func (h *hostile) trouble(ctx context.Context, nodes []*node) {
	for ctx.Err() == nil {
		n := nodes[h.pick(int64(len(nodes)))]
		switch h.pick(4) {
		case 0:
			n.client.CutOff(true)
			time.Sleep(h.upTo(12 * time.Second))
			n.client.CutOff(false)
		case 1:
			h.service.Expire(n.session())
		case 2:
			if h.steps {
				n.wall.step(h.upTo(4*time.Second) - 2*time.Second)
			}
		}
		time.Sleep(h.upTo(10 * time.Second))
	}
}

// TestNoIDComesAgain: no ID of a name is given twice, whatever the generations, and none of a sequencer for which Destroy
// has returned.
func TestNoIDComesAgain(t *testing.T) {
	total, destroyed, ordered := 0, 0, 0
	for seed := range uint64(24) {
		inBubble(t, func(t *testing.T, w *world) {
			h := &hostile{
				world: w, seed: seed, steps: seed%2 == 1, random: rand.New(rand.NewPCG(seed, 4)),
				given: map[string]map[firn.ID]string{"one": {}, "two": {}}, gone: map[string]int64{},
			}
			ctx, stop := context.WithTimeout(t.Context(), 4*time.Minute)
			defer stop()
			var nodes []*node
			var all sync.WaitGroup
			for i := range 4 {
				n := w.start(fmt.Sprint("n", i), func(c *setup) { c.Window, c.NodeIDs = 6*time.Second, 1+i%3 })
				nodes = append(nodes, n)
				n.settled()
				n.client.Inject(h.fault)
				all.Go(func() { h.work(ctx, n) })
			}
			h.trouble(ctx, nodes)
			all.Wait()
			for _, n := range nodes {
				n.client.Inject(nil)
			}
			total += len(h.given["one"]) + len(h.given["two"])
			destroyed += h.destroyed
			ordered += h.ordered
		})
	}
	t.Logf("%d IDs, %d times destroyed, %d commands of operators", total, destroyed, ordered)
	if total < 100_000 || destroyed < 50 || ordered < 500 {
		t.Errorf("%d IDs, %d times destroyed, %d commands of operators: that is not enough to show anything", total, destroyed, ordered)
	}
}
