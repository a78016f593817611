package doctor

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// Without a node here, what is wrong with the cluster follows from the log and the pulses, in the words of
// calls.Problems: also where this machine's clock is wrong, by which no pulse is overdue then.
func TestStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.NewService().Client("doctor")
		defer s.Close()
		c := Config{Layout: firn.Default, Window: 30 * time.Second}
		see := func(want ...string) {
			t.Helper()
			d := c.seeStored(t.Context(), s, "")
			if d == nil {
				t.Fatal("the store does not answer")
			}
			var have []string
			for _, f := range (Seen{Now: time.Now(), Layout: Layout{Until: firn.Default.Lifetime()}, Stored: d}).
				cluster() {
				have = append(have, string(f.Level)+" "+f.About+": "+f.Found)
			}
			if fmt.Sprint(have) != fmt.Sprint(want) {
				t.Errorf("found %s\nwant %s", strings.Join(have, "\n"), strings.Join(want, "\n"))
			}
		}
		write := func(id string, off time.Duration, vitals peer.Vitals) {
			t.Helper()
			value, err := json.Marshal(peer.Pulse{
				Owner: "ids-" + id, Clock: time.Now().Add(off),
				Every: 10 * time.Second, Vitals: vitals,
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put(pulses+id, value)}}); err != nil {
				t.Fatal(err)
			}
		}
		see()
		for i, command := range []cluster.Command{
			cluster.PrepareJoin{Joiner: "a"},
			cluster.PrepareJoin{Joiner: "b"},
			cluster.NotifyWatchers{Joiner: "b"},
			cluster.AcceptJoin{Joiner: "b"},
			cluster.CreateSequencer{Sequencer: "default", Definition: cluster.Define(firn.Default)},
			cluster.Attach{Sequencer: "default", Member: "a"},
		} {
			data, err := cluster.Encode(command, time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Append(t.Context(), fmt.Sprint(i), data); err != nil {
				t.Fatal(err)
			}
		}
		write("a", 0, peer.Vitals{Ready: true, Version: "v1"})
		const ids = "ok node IDs: 1023 of 1024 are free in the default sequencer"
		see("ok members: 1 alive", ids,
			"warn cluster: member b is gone: its pulse has ended, and it is still in the cluster")
		write("b", 0, peer.Vitals{Ready: true, Version: "v1"})
		see("ok members: 2 alive", ids)
		write("b", 0, peer.Vitals{Ready: true, Version: "v2"})
		see("ok members: 2 alive", ids, "warn cluster: An upgrade is not finished: ids-a runs v1; ids-b runs v2")
		write("a", -time.Hour, peer.Vitals{Ready: true})
		write("b", -time.Hour, peer.Vitals{Ready: true})
		see("ok members: 2 alive", ids)
		counter, err := cluster.Encode(cluster.CreateSequencer{
			Sequencer: "invoices", Definition: cluster.Definition{Kind: cluster.Counter},
		}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Append(t.Context(), "counter", counter); err != nil {
			t.Fatal(err)
		}
		see("ok members: 2 alive", ids)
		reserve, err := cluster.Encode(cluster.Reserve{Sequencer: "default", Reserving: cluster.Reserving{
			For: "imports", At: time.Now().Add(-2 * time.Hour).UnixMilli(), Nodes: []int64{900},
		}}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Append(t.Context(), "reserve", reserve); err != nil {
			t.Fatal(err)
		}
		see("ok members: 2 alive", "ok node IDs: 1022 of 1023 are free in the default sequencer",
			`warn cluster: Node ID 900 of default must not be used yet: it is reserved for "imports", and its fence `+
				"is not written")
		if _, err := s.Append(t.Context(), "unreadable", []byte("{}")); err != nil {
			t.Fatal(err)
		}
		see()
	})
}
