package client

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A node that was stopped costs one caller the patience of its first call, and the next ones nothing.
func TestAStoppedNodeIsHedgedAndAvoided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls []Call
		f := newFleet(map[string]behaviour{"a": gives(time.Millisecond), "b": gives(time.Millisecond)})
		c := f.of(t, "a b", WithHooks(Hooks{Call: func(c Call) { calls = append(calls, c) }}))
		for range 100 {
			mustNext(t, c)
		}
		if a, b := f.requests("a"), f.requests("b"); a != 50 || b != 50 {
			t.Errorf("%d and %d requests, want as many for each", a, b)
		}
		f.set("b", hangs)
		calls = nil
		for range 1000 {
			mustNext(t, c)
		}
		for i, call := range calls {
			if call.Duration > shortestPatience+2*time.Millisecond || i > 0 && call.Duration > time.Millisecond {
				t.Errorf("call %d took %v", i, call.Duration)
			}
		}
		if b := f.requests("b") - 50; b < 3 || b > 6 { // one after 100 ms or less, 200, 400, and it is over after 1 s
			t.Errorf("the stopped node had %d requests in 1 s", b)
		}
		f.set("b", gives(time.Millisecond))
		time.Sleep(avoidance.Max)
		mustNext(t, c)
		synctest.Wait()
		before := f.requests("b")
		for range 10 {
			mustNext(t, c)
		}
		if b := f.requests("b") - before; b != 5 {
			t.Errorf("it is back, and had %d of 10 requests", b)
		}
	})
}

// A node that is much slower than the others is avoided, though it gives IDs in the end; and it is found out though
// callers cancel their contexts when they have an ID.
func TestASlowNodeIsAvoided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		late, canceled := 0, 0
		f := newFleet(map[string]behaviour{"a": gives(time.Millisecond), "b": gives(200 * time.Millisecond)})
		c := f.of(t, "a b", WithHooks(Hooks{Attempt: func(a Attempt) {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case isCanceled(a.Err):
				canceled++
			case a.Duration == 200*time.Millisecond:
				late++
			}
		}}))
		for range 2000 {
			ctx, cancel := context.WithCancel(t.Context())
			if _, err := c.Next(ctx); err != nil {
				t.Error(err)
			}
			cancel()
			time.Sleep(9 * time.Millisecond)
		}
		if n := f.requests("b"); n < 5 || n > 15 {
			t.Errorf("%d requests to the slow node in 20 s", n)
		}
		_ = c.Close()
		if late < 5 || canceled > 1 {
			t.Errorf("%d requests to it ended, %d were canceled", late, canceled)
		}
	})
}

// A slow first request goes on, and its answer counts if it comes first.
func TestTheFirstRequestGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var attempts []Attempt
		f := newFleet(map[string]behaviour{"a": hangs, "b": gives(300 * time.Millisecond)})
		c := f.of(t, "a b", WithHooks(Hooks{Attempt: func(a Attempt) {
			mu.Lock()
			defer mu.Unlock()
			attempts = append(attempts, a)
		}}))
		began := time.Now()
		mustNext(t, c)
		if took := time.Since(began); took != 300*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		_ = c.Close()
		if len(attempts) < 2 || attempts[0].Node != "http://b" || attempts[0].Hedged || attempts[0].Err != nil ||
			!attempts[1].Hedged || !isCanceled(attempts[1].Err) {
			t.Errorf("%+v", attempts)
		}
	})
}

// However little time there is, half of it is left for another node.
func TestATightDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(map[string]behaviour{"a": gives(time.Millisecond), "b": hangs})
		if _, err := f.of(t, "a b").Next(within(t, 30*time.Millisecond)); err != nil {
			t.Error(err)
		}
	})
}

// While one node does not answer, another one that failed is asked again rather than the silent one a second time.
func TestTheSilentOneIsAskedLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(map[string]behaviour{"a": fails(errReset), "b": hangs})
		time.AfterFunc(firstPatience+backoff.First/4, func() { f.set("a", gives(time.Millisecond)) })
		mustNext(t, f.of(t, "a b"))
		if n := f.requests("b"); n != 1 {
			t.Errorf("%d requests to the silent node", n)
		}
	})
}

func TestPatience(t *testing.T) {
	for _, c := range []struct {
		name     string
		a, b     time.Duration // answers take, in turn
		from, to time.Duration
	}{
		{"steady", 20 * time.Millisecond, 20 * time.Millisecond, 20 * time.Millisecond, 21 * time.Millisecond},
		{"unsteady", 20 * time.Millisecond, 60 * time.Millisecond, 100 * time.Millisecond, 150 * time.Millisecond},
		{"quick", time.Millisecond, time.Microsecond, shortestPatience, shortestPatience},
		{"slow", time.Second, 2 * time.Second, longestPatience, longestPatience},
	} {
		var p pace
		for range 50 {
			p.add(c.a)
			p.add(c.b)
		}
		if d := p.patience(1); d < c.from || d > c.to {
			t.Errorf("%s: %v, want %v to %v", c.name, d, c.from, c.to)
		}
	}
	if d := new(pace).patience(maxCount); d != 600*time.Millisecond {
		t.Errorf("nothing is known of 100000 IDs: %v", d)
	}
	for n, want := range map[int]int{1: 0, 2: 1, 3: 2, 4: 2, 5: 3, maxCount: paces - 1} {
		if class(n) != want {
			t.Errorf("the class of %d is %d", n, class(n))
		}
	}
}

// A node that fails is asked less and less often, by requests that hold nobody up, and taken back when it gives IDs.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(map[string]behaviour{
			"a": gives(time.Millisecond), "b": fails(errReset),
			"c": gives(time.Millisecond),
		})
		calls := 0
		c := f.of(t, "a b c", WithHooks(Hooks{Call: func(Call) { calls++ }}))
		count := func(d time.Duration) int {
			before := f.requests("b")
			for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(9 * time.Millisecond) {
				mustNext(t, c)
			}
			return f.requests("b") - before
		}
		if n := count(time.Second); n < 3 || n > 6 {
			t.Errorf("%d requests in the first second", n)
		}
		count(20 * time.Second)
		if n := count(time.Minute); n < 12 || n > 24 { // every 2.5 to 5 s
			t.Errorf("%d requests a minute in the long run", n)
		}
		if n := f.requests("a") + f.requests("c"); n != calls {
			t.Errorf("%d requests to the nodes that work for %d calls", n, calls)
		}
		f.set("b", gives(time.Millisecond))
		count(avoidance.Max)
		if n := count(time.Second); n < 30 {
			t.Errorf("it is back, and has %d of 100 requests", n)
		}
	})
}

// A node that says Retry-After is left alone for as long.
func TestRetryAfterOfANode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(map[string]behaviour{
			"a": gives(time.Millisecond),
			"b": refuses(503, "not_ready", "Retry-After", "3"),
		})
		c := f.of(t, "a b")
		for began := time.Now(); time.Since(began) < 3*time.Second; {
			mustNext(t, c)
		}
		if n := f.requests("b"); n != 1 {
			t.Errorf("%d requests", n)
		}
	})
}

// A node that closes its connections is about to stop: what it gives is taken, and others are asked from then on.
func TestANodeThatCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(map[string]behaviour{
			"a": gives(time.Millisecond),
			"b": func(f *fleet, r *http.Request, n int) (*http.Response, error) {
				answer, err := gives(time.Millisecond)(f, r, n)
				answer.Close = true
				return answer, err
			},
		})
		c := f.of(t, "a b")
		for range 500 {
			mustNext(t, c)
		}
		if a, b := f.requests("a"), f.requests("b"); a != 499 || b != 1 {
			t.Errorf("%d and %d requests", a, b)
		}
	})
}

// What is wrong with one sequencer on a node says nothing of another.
func TestEverySequencerHasItsOwnNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(map[string]behaviour{
			"a": gives(time.Millisecond),
			"b": func(f *fleet, r *http.Request, n int) (*http.Response, error) {
				if r.URL.Path == "/api/v1/sequencers/orders/id" {
					return refuses(503, "waiting")(f, r, n)
				}
				return gives(time.Millisecond)(f, r, n)
			},
		})
		c := f.of(t, "a b")
		if _, err := c.Sequencer("orders").Next(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := f.requests("b")
		for range 10 {
			mustNext(t, c)
		}
		if n := f.requests("b") - before; n != 5 {
			t.Errorf("%d of 10 requests", n)
		}
	})
}

// When all nodes are slow nobody is avoided, and not every call is sent to all of them.
func TestAllNodesAreSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(map[string]behaviour{
			"a": gives(400 * time.Millisecond), "b": gives(400 * time.Millisecond),
			"c": gives(400 * time.Millisecond),
		})
		c := f.of(t, "a b c")
		for range 100 {
			mustNext(t, c)
		}
		if n := f.requests("a") + f.requests("b") + f.requests("c"); n > 110 {
			t.Errorf("%d requests for 100 calls", n)
		}
	})
}

func TestTheLoadIsSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(map[string]behaviour{
			"a": gives(time.Millisecond), "b": gives(time.Millisecond),
			"c": gives(4 * time.Millisecond),
		})
		c := f.of(t, "a b c")
		var callers sync.WaitGroup
		for range 30 {
			callers.Go(func() {
				for range 100 {
					if _, err := c.Next(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		callers.Wait()
		a, b, slow := f.requests("a"), f.requests("b"), f.requests("c")
		if a < 1100 || b < 1100 || slow < 200 {
			t.Errorf("%d, %d and, to the node that is four times as slow, %d requests", a, b, slow)
		}
	})
}
