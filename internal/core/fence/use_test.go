package fence

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// takes returns what has Use take so much time, and leave a note; it puts the time that there was in before.
func takes(d time.Duration, note string, before *Time) func(Time) (Time, error) {
	return func(t Time) (Time, error) {
		*before = t
		return Time{t.From.Add(d), note}, nil
	}
}

func TestUseTakesTimeOfAReservation(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a := p.party("a")
		f := a.mustClaim(7)
		if _, err := Reserve(t.Context(), a.client, prefix, []int64{7}, 5, time.Time{}); err != nil {
			t.Fatal(err)
		}
		from := f.Horizon()
		var known store.Version
		for i := range 3 {
			var before Time
			next, err := Use(t.Context(), a.client, prefix, 7, 5, known,
				takes(1500*time.Microsecond, fmt.Sprint("n", i), &before))
			if err != nil || next <= known {
				t.Fatal(next, err)
			}
			known = next
			wantTime(t, "the time that is left", before.From, from)
			if want := map[int]string{1: "n0", 2: "n1"}[i]; before.Note != want {
				t.Errorf("note %q, want %q", before.Note, want)
			}
			from = from.Add(2 * time.Millisecond) // rounded up
		}
		same, err := Use(t.Context(), a.client, prefix, 7, 5, known, func(t Time) (Time, error) { return t, nil })
		if err != nil || same != known {
			t.Errorf("taking nothing: version %d, %v; want %d", same, err, known)
		}
		again, err := Reserve(t.Context(), a.client, prefix, []int64{7}, 5, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		wantTime(t, "where the reservation begins", again, from)

		wrong := errors.New("wrong")
		if _, err := Use(t.Context(), a.client, prefix, 7, 5, known,
			func(t Time) (Time, error) { return Time{t.From.Add(time.Hour), ""}, wrong }); !errors.Is(err, wrong) {
			t.Errorf("an error of take: %v", err)
		}
		for _, left := range []Time{
			{from.Add(-time.Millisecond), "n"}, {from, "a b"}, {from, strings.Repeat("n", 201)},
		} {
			if _, err := Use(t.Context(), a.client, prefix, 7, 5, known,
				func(Time) (Time, error) { return left, nil }); err == nil {
				t.Errorf("%v is left", left)
			}
		}
		var before Time
		for _, c := range []struct {
			node, number int64
			known        store.Version
			guards       []store.Condition
			want         error
		}{
			{7, 4, known, nil, ErrNotReserved},
			{8, 5, 0, nil, ErrNotReserved},
			{7, 5, known + 1, nil, store.ErrRolledBack},
			{7, 5, known, []store.Condition{{Key: "guard", Version: 9}}, ErrClosed},
		} {
			if _, err := Use(t.Context(), a.client, prefix, c.node, c.number, c.known, takes(time.Hour, "x", &before),
				c.guards...); !errors.Is(err, c.want) {
				t.Errorf("node ID %d, number %d: %v, want %v", c.node, c.number, err, c.want)
			}
		}
		if err := Free(t.Context(), a.client, prefix, []int64{7}, 5, time.Time{}); err != nil {
			t.Fatal(err)
		}
		if _, err := Use(t.Context(), a.client, prefix, 7, 5, 0, takes(time.Hour, "x", &before)); !errors.Is(err,
			ErrNotReserved) {
			t.Errorf("after Free: %v", err)
		}
		time.Sleep(2 * window)
		wantTime(t, "the floor of the next owner", a.mustClaim(7).Floor(), from)
	})
}

// stretch is time that somebody has.
type stretch struct {
	from, to time.Time
	by       string
}

// observed is a store that holds each write of Use against the proof's model of an owner: it has read the version that
// it expects (Read), and sends a horizon that does not lie before the one it has read (Send).
type observed struct {
	store.Store
	t     *testing.T
	plain *memstore.Client // without faults
}

func (o observed) Commit(ctx context.Context, txn store.Txn) (store.Version, error) {
	put := txn.Then[0]
	i := slices.IndexFunc(txn.If, func(c store.Condition) bool { return c.Key == put.Key })
	kv, err := o.plain.Get(ctx, put.Key)
	switch {
	case i < 0 || len(txn.Then) != 1:
		o.t.Errorf("%v is written under the conditions %v", txn.Then, txn.If)
	case err == nil && kv.Version == txn.If[i].Version:
		if was, is := floorOf(o.t, kv.Value), floorOf(o.t, put.Value); is < was {
			o.t.Errorf("the time %d is left, and %d was", is, was)
		}
	}
	return o.Store.Commit(ctx, txn)
}

// floorOf returns the horizon in the model's sense: where the next owner begins.
func floorOf(t *testing.T, value []byte) int64 {
	var v View
	if err := v.put("", store.KV{Key: reportedKeys, Value: value}, "", nil); err != nil {
		t.Error(err)
	}
	floor, _, _, _ := reservation(v)
	return floor
}

// Whoever uses a reservation, and whatever happens to all writes, nobody else has the same time: no other call of Use,
// and no owner before, meanwhile or later.
func TestTimeOfAReservationIsTakenOnce(t *testing.T) {
	taken, owned := 0, 0
	for seed := range uint64(100) {
		inBubble(t, func(t *testing.T, p *place) {
			d := &dice{r: rand.New(rand.NewPCG(seed, 13))}
			operator := p.party("operator")
			plain := p.service.Client("observer")
			defer plain.Close()
			var keepers []*keeper
			var running sync.WaitGroup
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for _, name := range []string{"a", "b"} {
				k := &keeper{party: p.party(name), dice: d, ended: map[*Fence]time.Time{}}
				keepers = append(keepers, k)
				running.Go(func() { k.run(ctx) })
			}
			clients := []*party{p.party("c"), p.party("d")}
			p.service.Inject(func(c memstore.Call) memstore.Fault {
				if c.Client == "observer" {
					return memstore.Fault{}
				}
				return d.fault(c)
			})
			var mu sync.Mutex
			var all []stretch
			number := int64(0)
			for range 3 {
				time.Sleep(d.upTo(time.Minute))
				number++
				_, err := Reserve(t.Context(), operator.client, prefix, []int64{1}, number, time.Time{})
				if err != nil {
					t.Fatal(err)
				}
				ends, end := context.WithTimeout(ctx, d.upTo(90*time.Second))
				var using sync.WaitGroup
				for i, c := range clients {
					using.Go(func() {
						s := observed{c.client, t, plain}
						for ends.Err() == nil {
							var before Time
							length := time.Duration(d.n(20000)) * time.Millisecond
							call, done := context.WithTimeout(ends, d.upTo(30*time.Second))
							_, err := Use(call, s, prefix, 1, number, 0, takes(length, "n", &before))
							done()
							if err == nil {
								mu.Lock()
								all = append(all, stretch{before.From, before.From.Add(length), fmt.Sprint("user ", i)})
								mu.Unlock()
							}
							time.Sleep(d.upTo(5 * time.Second))
						}
					})
				}
				if d.n(2) == 0 {
					using.Wait()
				} // else they go on while it is freed
				if err := Free(t.Context(), operator.client, prefix, []int64{1}, number, time.Time{}); err != nil {
					t.Fatal(err)
				}
				end()
				using.Wait()
			}
			time.Sleep(time.Minute)
			cancel()
			running.Wait()
			p.service.Inject(nil)
			time.Sleep(time.Minute) // what was late has arrived
			taken += len(all)
			for _, k := range keepers {
				for _, f := range k.all {
					to, released := k.ended[f]
					if !released {
						to = f.Horizon()
					}
					if f.Node() == 1 {
						all = append(all, stretch{f.Floor(), to, k.config.Owner})
						owned++
					}
				}
			}
			slices.SortFunc(all, func(a, b stretch) int { return a.from.Compare(b.from) })
			var last stretch
			for _, s := range all {
				if !s.to.After(s.from) {
					continue
				}
				if s.from.Before(last.to) {
					t.Errorf("seed %d: %+v and %+v", seed, last, s)
				}
				last = s
			}
		})
	}
	if taken < 500 || owned < 100 {
		t.Errorf("time was taken only %d times, and owned %d times", taken, owned)
	}
}

// An answer that is lost, or a write that is late, takes no time twice, and none more than once.
func TestUseTriesAgain(t *testing.T) {
	for _, outcome := range []memstore.Outcome{memstore.FailBefore, memstore.FailAfter, memstore.ApplyLate} {
		inBubble(t, func(t *testing.T, p *place) {
			a := p.party("a")
			if _, err := Reserve(t.Context(), a.client, prefix, []int64{7}, 5, time.Time{}); err != nil {
				t.Fatal(err)
			}
			writes := 0
			a.client.Inject(func(c memstore.Call) memstore.Fault {
				if c.Txn.Then == nil {
					return memstore.Fault{}
				}
				if writes++; writes > 4 {
					return memstore.Fault{}
				}
				return memstore.Fault{Outcome: outcome, Delay: time.Millisecond}
			})
			var before Time
			if _, err := Use(t.Context(), a.client, prefix, 7, 5, 0, takes(time.Second, "n", &before)); err != nil {
				t.Fatal(err)
			}
			wantTime(t, "where it began", before.From, time.Unix(0, 0))
			a.client.Inject(nil)
			time.Sleep(time.Minute)
			left, err := Reserve(t.Context(), a.client, prefix, []int64{7}, 5, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			wantTime(t, "what is left", left, time.Unix(1, 0))
		})
	}
}
