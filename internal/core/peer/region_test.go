package peer

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/reason"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/store/memstore"
)

// TestRegionsGiveDifferentIDs is about members of two regions, whose stores know nothing of each other: the IDs of a
// plain sequencer differ, in every preset, with one tick in which both make all that they can.
func TestRegionsGiveDifferentIDs(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 9))
	for _, p := range firn.Presets() {
		t.Run(p.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				of := int64(2) << random.IntN(4)
				mine, other := random.Int64N(of), random.Int64N(of-1)
				if other >= mine {
					other++
				}
				given := map[firn.ID]cluster.Region{}
				l := p.Layout
				l.Epoch = layout.Epoch
				for _, region := range []cluster.Region{{Number: mine, Of: of}, {Number: other, Of: of}} {
					m, err := Join(t.Context(), memstore.NewService().Client("a"), Options{Region: region})
					if err != nil {
						t.Fatal(err)
					}
					defer m.Leave()
					s, err := m.EnsureSequencer(t.Context(), "orders", cluster.Define(l))
					if err != nil {
						t.Fatalf("%v: %v", region, err)
					}
					q, _ := m.Value().Sequencer("orders")
					for range 2000 {
						id, err := s.Next(t.Context())
						if err != nil {
							t.Fatal(err)
						}
						if earlier, ok := given[id]; ok {
							t.Fatalf("%d was given by %v, and by %v before", id, region, earlier)
						}
						given[id] = region
						if node, err := l.NodeID(id); err != nil || !q.NodeIDs().Holds(node) {
							t.Fatalf("%d of %v has the node ID %d, %v; want one of %v", id, region, node,
								err, q.NodeIDs())
						}
					}
				}
			})
		})
	}
}

// TestOtherRegionIsRefused: a store is of one region from its first sequencer on, and a member of another ends,
// whichever came first, without having changed anything.
func TestOtherRegionIsRefused(t *testing.T) {
	for _, tt := range []struct{ store, member cluster.Region }{
		{cluster.Region{Number: 2, Of: 8}, cluster.Region{Number: 3, Of: 8}},
		{cluster.Region{Number: 2, Of: 8}, cluster.Region{Number: 1, Of: 4}},
		{cluster.Region{Number: 2, Of: 8}, cluster.Region{}},
		{cluster.Region{}, cluster.Region{Number: 2, Of: 8}},
	} {
		synctest.Test(t, func(t *testing.T) {
			service := memstore.NewService()
			m, err := Join(t.Context(), service.Client("a"), Options{Region: tt.store})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Leave()
			// while there is no sequencer
			early, err := Join(t.Context(), service.Client("early"), Options{Region: tt.member})
			if err != nil {
				t.Fatal(err)
			}
			defer early.Leave()
			if _, err := m.EnsureSequencer(t.Context(), "orders", cluster.Define(layout)); err != nil {
				t.Fatal(err)
			}
			select {
			case <-early.Done():
			case <-time.After(time.Minute):
				t.Fatal("a member that had joined before is still one")
			}
			refused := func(what string, err error) {
				t.Helper()
				if wrong, ok := errors.AsType[*RegionError](err); !ok || wrong.InForce != tt.store ||
					wrong.Wanted != tt.member {
					t.Errorf("%v in a store of %v, %s: %v", tt.member, tt.store, what, err)
				}
			}
			refused("the first one", early.Err())
			_, err = early.EnsureSequencer(t.Context(), "orders", cluster.Define(layout))
			refused("a sequencer", err)
			before := m.Value()
			late, err := Join(t.Context(), service.Client("late"), Options{Region: tt.member})
			if err == nil {
				late.Leave()
			}
			refused("a later one", err)
			synctest.Wait()
			if now := m.Value(); now.IsMember(early.ID()) && now.Size() != before.Size() {
				t.Errorf("it has changed the value to %v", now)
			}
		})
	}
}

// TestSequencerTooSmallForRegions: a definition with fewer node IDs than there are regions is refused before it is
// created.
func TestSequencerTooSmallForRegions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := Join(t.Context(), memstore.NewService().Client("a"),
			Options{Region: cluster.Region{Number: 2, Of: 8}})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Leave()
		d := cluster.Define(layout)
		d.Nodes = 4
		if _, err := m.EnsureSequencer(t.Context(), "few", d); reason.Of(err) != "bad_request" ||
			!strings.Contains(err.Error(), `the sequencer "few" in the region 2/8: 4 node IDs for 8 regions`) {
			t.Errorf("a sequencer of four node IDs in eight regions: %v", err)
		}
		if n := m.Value().CountSequencers(); n != 0 {
			t.Errorf("there are %d sequencers", n)
		}
		one := &cluster.Range{From: 255, To: 255}
		o := Options{Region: cluster.Region{Number: 2, Of: 8}, Nodes: func(string, cluster.Definition) *cluster.Range {
			return one
		}}
		if err := o.ValidateFor("orders", cluster.Define(layout)); err == nil ||
			!strings.Contains(err.Error(), "there are 256 to 383 in the region 2/8") {
			t.Errorf("a node ID of another region is asked for: %v", err)
		}
	})
}

// TestNoNodeIDOfAnotherRegionIsClaimed: what the log grants is not enough. A member goes by its own region where IDs
// begin.
func TestNoNodeIDOfAnotherRegionIsClaimed(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		n := w.start("a")
		n.ready(0)
		m := n.mem.Load()
		s := n.seq.Load()
		m.options.Region = cluster.Region{Number: 1, Of: 2} // as if the log had granted another region's
		if err := s.claim(t.Context()); err == nil || !strings.Contains(err.Error(), "is not one of the region 1/2") {
			t.Errorf("it claims the node ID %d: %v", s.looked.node, err)
		}
	})
}

// TestNodeIDsBeginByChance: two clusters that know nothing of each other begin with different node IDs, mostly.
func TestNodeIDsBeginByChance(t *testing.T) {
	begun := map[int64]int{}
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			m, err := Join(t.Context(), memstore.NewService().Client("a"), Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Leave()
			s, err := m.EnsureSequencer(t.Context(), "orders", cluster.Define(layout))
			if err != nil {
				t.Fatal(err)
			}
			begun[s.State().Node]++
		})
	}
	if len(begun) < 10 { // of 20, three or more are equal in one run of a million
		t.Errorf("20 clusters began with the node IDs %v", begun)
	}
}
