package etcdembed

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn/store"
)

// TestManyCallsAtOnce: thousands of calls share the connection to the server, and each of them is answered.
func TestManyCallsAtOnce(t *testing.T) {
	s, err := Open(Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const callers, calls = 2000, 20
	value := make([]byte, 500)
	var all sync.WaitGroup
	var failed atomic.Int64
	for i := range callers {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			key := fmt.Sprint("key", i)
			for range calls {
				_, err := s.Commit(ctx, store.Txn{Then: []store.Op{store.Put(key, value)}})
				if err == nil {
					_, err = s.Get(ctx, key)
				}
				if err != nil && failed.Add(1) == 1 {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if n := failed.Load(); n > 0 {
		t.Errorf("%d of %d failed", n, callers*calls)
	}
}
