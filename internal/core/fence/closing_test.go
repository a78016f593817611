package fence

import (
	"context"
	"errors"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// The promise: once the guard has changed and Revoke has returned, nothing below the prefix ever changes, no
// owner has a horizon beyond the returned one, and every later claim gets ErrClosed.

// dice are random numbers for many goroutines.
type dice struct {
	mu sync.Mutex
	r  *rand.Rand
}

func (d *dice) n(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.IntN(n)
}

func (d *dice) upTo(t time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Duration(d.r.Int64N(int64(t)))
}

// fault befalls a third of all calls.
func (d *dice) fault(memstore.Call) memstore.Fault {
	if d.n(3) > 0 {
		return memstore.Fault{}
	}
	return memstore.Fault{Outcome: memstore.Outcome(d.n(4)), Delay: d.upTo(8 * time.Second)}
}

// keeper is an owner that claims, extends, releases and loses node IDs at random.
type keeper struct {
	*party
	*dice
	ended map[*Fence]time.Time // where the use of those ended that were released
	all   []*Fence
}

func (k *keeper) run(ctx context.Context) {
	var mine []*Fence
	for ctx.Err() == nil {
		time.Sleep(k.upTo(3 * time.Second))
		switch k.n(8) {
		case 0, 1, 2:
			if f := k.tryClaim(ctx); f != nil {
				mine = append(mine, f)
			}
		case 3:
			if len(mine) > 0 {
				k.tryRelease(ctx, mine[0])
				mine = mine[1:]
			}
		case 4:
			if k.n(3) == 0 {
				k.service.Expire(k.session)
				mine = nil
				if s, err := k.client.OpenSession(ctx, ttl); err == nil {
					k.session = s
				}
			}
		default:
			ExtendAll(ctx, mine)
			for _, f := range mine {
				f.Bound() // for the journal, if there is one
			}
		}
	}
}

func (k *keeper) tryClaim(ctx context.Context) *Fence {
	ctx, cancel := context.WithTimeout(ctx, k.upTo(20*time.Second))
	defer cancel()
	f, err := Claim(ctx, k.config, k.session, int64(k.n(4)))
	if err != nil {
		return nil
	}
	k.all = append(k.all, f)
	return f
}

func (k *keeper) tryRelease(ctx context.Context, f *Fence) {
	_ = f.Release(ctx, func() time.Time {
		k.ended[f] = f.Horizon().Add(-time.Second)
		return k.ended[f]
	})
}

// usedUpTo is how far the keeper may have used any node ID.
func (k *keeper) usedUpTo() (last time.Time) {
	for _, f := range k.all {
		h, released := k.ended[f]
		if !released {
			h = f.Horizon()
		}
		if h.After(last) {
			last = h
		}
	}
	return last
}

// changeGuard writes until it is certain that the key has another version.
func changeGuard(t *testing.T, s store.Store, old store.Condition) {
	t.Helper()
	for {
		_, err := s.Commit(t.Context(),
			store.Txn{If: []store.Condition{old}, Then: []store.Op{store.Put(old.Key, nil)}})
		switch {
		case err == nil, errors.Is(err, store.ErrConflict):
			return
		case !errors.Is(err, store.ErrAmbiguous):
			t.Fatal(err)
		}
	}
}

func TestWhatIsClosedStaysClosed(t *testing.T) {
	claimed := 0
	for seed := range uint64(150) {
		inBubble(t, func(t *testing.T, p *place) {
			d := &dice{r: rand.New(rand.NewPCG(seed, 11))}
			closer := p.party("closer")
			closer.guarded()
			var keepers []*keeper
			var running sync.WaitGroup
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for _, name := range []string{"a", "b", "c"} {
				k := &keeper{party: p.party(name), dice: d, ended: map[*Fence]time.Time{}}
				k.off = d.upTo(10 * time.Second)
				k.config.Guards = closer.config.Guards
				keepers = append(keepers, k)
				running.Go(func() { k.run(ctx) })
			}
			p.service.Inject(d.fault)
			time.Sleep(d.upTo(2 * time.Minute))

			changeGuard(t, closer.client, closer.config.Guards[0])
			horizon, err := Revoke(t.Context(), closer.client, prefix)
			if err != nil {
				t.Fatal(err)
			}
			reader := p.service.Client("reader")
			reader.Inject(func(memstore.Call) memstore.Fault { return memstore.Fault{} })
			before, _ := reader.List(t.Context(), prefix)
			time.Sleep(2 * time.Minute)
			cancel()
			running.Wait()
			p.service.Inject(nil)
			time.Sleep(time.Minute) // what was late has arrived

			after, _ := reader.List(t.Context(), prefix)
			if !reflect.DeepEqual(before, after) {
				t.Errorf("seed %d: from\n%v to\n%v", seed, before, after)
			}
			for _, k := range keepers {
				claimed += len(k.all)
				if h := k.usedUpTo(); h.After(horizon) {
					t.Errorf("seed %d: a horizon is %v after the last one", seed, h.Sub(horizon))
				}
				k.config.MaxWait = time.Hour
				k.renew()
				if _, err := k.claim(int64(d.n(10))); !errors.Is(err, ErrClosed) {
					t.Errorf("seed %d: a claim after all: %v", seed, err)
				}
			}
		})
	}
	if claimed < 750 {
		t.Errorf("only %d node IDs were claimed", claimed)
	}
}
