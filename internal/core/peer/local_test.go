package peer

import (
	"errors"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
)

// The IDs of a Local ascend while the member goes from one node ID to another, with a batch in hand each time.
func TestLocalAscendsAcrossNodeIDs(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a", func(c *setup) {
			c.definition = cluster.Define(firn.Layout{
				Epoch: layout.Epoch, Tick: 10 * time.Millisecond, TimeBits: 38, NodeBits: 10, SequenceBits: 11,
			})
		})
		a.ready(time.Second)
		l, last, nodes := a.seq.Load().Local(), firn.ID(0), map[int64]bool{}
		for range 10 {
			w.service.Expire(a.session())
			for end := time.Now().Add(25 * time.Millisecond); time.Now().Before(end); {
				for range 1001 {
					id, err := l.Next(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					if id <= last {
						t.Fatalf("%d after %d", id, last)
					}
					last = id
				}
			}
			node, _ := a.NodeID()
			nodes[node] = true
		}
		if len(nodes) < 5 {
			t.Errorf("it went through %d node IDs only", len(nodes))
		}
	})
}

// A Local fails as the sequencer does: detached, at the horizon and destroyed; and it goes on when the sequencer does.
func TestLocalOutlivesItsGenerator(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a", onOneNode)
		a.ready(time.Second)
		s := a.seq.Load()
		l := s.Local()
		gives := func() {
			t.Helper()
			for range 1001 { // so that it holds something
				if _, err := l.Next(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		fails := func(want error) {
			t.Helper()
			_, err := l.Next(t.Context())
			_, other := s.Next(t.Context())
			if !errors.Is(err, ErrNotReady) || !errors.Is(err, want) || err.Error() != other.Error() {
				t.Errorf("%v; want %v, as the sequencer: %v", err, want, other)
			}
		}
		gives()
		if err := s.Detach(t.Context()); err != nil {
			t.Fatal(err)
		}
		fails(ErrDetached)
		if err := s.Attach(t.Context()); err != nil {
			t.Fatal(err)
		}
		gives()
		a.client.CutOff(true)
		time.Sleep(2 * window)
		fails(ErrNotReady)
		a.client.CutOff(false)
		a.ready(ttl + 2*window)
		gives()
		if err := a.mem.Load().Destroy(t.Context(), DefaultSequencer); err != nil {
			t.Fatal(err)
		}
		fails(ErrDestroyed)
	})
}
