package calls_test

import (
	"errors"
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/store/memstore"
)

// begun is the default layout with an epoch before the time in a bubble.
func begun() cluster.Definition {
	l := firn.Default
	l.Epoch = time.Now().Add(-time.Hour)
	return cluster.Define(l)
}

// Given counts IDs by sequencer, over all calls; it does not count IDs that no caller got.
func TestGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := memstore.NewService().Client("a")
		defer client.Close()
		m, err := peer.Join(t.Context(), client, peer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Leave()
		_, err = m.EnsureSequencer(t.Context(), name, begun())
		if err == nil {
			_, err = m.Create(t.Context(), "orders", begun())
		}
		if err != nil {
			t.Fatal(err)
		}
		s := calls.New(m, calls.Options{})
		want := func(want map[string]uint64) {
			t.Helper()
			if have := s.Given(); !maps.Equal(have, want) {
				t.Errorf("given were %v, want %v", have, want)
			}
		}
		want(map[string]uint64{name: 0})
		who := anyone(t)
		broken := errors.New("the caller went away")
		for _, err := range []error{
			third(s.Next(t.Context(), who, name)),
			s.Many(t.Context(), who, "", name, 10, func(*calls.Batch) error { return nil }),
			s.Many(t.Context(), who, "", name, 100, func(*calls.Batch) error { return nil }),
			third(s.Next(t.Context(), who, "orders")),
		} {
			if err != nil {
				t.Error(err)
			}
		}
		if err := s.Many(t.Context(), who, "", "orders", 20, func(*calls.Batch) error {
			return broken
		}); !errors.Is(err, broken) {
			t.Error(err)
		}
		if third(s.Next(t.Context(), who, "nobody")) == nil {
			t.Error("IDs were given that there are not")
		}
		want(map[string]uint64{name: 111, "orders": 21})
		trusted, err := (&auth.Policy{Trusted: true}).Admit("")
		if err == nil {
			_, err = s.Destroy(t.Context(), trusted, "orders")
		}
		if err != nil {
			t.Error(err)
		}
		want(map[string]uint64{name: 111})
	})
}

func third[T, U any](_ T, _ U, err error) error { return err }

func second[T any](_ T, err error) error { return err }
