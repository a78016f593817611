package client

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
)

// batches counts what the hook is told.
type batches struct {
	mu              sync.Mutex
	expired, failed int
}

func (b *batches) hook() Option {
	return WithHooks(Hooks{Batch: func(e Batch) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.expired += e.Expired
		if e.Err != nil {
			b.failed++
		}
	}})
}

// seen is what was told so far.
func (b *batches) seen() (expired, failed int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.expired, b.failed
}

// One request serves many calls, and the next one is on its way before the IDs run out.
func TestBatchesAreFetchedAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(map[string]behaviour{"a": gives(10 * time.Millisecond)})
		c := f.of(t, "a", WithPrefetch(100, time.Minute))
		mustNext(t, c)
		began, last := time.Now(), firn.ID(0)
		for i := range 1000 {
			if i%50 == 25 {
				synctest.Wait() // for the refill to be sent
				time.Sleep(20 * time.Millisecond)
				began = began.Add(20 * time.Millisecond)
			}
			id := mustNext(t, c)
			if id <= last {
				t.Fatalf("%d after %d", id, last)
			}
			last = id
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("callers waited for %v", took)
		}
		if n := f.requests("a"); n < 10 || n > 25 {
			t.Errorf("%d requests for 1000 IDs", n)
		}
	})
}

// An ID is handed out when it is as old as it may be, and not when it is older. Its age counts from before its request.
func TestTheAge(t *testing.T) {
	const maxAge, takes = time.Second, 30 * time.Millisecond
	for _, c := range []struct {
		after   time.Duration // the answer came
		expired int
	}{
		{maxAge - takes, 0},
		{maxAge - takes + 1, 99},
		{maxAge, 99},
	} {
		synctest.Test(t, func(t *testing.T) {
			var told batches
			f := newFleet(map[string]behaviour{"a": gives(takes)})
			client := f.of(t, "a", WithPrefetch(99, maxAge), told.hook())
			mustNext(t, client)
			time.Sleep(c.after)
			id := mustNext(t, client)
			f.mu.Lock()
			age := time.Since(f.sent[id])
			f.mu.Unlock()
			if age > maxAge {
				t.Errorf("after %v an ID is handed out that is %v old", c.after, age)
			}
			if expired, _ := told.seen(); expired != c.expired {
				t.Errorf("after %v %d IDs were thrown away, want %d", c.after, expired, c.expired)
			}
		})
	}
}

// A call that takes some from memory and some from a later answer has none that is too old either.
func TestTheAgeOfMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const maxAge = time.Second
		var ages []time.Duration
		f := newFleet(map[string]behaviour{"a": gives(30 * time.Millisecond), "b": gives(70 * time.Millisecond)})
		c := f.of(t, "a b", WithPrefetch(100, maxAge), WithHooks(Hooks{Call: func(c Call) {
			ages = append(ages, c.Age)
		}}))
		for i := range 500 {
			ids := make([]firn.ID, 1+i*7%100)
			if err := c.Fill(within(t, time.Second), ids); err != nil {
				t.Fatal(err)
			}
			now := time.Now()
			if !slices.IsSorted(ids) {
				t.Fatalf("%d IDs are not in order", len(ids))
			}
			oldest := time.Duration(0)
			for _, id := range ids {
				f.mu.Lock()
				oldest = max(oldest, now.Sub(f.sent[id]))
				f.mu.Unlock()
			}
			if oldest > maxAge || ages[i] != oldest {
				t.Fatalf("the oldest is %v old; the hook was told %v", oldest, ages[i])
			}
			time.Sleep(time.Duration(i%40) * 10 * time.Millisecond)
		}
	})
}

// When answers take longer than IDs may be old, none is handed out.
func TestTheAgeIsKeptWhenNodesAreTooSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(map[string]behaviour{"a": gives(100 * time.Millisecond)})
		c := f.of(t, "a", WithPrefetch(10, 99*time.Millisecond))
		if id, err := c.Next(within(t, time.Second)); !errors.Is(err, ErrNoAnswer) {
			t.Errorf("%d, %v", id, err)
		}
	})
}

// Any number of callers that find nothing wait for one request, and each has IDs of its own.
func TestCallersShareAFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(map[string]behaviour{"a": gives(50 * time.Millisecond)})
		c := f.of(t, "a", WithPrefetch(1000, time.Minute))
		var callers sync.WaitGroup
		var mu sync.Mutex
		given := map[firn.ID]bool{}
		for i := range 64 {
			callers.Go(func() {
				ids := make([]firn.ID, 1+i%3)
				if err := c.Fill(t.Context(), ids); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				for _, id := range ids {
					if given[id] {
						t.Errorf("%d was given twice", id)
					}
					given[id] = true
				}
			})
		}
		callers.Wait()
		if n := f.requests("a"); n > 2 {
			t.Errorf("%d requests", n)
		}
	})
}

// Callers that run against expiry, slow nodes and each other get each ID once, none of them too old.
func TestAheadUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const maxAge = 50 * time.Millisecond
		var told batches
		var oldest atomic.Int64
		f := newFleet(map[string]behaviour{
			"a": gives(time.Millisecond), "b": gives(5 * time.Millisecond),
			"c": fails(errReset),
		})
		c := f.of(t, "a b c", WithPrefetch(50, maxAge), told.hook())
		var callers sync.WaitGroup
		var mu sync.Mutex
		given := map[firn.ID]bool{}
		for i := range 20 {
			callers.Go(func() {
				for range 200 {
					ids := make([]firn.ID, 1+i%4)
					err := c.Fill(t.Context(), ids[1:])
					if err == nil {
						ids[0], err = c.Next(t.Context())
					}
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					for _, id := range ids {
						f.mu.Lock()
						oldest.Store(max(oldest.Load(), int64(time.Since(f.sent[id]))))
						f.mu.Unlock()
						if given[id] {
							t.Errorf("%d was given twice", id)
						}
						given[id] = true
					}
					mu.Unlock()
					time.Sleep(time.Duration(i*i) * time.Millisecond)
				}
			})
		}
		callers.Wait()
		if age := time.Duration(oldest.Load()); age > maxAge {
			t.Errorf("one was %v old", age)
		}
		if expired, _ := told.seen(); expired == 0 {
			t.Error("none was thrown away: the test shows nothing")
		}
	})
}

// An error that is final goes to those who wait for the fetch, and not to who comes later.
func TestTheErrorOfAFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(map[string]behaviour{"a": refuses(404, "unknown_sequencer")})
		c := f.of(t, "a", WithPrefetch(10, time.Minute))
		var e *Error
		if _, err := c.Next(t.Context()); !errors.As(err, &e) || e.Status != 404 {
			t.Errorf("%v", err)
		}
		f.set("a", gives(time.Millisecond))
		mustNext(t, c)
	})
}

// A refill that fails is seen by nobody as long as there are IDs, and is not tried all the time.
func TestARefillFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told batches
		f := newFleet(map[string]behaviour{"a": gives(time.Millisecond)})
		c := f.of(t, "a", WithPrefetch(100, time.Minute), told.hook())
		for range 40 {
			mustNext(t, c)
		}
		f.set("a", refuses(429, "rate_limited", "Retry-After", "5"))
		for range 61 {
			mustNext(t, c)
			synctest.Wait()
		}
		if _, failed := told.seen(); failed != 1 {
			t.Errorf("%d fetches failed, want 1", failed)
		}
		if _, err := c.Next(t.Context()); !isLimit(err) {
			t.Errorf("none is left: %v", err)
		}
	})
}

// Who waits for a fetch waits no longer than its own context; the fetch goes on for the others.
func TestACallerGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(map[string]behaviour{"a": gives(100 * time.Millisecond)})
		c := f.of(t, "a", WithPrefetch(10, time.Minute))
		var callers sync.WaitGroup
		callers.Go(func() {
			_, err := c.Next(within(t, 50*time.Millisecond))
			if !errors.Is(err, ErrNoAnswer) || !errors.Is(err, context.DeadlineExceeded) ||
				!strings.Contains(err.Error(), "http://a: no answer yet") {
				t.Errorf("%v", err)
			}
		})
		callers.Go(func() { mustNext(t, c) })
		callers.Wait()
		if n := f.requests("a"); n > mostOut {
			t.Errorf("%d requests", n)
		}
	})
}

// When one gives up who wants much, the next one has at once what there is.
func TestTheFirstInLineGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(map[string]behaviour{"a": gives(time.Millisecond)})
		c := f.of(t, "a", WithPrefetch(10, time.Minute))
		mustNext(t, c)
		f.set("a", hangs)
		if err := c.Fill(t.Context(), make([]firn.ID, 8)); err != nil { // 2 are left
			t.Fatal(err)
		}
		began := time.Now()
		var callers sync.WaitGroup
		callers.Go(func() {
			if err := c.Fill(within(t, 20*time.Millisecond), make([]firn.ID, 3)); !errors.Is(err, ErrNoAnswer) {
				t.Error(err)
			}
		})
		synctest.Wait()
		if err := c.Fill(within(t, time.Minute), make([]firn.ID, 2)); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != 20*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		callers.Wait()
	})
}

// What comes from two nodes, whose clocks differ, is put in order.
func TestOneFillOfTwoBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		behind := func(f *fleet, r *http.Request, n int) (*http.Response, error) {
			f.mu.Lock()
			f.last -= 1 << 30
			f.mu.Unlock()
			return gives(time.Millisecond)(f, r, n)
		}
		f := newFleet(map[string]behaviour{"a": behind})
		c := f.of(t, "a", WithPrefetch(10, time.Minute))
		for range 20 {
			ids := make([]firn.ID, 7)
			if err := c.Fill(t.Context(), ids); err != nil || !slices.IsSorted(ids) {
				t.Fatalf("%v, %v", ids, err)
			}
		}
	})
}

// A call for more than is kept in memory goes to a node.
func TestMoreThanAhead(t *testing.T) {
	f := newFleet(map[string]behaviour{"a": gives(0)})
	c := f.of(t, "a", WithPrefetch(10, time.Minute))
	if err := c.Fill(t.Context(), make([]firn.ID, 11)); err != nil {
		t.Fatal(err)
	}
	if f.paths[0] != "/api/v1/ids?count=11" {
		t.Error(f.paths)
	}
}

// Who takes from memory while Close waits for other calls starts no fetch, which Close might not wait for.
func TestNoFetchBeginsAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(map[string]behaviour{"a": gives(time.Millisecond)})
		c := f.of(t, "a", WithPrefetch(10, time.Minute))
		mustNext(t, c)
		f.set("a", gives(time.Second))
		var others sync.WaitGroup
		others.Go(func() {
			if err := c.Fill(t.Context(), make([]firn.ID, 11)); err != nil { // from the node
				t.Error(err)
			}
		})
		synctest.Wait()
		others.Go(func() { _ = c.Close() })
		synctest.Wait()
		before := f.requests("a")
		for range 9 {
			mustNext(t, c)
		}
		synctest.Wait()
		if n := f.requests("a") - before; n > 0 {
			t.Errorf("%d requests", n)
		}
		others.Wait()
	})
}
