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

	"github.com/firn-id/firn/internal/proxytest"
	"github.com/firn-id/firn/store"
)

const patience = 30 * time.Second

// Test resets the connection of s, which goes through the proxy, in the middle of commits, before and after the server
// gets them. They are in doubt, and never sent again by themselves: the next transaction under the same condition settles
// them. The store other reaches the same server another way, and sent returns the bytes that a value is sent as.
func Test(t *testing.T, proxy *proxytest.Proxy, s, other store.Store, sent func(value string) []byte) {
	t.Helper()
	commit := func(version store.Version, value string) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		_, err := s.Commit(ctx, store.Txn{If: []store.Condition{{Key: "in-doubt", Version: version}}, Then: []store.Op{store.Put("in-doubt", []byte(value))}})
		return err
	}
	if err := commit(0, "first"); err != nil {
		t.Fatal(err)
	}
	applied := 0
	for i := range 10 {
		before, err := other.Get(t.Context(), "in-doubt")
		if err != nil {
			t.Fatal(err)
		}
		value := fmt.Sprint("doubtful", i)
		fate := []proxytest.Fate{proxytest.ResetBefore, proxytest.ResetAfter}[i%2]
		var times atomic.Int64
		proxy.Inspect(func(d proxytest.Direction, data []byte) proxytest.Fate {
			if d == proxytest.ToServer && bytes.Contains(data, sent(value)) && times.Add(1) == 1 {
				return fate
			}
			return proxytest.Forward
		})
		if err := commit(before.Version, value); !errors.Is(err, store.ErrAmbiguous) {
			t.Fatalf("Commit that was reset: %v, want ErrAmbiguous", err)
		}
		settling := commit(before.Version, "settled")
		for end := time.Now().Add(patience); errors.Is(settling, store.ErrUnavailable) || errors.Is(settling, store.ErrAmbiguous); {
			if time.Now().After(end) {
				t.Fatalf("the settling Commit: %v", settling)
			}
			time.Sleep(10 * time.Millisecond)
			settling = commit(before.Version, "settled")
		}
		if settling != nil && !errors.Is(settling, store.ErrConflict) {
			t.Errorf("the settling Commit: %v, want nil or ErrConflict", settling)
		}
		after, err := other.Get(t.Context(), "in-doubt")
		switch {
		case err != nil:
			t.Fatal(err)
		case string(after.Value) == value && fate == proxytest.ResetAfter:
			applied++
		case string(after.Value) != "settled" || after.Version == before.Version:
			t.Errorf("after the settling Commit, %v, the key is %q", settling, after.Value)
		}
		proxy.Inspect(nil)
		if n := times.Load(); n != 1 {
			t.Errorf("%q was sent %d times", value, n)
		}
	}
	if applied == 0 {
		t.Error("the server has applied no commit that it got: the test shows half of what it is for")
	}
}
