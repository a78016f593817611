package calls

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
)

// asked is an issuer that records the calls of Fill. It issues IDs from 1 on.
type asked struct {
	layout firn.Layout

	mu    sync.Mutex // guards what follows
	fills []int
	now   int // current calls of Fill for more than few IDs
	next  firn.ID
}

func (a *asked) Ready() error                   { return nil }
func (a *asked) Definition() cluster.Definition { return cluster.Define(a.layout) }

func (a *asked) Next(ctx context.Context) (firn.ID, error) {
	ids := make([]firn.ID, 1)
	return ids[0], a.FillAfter(ctx, 0, 0, ids)
}

func (a *asked) FillAfter(ctx context.Context, _ firn.ID, _ time.Duration, ids []firn.ID) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fills = append(a.fills, len(ids))
	if len(ids) > few {
		a.now++
		defer func() { a.now-- }()
		if a.now > turnsAtOnce {
			return fmt.Errorf("%d at a time ask for many IDs", a.now)
		}
		a.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(len(ids)) * time.Nanosecond):
		}
		a.mu.Lock()
	}
	for i := range ids {
		a.next++
		ids[i] = a.next
	}
	return ctx.Err()
}

func anyone(t *testing.T) *auth.Caller {
	t.Helper()
	who, err := new(auth.Policy).Admit("")
	if err != nil {
		t.Fatal(err)
	}
	return who
}

func none(*Batch) error { return nil }

// following gives the IDs that follow the one that they are to exceed.
type following struct{ asked }

func (*following) FillAfter(_ context.Context, after firn.ID, _ time.Duration, ids []firn.ID) error {
	for i := range ids {
		ids[i] = after + firn.ID(i) + 1
	}
	return nil
}

// The IDs of an answer exceed the one that it follows, and ascend, whichever node IDs its pieces are of.
func TestManyAfter(t *testing.T) {
	m := &following{asked{layout: firn.Default}}
	s, who := New(nil, Options{Default: m}), anyone(t)
	for _, count := range []int{1, few, few + 1, 3 * piece} {
		next := firn.ID(1000)
		err := s.ManyAfter(t.Context(), who, "10.0.0.1:1", peer.DefaultSequencer, next-1, count, func(b *Batch) error {
			for ids := range b.All() {
				for _, id := range ids {
					if id != next {
						t.Fatalf("of %d IDs, %d instead of %d", count, id, next)
					}
					next++
				}
			}
			return nil
		})
		if err != nil || next != firn.ID(1000+count) {
			t.Errorf("%d IDs up to %d: %v", count, next, err)
		}
	}
}

// While large calls make IDs one after the other, a small call waits for none of them.
func TestFewIDsDoNotWaitForMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &asked{layout: firn.Default}
		s, who := New(nil, Options{Default: m}), anyone(t)
		var large sync.WaitGroup
		for i := range 20 {
			large.Go(func() {
				if err := s.Many(t.Context(), who, fmt.Sprintf("10.0.0.%d:1", i%3), peer.DefaultSequencer, MaxCount,
					none); err != nil {
					t.Error(err)
				}
			})
		}
		done := make(chan struct{})
		go func() { large.Wait(); close(done) }()
		calls := 0
		for over := false; !over; calls++ {
			began := time.Now()
			if _, _, err := s.Next(t.Context(), who, peer.DefaultSequencer); err != nil {
				t.Fatal(err)
			}
			if err := s.Many(t.Context(), who, "10.0.0.1:1", peer.DefaultSequencer, few, none); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > 0 {
				t.Fatalf("they took %v of a clock that stands still during computations", took)
			}
			select {
			case <-done:
				over = true
			case <-time.After(time.Millisecond):
			}
		}
		if calls < 400 {
			t.Errorf("there were %d calls while 2 000 000 IDs were made", calls)
		}
		for _, n := range m.fills {
			if n > piece {
				t.Errorf("the member is asked for %d IDs at once", n)
			}
		}
	})
}

// Large calls leave a share of the rate to small calls at any time, and take the rest.
func TestLargeCallsLeaveAPart(t *testing.T) {
	for _, m := range []*asked{{layout: firn.Default}, {layout: firn.Sonyflake}} {
		synctest.Test(t, func(t *testing.T) {
			rate := rateOf(m)
			s, who, began := New(nil, Options{Default: m}), anyone(t), time.Now()
			ctx, cancel := context.WithCancel(t.Context())
			var large sync.WaitGroup
			for i := range 20 {
				large.Go(func() {
					// until the test ends
					_ = s.Many(ctx, who, fmt.Sprintf("10.0.0.%d:1", i), peer.DefaultSequencer, MaxCount, none)
				})
			}
			for range 100 {
				time.Sleep(3 * time.Millisecond)
				m.mu.Lock()
				made, took := float64(m.next), time.Since(began).Seconds()
				m.mu.Unlock()
				burst := (turnSlack + 2*turnTime).Seconds()
				if most := rate * (1 - leftShare) * (took + burst); made > most+1 {
					t.Fatalf("%v IDs after %v s, want at most %v", made, took, most)
				}
				if least := rate * (1 - 2*leftShare) * (took - burst); made < least-1 && made < 20*MaxCount {
					t.Fatalf("%v IDs after %v s, want at least %v", made, took, least)
				}
			}
			cancel()
			large.Wait()
			if time.Sleep(time.Hour); s.Many(t.Context(), who, "", peer.DefaultSequencer, 1000, none) != nil {
				t.Error("no caller is left, but a call gets no turn")
			}
		})
	}
}

// Callers take turns with each piece, however many calls each makes; the calls of one go one after the other.
func TestCallersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l line
		var mu sync.Mutex // guards order
		var order []string
		note := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, what)
		}
		var all sync.WaitGroup
		begin := func(call string, ctx context.Context, pieces int) {
			all.Go(func() {
				for i := range pieces {
					if l.take(ctx, party{token: call[:1]}, time.Second, i > 0) != nil {
						note(call + " leaves")
						return
					}
					note(call)
					l.over()
				}
			})
			synctest.Wait()
		}
		impatient, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		begin("a1", t.Context(), 3) // the first two, before the others
		begin("a2", t.Context(), 2)
		begin("a3", impatient, 2)
		begin("b1", t.Context(), 2)
		begin("c1", impatient, 9)
		begin("d1", t.Context(), 1)
		all.Wait()
		slices.Sort(order[2:4]) // they leave at the same time
		const want = "[a1 a1 a3 leaves c1 leaves b1 d1 a1 b1 a2 a2]"
		if got := fmt.Sprint(order); got != want {
			t.Errorf("the turns are\n%s, want\n%s", got, want)
		}
		if l.now != 0 || len(l.callers) != 0 {
			t.Errorf("afterwards: %+v", &l)
		}
	})
}
