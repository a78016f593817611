package calls_test

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/test/servertest"
)

// The last hour has a value for each minute, or null, for the cluster and each process.
func TestHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(30 * time.Second)
		minute := time.Now().Truncate(time.Minute).UTC()
		f := servertest.Tell(t, "a")
		s := calls.New(f.Member, calls.Options{})
		who, err := (&auth.Policy{Trusted: true}).Admit("")
		if err != nil {
			t.Fatal(err)
		}
		expect := func(what, want string) {
			t.Helper()
			h, err := s.History(t.Context(), who)
			h.At = minute
			have, errJSON := json.Marshal(h)
			if err != nil || errJSON != nil || string(have) != want {
				t.Errorf("%s: %s, %v, want %s", what, have, err, want)
			}
		}
		expect("none",
			`{"at":"2000-01-01T00:00:00Z","minutes":[],"cluster":{"members":[],"ready":[],"rate":[]},"nodes":[]}`)
		a, b := peer.NodeMinute{Owner: "a", Rate: 1.5, Ready: true, Offset: -time.Millisecond},
			peer.NodeMinute{Owner: "b"}
		f.SetHistory([]peer.Minute{
			{At: minute.Add(-59 * time.Minute), Members: 9},
			{At: minute.Add(-time.Minute), Members: 2, Ready: 1, Rate: 1.5, Nodes: []peer.NodeMinute{a, b}},
			{At: minute.Add(time.Minute), Members: 1, Ready: 1, Rate: 1.5, Nodes: []peer.NodeMinute{a}},
		})
		h, err := s.History(t.Context(), who)
		if n := len(h.Minutes); err != nil || n != 60 || !h.Minutes[59].Equal(minute.Add(time.Minute)) ||
			h.Cluster.Members[0] != nil {
			t.Errorf("with an older one: %d minutes, %v", n, err)
		}
		f.SetHistory([]peer.Minute{
			{At: minute.Add(-time.Minute), Members: 2, Ready: 1, Rate: 1.5, Nodes: []peer.NodeMinute{a, b}},
			{At: minute.Add(time.Minute), Members: 1, Ready: 1, Rate: 1.5, Nodes: []peer.NodeMinute{a}},
		})
		expect("two",
			`{"at":"2000-01-01T00:00:00Z","minutes":["1999-12-31T23:59:00Z","2000-01-01T00:00:00Z",`+
				`"2000-01-01T00:01:00Z"],`+
				`"cluster":{"members":[2,null,1],"ready":[1,null,1],"rate":[1.5,null,1.5]},"nodes":[`+
				`{"owner":"a","rate":[1.5,null,1.5],"ready":[true,null,true],"offset_ns":[-1000000,null,-1000000]},`+
				`{"owner":"b","rate":[0,null,null],"ready":[false,null,null],"offset_ns":[0,null,null]}]}`)
	})
}
