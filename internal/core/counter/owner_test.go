package counter

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/floor"
	"github.com/firn-id/firn/internal/base/reason"
	"github.com/firn-id/firn/sequencer"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

var key = Key("invoices")

// place is a counter's store, seen by as many owners as a test wants.
type place struct {
	*testing.T
	service *memstore.Service
	pace    Pace
	sequencer.Definition
}

func inBubble(t *testing.T, f func(t *testing.T, p *place)) {
	synctest.Test(t, func(t *testing.T) {
		f(t, &place{
			T: t, service: memstore.NewService(), pace: Pace{Largest: 1},
			Definition: sequencer.Definition{Kind: sequencer.Counter},
		})
	})
}

// party is one process that gives numbers.
type party struct {
	*place
	*Owner
	client *memstore.Client
}

func (p *place) party(name string) *party {
	c := p.service.Client(name)
	p.Cleanup(func() { c.Close() })
	return &party{p, NewOwner(Config{Store: c, Key: key, Rule: p.rule(), Pace: p.pace}), c}
}

func (p *place) rule() Rule {
	r, err := RuleOf(p.Definition)
	if err != nil {
		p.Fatal(err)
	}
	return r
}

// take takes so many numbers one by one, and claims when that is asked for.
func (q *party) take(n int) (all []firn.ID) {
	q.Helper()
	for range n {
		if q.Blocks().Demand(9, nil).Next == 0 {
			q.claim()
		}
		id, err := q.Blocks().Next(q.Context())
		if err != nil {
			q.Fatal(err)
		}
		all = append(all, id)
		time.Sleep(time.Second)
	}
	return all
}

func (q *party) claim() {
	q.Helper()
	if err := q.Claim(q.Context()); err != nil {
		q.Fatal(err)
	}
}

func (q *party) wants(n int, want ...firn.ID) {
	q.Helper()
	if have := q.take(n); !slices.Equal(have, want) {
		q.Errorf("%v, want %v", have, want)
	}
}

func (p *place) record() Record {
	p.Helper()
	v, _, err := Read(p.Context(), p.service.Client("observer"), key)
	if err != nil {
		p.Fatal(err)
	}
	return v.Record
}

// once has the next commit of a client meet a fault.
func (q *party) once(outcome memstore.Outcome, delay time.Duration) {
	met := false
	q.client.Inject(func(c memstore.Call) memstore.Fault {
		if c.Op != memstore.Commit || met {
			return memstore.Fault{}
		}
		met = true
		return memstore.Fault{Outcome: outcome, Delay: delay}
	})
}

func TestOwnersGiveDenseNumbers(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a, b := p.party("a"), p.party("b")
		a.wants(2, 1, 2)
		a.claim()
		b.wants(2, 4, 5)
		a.wants(2, 3, 6)
		b.claim()
		a.claim()
		if err := b.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := a.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r := p.record(); r.Last != 7 { // a had the 8 still; b the 7, above which a had claimed
			t.Errorf("%+v, want it to end at 7", r)
		}
		if _, err := a.Blocks().Next(t.Context()); !errors.Is(err, ErrReleased) {
			t.Errorf("%v after it has left", err)
		}
		if err := a.Claim(t.Context()); !errors.Is(err, ErrReleased) {
			t.Errorf("%v after it has left", err)
		}
		p.party("c").wants(3, 8, 9, 10)
	})
}

// row takes consecutive numbers, and claims while there are too few. It returns the last.
func (q *party) row(n int64) firn.ID {
	q.Helper()
	last := make(chan firn.ID, 1)
	go func() {
		id, err := q.Blocks().Take(q.Context(), n)
		if err != nil {
			q.Error(err)
		}
		last <- id
	}()
	for {
		synctest.Wait()
		select {
		case id := <-last:
			return id
		default:
			q.claim()
		}
	}
}

// Consecutive numbers are of one block, or of blocks between which nobody has claimed. Only where that has too few,
// there is a gap.
func TestOwnersGiveConsecutiveNumbers(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a, b := p.party("a"), p.party("b")
		row := func(q *party, n int64, want firn.ID) {
			t.Helper()
			if last := q.row(n); last != want {
				t.Errorf("%d are up to %d; want %d", n, last, want)
			}
		}
		row(a, 3, 3)
		row(b, 2, 5)
		row(a, 1, 6)
		a.claim() // the 7
		row(b, 3, 10)
		row(a, 2, 12) // of 11 to 13; nobody gets the 7
		if err := a.Release(t.Context()); err != nil || p.record().Last != 12 {
			t.Errorf("%v, it ends at %d; want 12", err, p.record().Last)
		}
		row(b, 4, 16)
		b.claim() // the 17
		row(b, 3, 19)
		row(b, 2, 21)
		if last := p.record().Last; last != 21 {
			t.Errorf("it ends at %d; want 21", last)
		}
	})
}

// Whoever wants more consecutive numbers than there are is told so, and others get these.
func TestConsecutiveNumbersAreUsedUp(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		p.Max = 7
		a := p.party("a")
		if last := a.row(5); last != 5 {
			t.Errorf("up to %d, want 5", last)
		}
		failed := make(chan error, 1)
		go func() {
			_, err := a.Blocks().Take(t.Context(), 3)
			failed <- err
		}()
		synctest.Wait()
		a.claim()
		synctest.Wait()
		err := a.Claim(t.Context())
		a.Blocks().Fail(err)
		if e, ok := errors.AsType[*ExhaustedError](<-failed); !ok || e.Last != 7 {
			t.Errorf("%v", err)
		}
		if last := a.row(2); last != 7 {
			t.Errorf("up to %d, want 7", last)
		}
	})
}

// However fast numbers are given, an owner leaves half of those that are left to others.
func TestTheEndIsShared(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		p.pace, p.Max = Pace{}, 1000
		a, given := p.party("a"), int64(0)
		for given < 1000 {
			before := a.State().Known.Last
			a.claim()
			r := a.State().Known
			if most := max((1000-before)/2, 1); r.Size > most || r.Size < 1 {
				t.Fatalf("a block of %d after %d; want at most %d", r.Size, before, most)
			}
			for range r.Size {
				given++
				if id, err := a.Blocks().Next(t.Context()); err != nil || int64(id) != given {
					t.Fatalf("%d, %v; want %d", id, err, given)
				}
			}
		}
	})
}

// A busy owner's blocks grow, and all of what it did not use is given back.
func TestBlocksOfABusyOwnerGrow(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		p.pace = Pace{}
		a := p.party("a")
		ids := make([]firn.ID, 50)
		claims := 0
		for range 600 {
			a.Blocks().(*Blocks).want()
			if <-a.Blocks().Wanted(); a.Blocks().Demand(9, nil).Next == 0 {
				a.claim()
				claims++
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			go func() { // what a call for more numbers than there are asks for
				for ctx.Err() == nil {
					select {
					case <-a.Blocks().Wanted():
						_ = a.Claim(ctx)
					case <-ctx.Done():
					}
				}
			}()
			if err := a.Blocks().Fill(ctx, ids); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second / 10)
			cancel()
			synctest.Wait()
		}
		if size := a.State().Known.Size; size < 5000 || size > 30000 || claims > 30 { // 500 a second
			t.Errorf("after a minute %d claims, the last of %d", claims, size)
		}
		if err := a.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r := p.record(); r.Last != 600*50 || ids[49] != 600*50 {
			t.Errorf("%+v, and the last is %d; want 30000", r, ids[49])
		}
	})
}

func TestALostAnswerIsNoGap(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a := p.party("a")
		a.wants(1, 1)
		a.once(memstore.FailAfter, 0)
		if err := a.Claim(t.Context()); !errors.Is(err, store.ErrAmbiguous) {
			t.Fatal(err)
		}
		a.wants(2, 2, 3)
		a.once(memstore.FailBefore, 0)
		if err := a.Claim(t.Context()); !errors.Is(err, store.ErrAmbiguous) {
			t.Fatal(err)
		}
		a.wants(1, 4)
		a.once(memstore.ApplyLate, time.Minute)
		if err := a.Claim(t.Context()); !errors.Is(err, store.ErrAmbiguous) {
			t.Fatal(err)
		}
		a.wants(1, 5)
		time.Sleep(2 * time.Minute)
		a.wants(1, 6)
		a.claim()
		a.once(memstore.FailAfter, 0)
		if err := a.Release(t.Context()); !errors.Is(err, store.ErrAmbiguous) {
			t.Fatal(err)
		}
		if err := a.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r := p.record(); r.Last != 6 {
			t.Errorf("%+v, want it to end at 6", r)
		}
	})
}

// A claim whose answer is lost is settled at the stop, and its numbers are given back.
func TestAClaimInDoubtIsGivenBack(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a := p.party("a")
		a.wants(1, 1)
		a.once(memstore.FailAfter, 0)
		if err := a.Claim(t.Context()); !errors.Is(err, store.ErrAmbiguous) || p.record().Last != 2 {
			t.Fatal(err, p.record())
		}
		if err := a.Release(t.Context()); err != nil || p.record().Last != 1 {
			t.Errorf("%v %+v, want it to end at 1", err, p.record())
		}
	})
}

func TestNumbersEndAtTheMaximum(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		p.After, p.Max = 7, 9
		a := p.party("a")
		a.wants(2, 8, 9)
		err := a.Claim(t.Context())
		const want = "the numbers end at 9, and fewer are left than were asked for"
		if err == nil || err.Error() != want || reason.Of(err) != "exhausted" {
			t.Errorf("%v, want %s", err, want)
		}
		p.After, p.Max = 0, 0 // created again
		p.party("b").wants(2, 10, 11)

		p.After, p.Max = firn.MaxID-1, 0
		c := p.party("c")
		c.wants(1, firn.MaxID)
		if err := c.Claim(t.Context()); reason.Of(err) != "exhausted" {
			t.Error(err)
		}
		if err := c.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestAGuardEndsTheClaims(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a := p.party("a")
		guard := store.Condition{Key: "guard"}
		if err := a.Claim(t.Context(), guard); err != nil {
			t.Fatal(err)
		}
		if _, err := a.client.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put("guard", nil)}}); err != nil {
			t.Fatal(err)
		}
		a.wants(0)
		if _, err := a.Blocks().Next(t.Context()); err != nil {
			t.Error(err)
		}
		if err := a.Claim(t.Context(), guard); !errors.Is(err, ErrClosed) || p.record().Last != 1 {
			t.Errorf("%v %+v, want %v", err, p.record(), ErrClosed)
		}
		if err := a.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestALossStopsTheCounter is the whole story: the store goes back, the owner that knows more stops and raises the
// record, those who know nothing of it and newcomers stop, too, and all go on once an operator has resumed.
func TestALossStopsTheCounter(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a, b := p.party("a"), p.party("b")
		a.wants(1, 1)
		b.wants(1, 2)
		backup := p.service.Backup()
		a.wants(3, 3, 4, 5)
		p.service.RollBack(backup, 0)

		if err := a.Claim(t.Context()); !errors.Is(err, store.ErrRolledBack) || reason.Of(err) != "lost" {
			t.Fatalf("%v, want that the owner finds it out", err)
		}
		if _, err := a.Blocks().Next(t.Context()); reason.Of(err) != "lost" {
			t.Errorf("%v, want that it gives none", err)
		}
		if err := a.Claim(t.Context()); reason.Of(err) != "lost" {
			t.Errorf("%v before it has told", err)
		}
		if err := Tell(t.Context(), a.client); err != nil {
			t.Fatal(err)
		}
		a.Told()
		for range 2 {
			err := a.Claim(t.Context())
			const want = "the store has lost data, so that numbers could come again; the greatest one that is known " +
				"to be reserved is 5; have the counter resume above all that were given"
			if err == nil || err.Error() != want {
				t.Errorf("%v, want %s", err, want)
			}
		}
		if r := p.record(); r.Last != 5 {
			t.Errorf("%+v, want it raised to 5", r)
		}
		b.Blocks().(*Blocks).want()
		for _, q := range []*party{b, p.party("new")} {
			if err := q.Claim(t.Context()); reason.Of(err) != "lost" {
				t.Errorf("%v, want that others give none either", err)
			}
			if _, err := q.Blocks().Next(t.Context()); q == b && reason.Of(err) != "lost" {
				t.Errorf("%v", err)
			}
		}
		for after, why := range map[int64]string{
			4:                 "to resume above 4; want 5, the greatest number that is known to be reserved",
			int64(firn.MaxID): "to 9223372036854775806, the greatest that there is now",
		} {
			err := ResumeAfter(t.Context(), a.client, key, after, p.rule().Limits(time.Now(), 0))
			if err == nil || !strings.Contains(err.Error(), why) {
				t.Errorf("%v, want %s", err, why)
			}
		}
		if err := ResumeAfter(t.Context(), a.client, key, 100, p.rule().Limits(time.Now(), 0)); err != nil {
			t.Fatal(err)
		}
		a.wants(2, 101, 102)
		b.wants(2, 103, 104)
		p.party("c").wants(1, 105)
		err := ResumeAfter(t.Context(), a.client, key, 200, p.rule().Limits(time.Now(), 0))
		const want = "the counter has not stopped: it goes on above 105; only one whose store has lost data resumes"
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}

		// An owner that learns of a loss only when an operator has resumed drops what it had, so that it does not give
		// it back later.
		a.claim()
		b.Lose()
		if err := Tell(t.Context(), b.client); err != nil {
			t.Fatal(err)
		}
		b.Told()
		if err := ResumeAfter(t.Context(), b.client, key, 300, p.rule().Limits(time.Now(), 0)); err != nil {
			t.Fatal(err)
		}
		ids := make([]firn.ID, 2)
		filled := make(chan error)
		go func() { filled <- a.Blocks().Fill(t.Context(), ids) }()
		for range 2 {
			<-a.Blocks().Wanted()
			a.claim()
			synctest.Wait()
		}
		if err := <-filled; err != nil || !slices.Equal(ids, []firn.ID{301, 302}) {
			t.Errorf("%v %v, want 301 and 302: the 106 is gone", ids, err)
		}
		if id := b.take(1)[0]; id <= 302 {
			t.Errorf("%d, want one above 302", id)
		}
	})
}

// Once somebody has told of a loss, nobody claims, though the record is as it was.
func TestNobodyClaimsInAnotherEra(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a, b := p.party("a"), p.party("b")
		a.wants(1, 1)
		if err := Tell(t.Context(), b.client); err != nil {
			t.Fatal(err)
		}
		if err := a.Claim(t.Context()); reason.Of(err) != "lost" || p.record().Last != 1 {
			t.Errorf("%v %+v, want that it is lost", err, p.record())
		}
		if err := a.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if err := b.Release(t.Context()); err != nil {
			t.Error(err)
		}
		for _, q := range []*party{a, b} { // the second has never claimed any
			if _, err := q.Blocks().Next(t.Context()); !errors.Is(err, ErrReleased) {
				t.Errorf("%v after it has left", err)
			}
		}
	})
}

// A counter without a record may be one whose record the store has lost. One that is founded has one.
func TestACounterIsFoundedOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a := p.party("a")
		if err := Tell(t.Context(), a.client); err != nil {
			t.Fatal(err)
		}
		if err := a.Claim(t.Context()); reason.Of(err) != "lost" {
			t.Errorf("%v, want that one without a record is lost", err)
		}
		if err := Found(t.Context(), a.client, key, 0); err != nil {
			t.Fatal(err)
		}
		if err := a.Claim(t.Context()); reason.Of(err) != "lost" {
			t.Errorf("%v, want that one which is created after a loss is lost", err)
		}
		for range 2 {
			if err := Found(t.Context(), a.client, key, 1); err != nil {
				t.Fatal(err)
			}
			a.take(2)
		}
		if r := p.record(); r.Last < 4 {
			t.Errorf("%+v", r)
		}
	})
}

func TestWhatCantBeRead(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a := p.party("a")
		put := func(key, value string) {
			txn := store.Txn{Then: []store.Op{store.Put(key, []byte(value))}}
			if _, err := a.client.Commit(t.Context(), txn); err != nil {
				t.Fatal(err)
			}
		}
		for _, value := range []string{
			"{", `{"last":-1}`, `{"last":3,"size":4}`, `{"last":3,"size":-1}`, `{"last":"3"}`,
		} {
			put(key, value)
			err := a.Claim(t.Context())
			why := fmt.Sprintf("%q can't be read, so that no number can be given: it holds %q", key, value)
			if err == nil || !strings.Contains(err.Error(), why) {
				t.Errorf("%s: %v", value, err)
			}
		}
		put(key, `{"last":3}`)
		put(floor.EraKey, "x")
		if err := a.Claim(t.Context()); err == nil || !strings.Contains(err.Error(), `"era" holds "x"`) {
			t.Errorf("%v", err)
		}
		put(floor.EraKey, "0")
		a.wants(1, 4)
	})
}

// TestOwnersUnderFaults has owners take numbers, crash and leave over a store that fails in every way.
func TestOwnersUnderFaults(t *testing.T) {
	for seed := range uint64(50) {
		inBubble(t, func(t *testing.T, p *place) {
			p.pace = Pace{Largest: 20}
			random := rand.New(rand.NewPCG(seed, 1))
			p.service.Inject(func(c memstore.Call) memstore.Fault {
				f := memstore.Fault{Delay: time.Duration(random.IntN(20)) * time.Millisecond}
				if random.IntN(4) == 0 {
					f.Outcome = memstore.Outcome(random.IntN(4))
				}
				return f
			})
			owners := []*party{p.party("0"), p.party("1"), p.party("2")}
			given := map[firn.ID]int{}
			last := map[int]firn.ID{}
			for step := range 400 {
				i := random.IntN(len(owners))
				q := owners[i]
				if random.IntN(30) == 0 {
					for random.IntN(2) == 0 && q.Release(t.Context()) != nil { // or it crashes
					}
					owners[i], last[i] = p.party(fmt.Sprint(step)), 0
					continue
				}
				ids := make([]firn.ID, 1+random.IntN(3))
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(60))*time.Millisecond)
				go func() {
					for ctx.Err() == nil {
						select {
						case <-q.Blocks().Wanted():
							if q.Claim(ctx) != nil {
								q.Blocks().(*Blocks).want()
								time.Sleep(time.Millisecond)
							}
						case <-ctx.Done():
						}
					}
				}()
				err := q.Blocks().Fill(ctx, ids)
				cancel()
				synctest.Wait()
				if err != nil {
					continue
				}
				for _, id := range ids {
					if given[id]++; given[id] > 1 || id <= last[i] {
						t.Fatalf("seed %d, step %d: %d comes again, or after %d", seed, step, id, last[i])
					}
					last[i] = id
				}
			}
			if len(given) < 50 {
				t.Errorf("seed %d: only %d numbers", seed, len(given))
			}
			time.Sleep(time.Minute)
		})
	}
}

// A call for more numbers than are left reserves none for that, and others go on.
func TestACallForTooManyReservesNone(t *testing.T) {
	for by, take := range map[string]func(d Dispenser, t *testing.T) error{
		"Take": func(d Dispenser, t *testing.T) error { _, err := d.Take(t.Context(), 101); return err },
		"Fill": func(d Dispenser, t *testing.T) error { return d.Fill(t.Context(), make([]firn.ID, 101)) },
	} {
		inBubble(t, func(t *testing.T, p *place) {
			p.pace, p.Max = Pace{}, 100
			a, b := p.party("a"), p.party("b")
			a.wants(1, 1)
			var err error
			go func() { err = take(a.Blocks(), t) }()
			synctest.Wait()
			for range 3 {
				<-a.Blocks().Wanted()
				if err := a.Claim(t.Context()); err != nil {
					t.Fatal(err)
				}
				if synctest.Wait(); err != nil {
					break
				}
			}
			if reason.Of(err) != "exhausted" || p.record().Last > 50 {
				t.Errorf("%s: %v, and %+v", by, err, p.record())
			}
			if id := b.next(); id > 51 {
				t.Errorf("%s: b gets %d", by, id)
			}
		})
	}
}
