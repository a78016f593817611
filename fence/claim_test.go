package fence

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

func TestClaimKeepsToItsRange(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a := p.party("a")
		got := map[int64]bool{}
		for range 32 {
			got[a.mustClaim(32, 63).Node()] = true
		}
		for node := int64(32); node < 64; node++ {
			if !got[node] {
				t.Errorf("node ID %d was not claimed", node)
			}
		}
		_, err := a.claim(32, 63)
		wantError[*NoNodeError](t, err, "all 32 of them, 32 to 63", "at capacity")
		_, err = a.claim(40, 40)
		wantError[*NoNodeError](t, err, "node ID 40 is held")
		for _, r := range [][2]int64{{-1, 3}, {3, 2}} {
			if _, err := a.claim(r[0], r[1]); err == nil {
				t.Errorf("claiming from %v: no error", r)
			}
		}
	})
}

// What was never used comes before what was; and of that, the older half before the younger.
func TestClaimTakesTheLeastRecentlyUsed(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a := p.party("a")
		var order []int64
		for range 16 {
			f := a.mustClaim(0, 15)
			order = append(order, f.Node())
			time.Sleep(time.Second)
			if err := f.Release(t.Context(), time.Now); err != nil {
				t.Fatal(err)
			}
		}
		seen := map[int64]int{}
		for i, node := range order {
			if seen[node]++; seen[node] > 1 {
				t.Fatalf("node ID %d was taken twice among the first 16; the %dth time there was one never used", node, i+1)
			}
		}
		for range 20 {
			f := a.mustClaim(0, 15)
			for i, node := range order {
				if node == f.Node() {
					if i >= 8 {
						t.Errorf("took the %dth oldest of 16", i+1)
					}
					order = append(append(order[:i:i], order[i+1:]...), node)
					break
				}
			}
			if err := f.Release(t.Context(), time.Now); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A floor that lies ahead is waited for if nothing else is free, but not for too long.
func TestClaimPrefersFloorsThatArePast(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		fast, b := p.party("fast"), p.party("b")
		fast.off = 50 * time.Second
		f := fast.mustClaim(0, 0) // horizon: in 80 s
		g := b.mustClaim(1, 1)
		release(t, f, f.Horizon())
		release(t, g, time.Now())
		for range 5 {
			h := b.mustClaim(0, 1)
			if h.Node() != 1 {
				t.Errorf("claimed node ID %d, whose floor is %v ahead", h.Node(), time.Until(h.Floor()))
			}
			release(t, h, time.Now())
		}
		_, err := b.claim(0, 0)
		wantError[*ClockBehindError](t, err, "1m20s or more behind", "node ID 0", "up to 1m0s")
		time.Sleep(30 * time.Second)
		h := b.mustClaim(0, 0)
		wantTime(t, "the floor", h.Floor(), f.Horizon())
		wantTime(t, "the horizon", h.Horizon(), f.Horizon().Add(window))
	})
}

func release(t *testing.T, f *Fence, end time.Time) {
	t.Helper()
	if err := f.Release(t.Context(), func() time.Time { return end }); err != nil {
		t.Fatal(err)
	}
}

// A clock that is ahead of what the living owners have written is refused.
func TestClaimRefusesAClockThatIsAhead(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		wrong := p.party("wrong")
		wrong.off = time.Hour
		alone := wrong.mustClaim(0, 9)
		release(t, alone, time.Now())

		for range 3 {
			p.party("right").mustClaim(10, 19)
		}
		_, err := wrong.claim(20, 29)
		wantError[*ClockAheadError](t, err, "59m30s ahead", "the living owners (3)", "up to 10s")
		all, _ := wrong.client.List(t.Context(), prefix)
		if len(all) != 1+3*2 {
			t.Errorf("it has written something: %d keys", len(all))
		}

		wrong.off = window + 10*time.Second
		wrong.mustClaim(20, 29)
	})
}

// One living owner with a wrong clock does not keep the others out, nor does an own older fence count.
func TestTheMedianDecidesAboutClocks(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		late := p.party("late")
		late.off = -time.Hour
		own := late.mustClaim(0, 0)
		right := p.party("right")
		_, err := right.claim(1, 9)
		wantError[*ClockAheadError](t, err, "the living owners (1)")

		late.off = 0
		late.config.Before = own
		late.mustClaim(1, 1)
		_, err = right.claim(2, 9)
		wantError[*ClockAheadError](t, err, "the living owners (2)") // of two, the one that is behind counts
		late.mustClaim(2, 2)
		right.mustClaim(3, 3)
	})
}

// A thousand nodes that start at once all get a node ID, with less than two transactions each in
// vain.
func TestAThousandStartAtOnce(t *testing.T) {
	for _, used := range []bool{false, true} {
		inBubble(t, func(t *testing.T, p *place) {
			if used {
				a := p.party("before")
				for node := range int64(1024) {
					release(t, a.mustClaim(node, node), time.Now())
				}
				time.Sleep(time.Second)
			}
			parties := make([]*party, 1000)
			for i := range parties {
				parties[i] = p.party("one of many")
			}
			var commits atomic.Int64
			p.service.Inject(func(c memstore.Call) memstore.Fault {
				if c.Op == memstore.Commit {
					commits.Add(1)
				}
				return memstore.Fault{Delay: time.Millisecond}
			})
			var mu sync.Mutex
			got := map[int64]int{}
			var all sync.WaitGroup
			for _, q := range parties {
				all.Go(func() {
					f, err := q.claim(0, 1023)
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					defer mu.Unlock()
					got[f.Node()]++
				})
			}
			all.Wait()
			if len(got) != 1000 {
				t.Errorf("1000 nodes got %d node IDs", len(got))
			}
			if n := commits.Load() - 1000; n >= 2000 {
				t.Errorf("used before: %v: %d transactions in vain", used, n)
			} else {
				t.Logf("used before: %v: %d transactions in vain", used, n)
			}
		})
	}
}

func TestAStoreThatRefusesEndsTheClaim(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a := p.party("a")
		a.client.Close()
		if _, err := a.claim(0, 9); !errors.Is(err, store.ErrRefused) {
			t.Errorf("got %v", err)
		}
	})
}
