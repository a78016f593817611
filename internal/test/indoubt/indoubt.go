// Package indoubt tests what a store says of a commit whose connection breaks. It is not for production code.
package indoubt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/proxytest"
	"github.com/firn-id/firn/store"
)

const patience = 30 * time.Second

// Test resets the connection of s, which goes through the proxy, in the middle of commits: before the server gets them,
// and once it has applied them. They are in doubt, and never sent again by themselves: the next transaction under the
// same condition settles them. The store other reaches the same server another way, and sent returns the bytes that a
// value is sent as.
func Test(t *testing.T, proxy *proxytest.Proxy, s, other store.Store, sent func(value string) []byte) {
	t.Helper()
	commit := func(version store.Version, value string) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		_, err := s.Commit(ctx, store.Txn{
			If:   []store.Condition{{Key: "in-doubt", Version: version}},
			Then: []store.Op{store.Put("in-doubt", []byte(value))},
		})
		return err
	}
	if err := commit(0, "first"); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		before, err := other.Get(t.Context(), "in-doubt")
		if err != nil {
			t.Fatal(err)
		}
		value, applied := fmt.Sprint("doubtful", i), i%2 == 1
		var times atomic.Int64
		var returned atomic.Bool
		proxy.Inspect(func(d proxytest.Direction, data []byte) proxytest.Fate {
			switch {
			case d == proxytest.ToServer && bytes.Contains(data, sent(value)) && times.Add(1) == 1 && !applied:
				return proxytest.ResetBefore
			case d == proxytest.ToClient && applied && times.Load() > 0 && !returned.Load():
				// its answer, or what comes before that
				awaitChange(t.Context(), other, before)
				return proxytest.ResetBefore
			default:
				return proxytest.Forward
			}
		})
		if err := commit(before.Version, value); !errors.Is(err, store.ErrAmbiguous) {
			t.Fatalf("Commit that was reset: %v, want ErrAmbiguous", err)
		}
		returned.Store(true)
		settling := commit(before.Version, "settled")
		for end := time.Now().Add(patience); errors.Is(settling, store.ErrUnavailable) ||
			errors.Is(settling, store.ErrAmbiguous); {
			if time.Now().After(end) {
				t.Fatalf("the settling Commit: %v", settling)
			}
			time.Sleep(10 * time.Millisecond)
			settling = commit(before.Version, "settled")
		}
		after, err := other.Get(t.Context(), "in-doubt")
		switch {
		case err != nil:
			t.Fatal(err)
		case applied && (!errors.Is(settling, store.ErrConflict) || string(after.Value) != value):
			t.Errorf("the server applied %q; the settling Commit: %v, want ErrConflict; the key is %q", value,
				settling, after.Value)
		case !applied &&
			(settling != nil && !errors.Is(settling, store.ErrConflict) || string(after.Value) != "settled"):
			t.Errorf("the server never got %q; the settling Commit: %v; the key is %q", value, settling, after.Value)
		}
		proxy.Inspect(nil)
		if n := times.Load(); n != 1 {
			t.Errorf("%q was sent %d times", value, n)
		}
	}
}

// awaitChange waits until a key is no longer what it was; the test fails by itself if it never changes.
func awaitChange(ctx context.Context, s store.Store, was store.KV) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for ctx.Err() == nil {
		if now, err := s.Get(ctx, was.Key); err == nil && now.Version != was.Version {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
