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
	if err := commit(t, s, 0, "first"); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		before, err := other.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		value := fmt.Sprint("doubtful", i)
		d := doubt{ctx: t.Context(), other: other, before: before, sent: sent(value), applied: i%2 == 1}
		proxy.Inspect(d.fate)
		if err := commit(t, s, before.Version, value); !errors.Is(err, store.ErrAmbiguous) {
			t.Fatalf("Commit that was reset: %v, want ErrAmbiguous", err)
		}
		d.returned.Store(true)
		settling := settle(t, s, before.Version)
		after, err := other.Get(t.Context(), key)
		switch {
		case err != nil:
			t.Fatal(err)
		case d.applied && (!errors.Is(settling, store.ErrConflict) || string(after.Value) != value):
			t.Errorf("the server applied %q; the settling Commit: %v, want ErrConflict; the key is %q", value,
				settling, after.Value)
		case !d.applied &&
			(settling != nil && !errors.Is(settling, store.ErrConflict) || string(after.Value) != settled):
			t.Errorf("the server never got %q; the settling Commit: %v; the key is %q", value, settling, after.Value)
		}
		proxy.Inspect(nil)
		if n := d.times.Load(); n != 1 {
			t.Errorf("%q was sent %d times", value, n)
		}
	}
}

const (
	key     = "in-doubt"
	settled = "settled" // its value after that
)

// commit puts a value if the key has a version.
func commit(t *testing.T, s store.Store, version store.Version, value string) error {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := s.Commit(ctx,
		store.Txn{If: []store.Condition{{Key: key, Version: version}}, Then: []store.Op{store.Put(key, []byte(value))}})
	return err
}

// settle commits under the condition of a commit in doubt, until the store answers.
func settle(t *testing.T, s store.Store, version store.Version) error {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		err := commit(t, s, version, settled)
		if !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrAmbiguous) {
			return err
		}
		if time.Now().After(end) {
			t.Fatalf("the settling Commit: %v", err)
		}
	}
}

// A doubt is a commit that gets no answer.
type doubt struct {
	ctx      context.Context
	other    store.Store
	before   store.KV // the key before the commit
	sent     []byte   // what the commit has in it
	applied  bool     // its connection is reset once the server has applied it, else before the server gets it
	times    atomic.Int64
	returned atomic.Bool
}

func (d *doubt) fate(direction proxytest.Direction, data []byte) proxytest.Fate {
	switch {
	case direction == proxytest.ToServer && bytes.Contains(data, d.sent) && d.times.Add(1) == 1 && !d.applied:
		return proxytest.ResetBefore
	case direction == proxytest.ToClient && d.applied && d.times.Load() > 0 && !d.returned.Load():
		// its answer, or what comes before that
		awaitChange(d.ctx, d.other, d.before)
		return proxytest.ResetBefore
	default:
		return proxytest.Forward
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
