package calls_test

import (
	"testing"
	"time"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/store"
)

// A reservation whose fences are missing is a problem once its Reserve can't be under way any more, as long as the log
// has it.
func TestReservationsWithoutFences(t *testing.T) {
	admin, err := (&auth.Policy{Trusted: true}).Admit("")
	if err != nil {
		t.Fatal(err)
	}
	m := ordering(t)
	s := calls.New(m.Member, calls.Options{})
	told := func(want ...string) {
		t.Helper()
		status, err := s.Status(t.Context(), admin)
		if err != nil {
			t.Fatal(err)
		}
		var have []string
		for _, p := range status.Problems {
			if p.Kind == calls.NodeIDsProblem {
				have = append(have, p.What(status.At)+". "+p.Do)
			}
		}
		if len(have) != len(want) {
			t.Fatalf("problems are %q, want %q", have, want)
		}
		for i := range want {
			if have[i] != want[i] {
				t.Errorf("the problem is %q, want %q", have[i], want[i])
			}
		}
	}
	reserve := func(purpose string, ago time.Duration, nodes ...int64) *cluster.Reservation {
		t.Helper()
		m.Apply(cluster.Reserve{Sequencer: "orders", Reserving: cluster.Reserving{
			For: purpose, At: time.Now().Add(-ago).UnixMilli(), Nodes: nodes,
		}})
		q, _ := m.Value().Sequencer("orders")
		return q.Reservation(purpose)
	}
	fence := func(node string) {
		m.Put("sequencers/orders/workers/last_reported_time/"+node, "253402300799999 reserved-9@0 x")
	}
	told()
	reserve("imports", 0, 9)
	told() // a Reserve may be under way
	const (
		one = `Node ID 14 of orders must not be used yet: it is reserved for "bob's", and its fence is not written. ` +
			`Reserve again: firn sequencer reserve orders --count 2 --for 'bob'\''s'`
		two = `Node IDs 5 and 6 of orders must not be used yet: they are reserved for "later", and their fences are ` +
			`not written. Reserve again: firn sequencer reserve orders --count 2 --for 'later'`
	)
	fence("15")
	bobs := reserve("bob's", time.Hour, 14, 15)
	told(one)
	reserve(cluster.Later, time.Minute, 5, 6)
	told(one, two)
	fence("14")
	told(two)
	fence("5")
	fence("6")
	told()
	m.Fail(store.ErrUnavailable)
	told()
	m.Fail(nil)
	m.Apply(cluster.Release{Sequencer: "orders", For: "bob's", Since: bobs.Since})
	m.Put("sequencers/orders/workers/last_reported_time/14", "1795300000000 op x")
	reserve("bob's", time.Hour, 14, 15)
	told(one)
}
