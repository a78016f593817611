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

func TestReserveTakesANodeIDFromItsOwner(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a, operator := p.party("a"), p.party("operator")
		f := a.mustClaim(7)
		for range 2 {
			from, err := Reserve(t.Context(), operator.client, prefix, []int64{7}, 3, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			wantTime(t, "where it begins", from, f.Horizon())
			time.Sleep(time.Minute)
		}
		_, err := Reserve(t.Context(), operator.client, prefix, []int64{7}, 2, time.Time{})
		if !errors.Is(err, ErrSuperseded) {
			t.Errorf("an earlier reservation: %v", err)
		}
		if err := Free(t.Context(), operator.client, prefix, []int64{7}, 2, time.Now()); err != nil {
			t.Errorf("an earlier release: %v", err)
		}
		if _, err := Revoke(t.Context(), operator.client, prefix); err == nil {
			t.Error("the last horizon is known while a node ID is reserved")
		}
		owners, err := Owners(t.Context(), operator.client, prefix)
		if want := []Owner{{Node: 7, Reserved: true, Horizon: f.Horizon()}}; err != nil ||
			!reflect.DeepEqual(owners, want) {
			t.Errorf("owners: %+v, %v; want %+v", owners, err, want)
		}
		wantErrors(t, "extending", ExtendAll(t.Context(), []*Fence{f}), ErrLost)
		_, err = a.claim(7)
		wantError[*ClockBehindError](t, err)
		from, err := Reserve(t.Context(), operator.client, prefix, []int64{7}, 4, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		wantTime(t, "where a later one begins", from, time.Now())

		used := time.Now().Add(10 * time.Second)
		for _, end := range []time.Time{used.Add(-time.Minute), used, used.Add(-time.Second)} {
			if err := Free(t.Context(), operator.client, prefix, []int64{7}, 4, end); err != nil {
				t.Fatal(err)
			}
		}
		wantTime(t, "the floor of the next owner", a.mustClaim(7).Floor(), used)
	})
}

// Where nobody has used what was reserved, the next owner begins where the last one ended.
func TestFreeGoesNoFurtherBackThanTheReservation(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a := p.party("a")
		f := a.mustClaim(7)
		from, err := Reserve(t.Context(), a.client, prefix, []int64{7}, 5, time.Time{})
		if err == nil {
			err = Free(t.Context(), a.client, prefix, []int64{7}, 5, time.Unix(0, 0))
		}
		if err != nil {
			t.Fatal(err)
		}
		wantTime(t, "where it began", from, f.Horizon())
		wantTime(t, "the floor of the next owner", a.mustClaim(7).Floor(), f.Horizon())

		from, err = Reserve(t.Context(), a.client, prefix, []int64{8}, 5, time.Time{})
		if err != nil || from.UnixMilli() != 0 {
			t.Errorf("of a node ID that was never used: %v, %v", from, err)
		}
		later := time.Now().Add(time.Minute)
		for _, notBefore := range []time.Time{later, {}} {
			from, err := Reserve(t.Context(), a.client, prefix, []int64{9}, 5, notBefore)
			if err != nil {
				t.Fatal(err)
			}
			wantTime(t, "where it begins at the earliest", from, later)
		}
	})
}

// A reservation that takes a node ID from an earlier one begins where that one did. The earlier one frees the others
// only.
func TestReserveTakesANodeIDFromAReservation(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a, begins := p.party("a"), time.Now().Add(time.Hour)
		reserve := func(number int64, notBefore time.Time, nodes ...int64) time.Time {
			t.Helper()
			from, err := Reserve(t.Context(), a.client, prefix, nodes, number, notBefore)
			if err != nil {
				t.Fatal(err)
			}
			return from
		}
		used := a.mustClaim(4)
		reserve(3, begins, 5, 6, 7)
		reserve(3, time.Time{}, 4)
		time.Sleep(time.Minute)
		for node, want := range map[int64]time.Time{4: used.Horizon(), 5: begins, 8: time.UnixMilli(0)} {
			wantTime(t, "where it begins", reserve(4, time.Time{}, node), want)
		}
		wantTime(t, "beside one that was never used", reserve(5, begins, 9, 6), reserve(5, begins, 9))
		end := begins.Add(time.Hour)
		if err := Free(t.Context(), a.client, prefix, []int64{5, 7}, 3, end); err != nil {
			t.Fatal(err)
		}
		owners, err := Owners(t.Context(), a.client, prefix)
		want := []Owner{
			{Node: 4, Reserved: true, Horizon: used.Horizon()},
			{Node: 5, Reserved: true, Horizon: begins},
			{Node: 6, Reserved: true, Horizon: begins},
			{Node: 7, Horizon: end},
			{Node: 8, Reserved: true},
			{Node: 9, Reserved: true, Horizon: begins},
		}
		if err != nil || !reflect.DeepEqual(owners, want) {
			t.Errorf("owners: %+v, %v; want %+v", owners, err, want)
		}
	})
}

func TestReserveRefusesWhatItCanNotKnow(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a := p.party("a")
		a.put(reportedKey(prefix, 5), "soon")
		if _, err := Reserve(t.Context(), a.client, prefix, []int64{5}, 5, time.Time{}); err == nil {
			t.Error("with a horizon that can't be read: no error")
		}
		guard := store.Condition{Key: "guard", Version: 9}
		if _, err := Reserve(t.Context(), a.client, prefix, []int64{6}, 5, time.Time{},
			guard); !errors.Is(err, ErrClosed) {
			t.Errorf("with a guard that does not hold: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		a.client.CutOff(true)
		if err := Free(ctx, a.client, prefix, []int64{6}, 5, time.Now()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("without a store: %v", err)
		}
	})
}

// Once Reserve has returned, no owner gets beyond what it returned until Free has begun, whatever happens to all
// writes.
func TestWhatIsReservedIsUsedByNobody(t *testing.T) {
	claimed, later := 0, 0
	for seed := range uint64(150) {
		inBubble(t, func(t *testing.T, p *place) {
			d := &dice{r: rand.New(rand.NewPCG(seed, 12))}
			operator := p.party("operator")
			var keepers []*keeper
			var running sync.WaitGroup
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			for _, name := range []string{"a", "b", "c"} {
				k := &keeper{party: p.party(name), dice: d, ended: map[*Fence]time.Time{}}
				k.off = d.upTo(10 * time.Second)
				keepers = append(keepers, k)
				running.Go(func() { k.run(ctx) })
			}
			p.service.Inject(d.fault)
			time.Sleep(d.upTo(2 * time.Minute))

			from, err := Reserve(t.Context(), operator.client, prefix, []int64{1}, 5, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(d.upTo(2 * time.Minute))
			freed, used := time.Now(), time.Now().Add(d.upTo(time.Minute))
			if err := Free(t.Context(), operator.client, prefix, []int64{1}, 5, used); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Minute)
			cancel()
			running.Wait()
			p.service.Inject(nil)
			time.Sleep(time.Minute) // what was late has arrived

			for _, k := range keepers {
				claimed += len(k.all)
				for _, f := range k.all {
					h, released := k.ended[f]
					if !released {
						h = f.Horizon()
					}
					switch {
					case f.Node() != 1 || !h.After(from):
					case f.Floor().Before(used) || f.Floor().Before(from):
						t.Errorf("seed %d: an owner has %v to %v; what was reserved is %v to %v, freed at %v",
							seed, f.Floor(),
							h, from, used, freed)
					default:
						later++
					}
				}
			}
		})
	}
	if claimed < 750 || later < 50 {
		t.Errorf("only %d node IDs were claimed, %d of them after the reservation", claimed, later)
	}
}

// An answer that is lost, or a write that is late, changes nothing.
func TestReserveTriesAgain(t *testing.T) {
	for _, outcome := range []memstore.Outcome{memstore.FailBefore, memstore.FailAfter, memstore.ApplyLate} {
		inBubble(t, func(t *testing.T, p *place) {
			a, operator := p.party("a"), p.party("operator")
			f := a.mustClaim(7)
			calls := 0
			operator.client.Inject(func(memstore.Call) memstore.Fault {
				if calls++; calls > 4 {
					return memstore.Fault{}
				}
				return memstore.Fault{Outcome: outcome, Delay: time.Millisecond}
			})
			from, err := Reserve(t.Context(), operator.client, prefix, []int64{7}, 5, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			wantTime(t, "where it begins", from, f.Horizon())
			calls = 0
			if err := Free(t.Context(), operator.client, prefix, []int64{7}, 5,
				f.Horizon().Add(time.Second)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			wantTime(t, "the next floor", a.mustClaim(7).Floor(), f.Horizon().Add(time.Second))
		})
	}
}

func TestFreeAll(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a := p.party("a")
		f := a.mustClaim(1)
		if err := f.Release(t.Context(), f.Horizon); err != nil {
			t.Fatal(err)
		}
		end, held := f.Horizon(), a.mustClaim(2)
		if _, err := Reserve(t.Context(), a.client, prefix, []int64{1, 3}, 5, time.Time{}); err != nil {
			t.Fatal(err)
		}
		guard := store.Condition{Key: "guard", Version: 9}
		if err := FreeAll(t.Context(), a.client, prefix, guard); !errors.Is(err, ErrClosed) {
			t.Errorf("with a guard that does not hold: %v", err)
		}
		if err := FreeAll(t.Context(), a.client, prefix); err != nil {
			t.Fatal(err)
		}
		for node, floor := range map[int64]time.Time{1: end, 3: time.UnixMilli(0)} {
			wantTime(t, "the floor of the next owner", a.mustClaim(node).Floor(), floor)
		}
		if err := held.Extend(t.Context()); err != nil {
			t.Errorf("an owner that is not a reservation: %v", err)
		}
	})
}

// A write of Reserve that is late does nothing once Free has answered, and many node IDs take several transactions.
func TestFreeEndsWhatIsUnderWay(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a, slow := p.party("a"), p.party("slow")
		nodes := make([]int64, 200)
		for i := range nodes {
			nodes[i] = int64(i)
		}
		slow.client.Inject(func(c memstore.Call) memstore.Fault {
			if len(c.Txn.Then) == 0 {
				return memstore.Fault{}
			}
			return memstore.Fault{Outcome: memstore.ApplyLate, Delay: time.Minute}
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := Reserve(ctx, slow.client, prefix, nodes, 3, time.Time{}); err == nil {
			t.Fatal("a write that is late was answered")
		}
		used := time.Now().Add(5 * time.Second)
		if err := Free(t.Context(), a.client, prefix, nodes, 3, used); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		for _, node := range []int64{0, 199} {
			wantTime(t, "the floor of the next owner", a.mustClaim(node).Floor(), used)
		}
		from, err := Reserve(t.Context(), a.client, prefix, nodes, 4, time.Time{})
		owners, ownersErr := Owners(t.Context(), a.client, prefix)
		if err != nil || ownersErr != nil || len(owners) != len(nodes) || from.Before(used) {
			t.Fatalf("%v from %v: %v, %v", owners, from, err, ownersErr)
		}
		for _, o := range owners {
			if !o.Reserved || o.Live {
				t.Errorf("%+v", o)
			}
		}
	})
}

// What is left of a reservation is ended only if it is certain that it was released, and goes on where it was used.
func TestFreeLeft(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a, yes := p.party("a"), func() error { return nil }
		begins := time.Now().Add(time.Hour)
		if _, err := Reserve(t.Context(), a.client, prefix, []int64{7}, 5, begins); err != nil {
			t.Fatal(err)
		}
		var before Time
		if _, err := Use(t.Context(), a.client, prefix, 7, 5, 0, takes(time.Second, "n", &before)); err != nil {
			t.Fatal(err)
		}
		no := errors.New("the store has lost data")
		free := func(sure func() error) error { return FreeLeft(t.Context(), a.client, prefix, 7, sure) }
		again := func() error {
			_, err := Reserve(t.Context(), a.client, prefix, []int64{7}, 6, time.Time{})
			return err
		}
		for _, tt := range []struct {
			sure func() error
			want error
		}{{func() error { return no }, no}, {again, store.ErrConflict}} {
			if err := free(tt.sure); !errors.Is(err, tt.want) {
				t.Errorf("%v; want %v", err, tt.want)
			}
			if owners, err := Owners(t.Context(), a.client, prefix); err != nil || !owners[0].Reserved {
				t.Fatalf("%+v, %v", owners, err)
			}
		}
		if err := free(yes); err != nil {
			t.Fatal(err)
		}
		owners, err := Owners(t.Context(), a.client, prefix)
		want := []Owner{{Node: 7, Horizon: begins.Add(time.Second)}}
		if err != nil || !reflect.DeepEqual(owners, want) {
			t.Errorf("owners: %+v, %v; want %+v", owners, err, want)
		}
	})
}
