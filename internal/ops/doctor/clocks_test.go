package doctor

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/internal/core/clocks"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// The clock of a machine is compared with what other members wrote, but not with the node of the machine itself. What
// is too old to tell is waited for.
func TestSeeClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.NewService().Client("doctor")
		defer s.Close()
		write := func(id string, off, ago time.Duration, vitals peer.Vitals) {
			t.Helper()
			value, err := json.Marshal(peer.Pulse{
				Owner: "host of " + id, Clock: time.Now().Add(off - ago),
				Every: 10 * time.Second, Vitals: vitals,
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put(pulses+id, value)}}); err != nil {
				t.Fatal(err)
			}
		}
		see := func(kind clocks.Kind, with, against int) {
			t.Helper()
			began := time.Now()
			v, _, err := seeClocks(t.Context(), s, "own")
			if err != nil || v.Kind != kind || v.With != with || v.Against != against {
				t.Errorf("after %v it sees %+v, %v; want %v, with %d and against %d", time.Since(began), v, err,
					kind, with, against)
			}
		}
		see(clocks.Alone, 0, 0)
		write("own", 0, 0, peer.Vitals{})
		write("a", 0, 7*time.Second, peer.Vitals{})
		see(clocks.Agreed, 1, 0)
		write("b", time.Hour, 0, peer.Vitals{Verdict: "ahead", Offset: time.Hour, Against: 2, Others: 2})
		see(clocks.Agreed, 1, 1)
		write("a", time.Hour, 0, peer.Vitals{})
		see(clocks.Behind, 0, 2)

		write("a", -5*time.Second, 0, peer.Vitals{}) // or a right one, 5 s ago; or an earlier one
		write("b", -5*time.Second, 0, peer.Vitals{})
		write("own", time.Hour, 0, peer.Vitals{})
		see(clocks.Agreed, 2, 0)
		write("a", 5*time.Second, 0, peer.Vitals{})
		write("b", 5*time.Second, 0, peer.Vitals{})
		see(clocks.Unclear, 0, 0) // within 5 s and 16 s
		write("a", 5*time.Second, 0, peer.Vitals{})
		write("b", 5*time.Second, 0, peer.Vitals{})
		go func() {
			time.Sleep(3 * time.Second)
			write("a", 9*time.Second, 0, peer.Vitals{})
		}()
		see(clocks.Agreed, 1, 0)

		none, cancel := context.WithCancel(t.Context())
		cancel()
		if v, _, err := seeClocks(none, s, ""); err == nil {
			t.Errorf("without a store it sees %+v", v)
		}
	})
}
