package counter

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/sequencer"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// slow is a store whose answers come late, or are lost.
type slow struct {
	store.Store
	mu  sync.Mutex
	rng *rand.Rand
}

func (s *slow) wait() (lost bool) {
	s.mu.Lock()
	d, lost := time.Duration(s.rng.Int64N(int64(20*time.Millisecond))), s.rng.IntN(10) == 0
	s.mu.Unlock()
	time.Sleep(d)
	return lost
}

func (s *slow) Get(ctx context.Context, key string) (store.KV, error) {
	kv, err := s.Store.Get(ctx, key)
	if s.wait() {
		return store.KV{}, store.ErrUnavailable
	}
	return kv, err
}

func (s *slow) Commit(ctx context.Context, txn store.Txn) (store.Version, error) {
	if s.wait() {
		return 0, store.ErrAmbiguous
	}
	v, err := s.Store.Commit(ctx, txn)
	if s.wait() {
		return 0, store.ErrAmbiguous
	}
	return v, err
}

// answer is a call for numbers that got some.
type answer struct {
	began, ended time.Duration
	first, last  firn.ID
}

// strict returns an answer with smaller numbers than those of one that had ended when its call began.
func strict(all []answer) (wrong []answer) {
	slices.SortFunc(all, func(a, b answer) int { return int(a.first - b.first) })
	for i, a := range all {
		for _, b := range all[i+1:] {
			if a.last >= b.first || b.ended < a.began {
				return []answer{a, b}
			}
		}
	}
	return nil
}

// If one call has its answer before another begins, its number is the smaller one: whoever is asked, whatever the store
// delays or loses, and whoever gives up.
func TestStrictNumbersAscendOverAllOwners(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			service, began := memstore.NewService(), time.Now()
			var mu sync.Mutex
			var all []answer
			failed := 0
			var callers, owners sync.WaitGroup
			ctx, cancel := context.WithCancel(t.Context())
			for i := range 3 {
				client := service.Client(string(rune('a' + i)))
				defer client.Close()
				o := NewOwner(Config{
					Store: &slow{Store: client, rng: rand.New(rand.NewPCG(seed, uint64(i)))}, Key: key,
					Rule: strictRule(t),
				})
				owners.Go(func() {
					for ctx.Err() == nil {
						select {
						case <-o.Blocks().Wanted():
						case <-ctx.Done():
							return
						}
						for tries := 0; ; tries++ {
							err := o.Claim(ctx)
							if err == nil || ctx.Err() != nil {
								break
							}
							if tries > 2 {
								o.Blocks().Fail(err)
							}
						}
					}
				})
				for j := range 6 {
					rng := rand.New(rand.NewPCG(seed, uint64(10*i+j)))
					callers.Go(func() {
						for range 60 {
							time.Sleep(time.Duration(rng.Int64N(int64(30 * time.Millisecond))))
							within := time.Duration(rng.Int64N(int64(500 * time.Millisecond)))
							one, done := context.WithTimeout(ctx, within)
							n := 1 + rng.Int64N(3)
							a := answer{began: time.Since(began)}
							last, err := o.Blocks().Take(one, n)
							done()
							a.ended, a.last, a.first = time.Since(began), last, last-firn.ID(n)+1
							mu.Lock()
							if err == nil {
								all = append(all, a)
							} else {
								failed++
							}
							mu.Unlock()
						}
					})
				}
			}
			callers.Wait()
			cancel()
			owners.Wait()
			if wrong := strict(all); wrong != nil {
				t.Errorf("seed %d: %+v", seed, wrong)
			}
			if len(all) < 300 || failed == 0 {
				t.Errorf("seed %d: %d calls got numbers, %d failed; want more to show anything", seed, len(all), failed)
			}
		})
	}
}

// Nothing is left out while nothing goes wrong: not even where callers give up before a claim is sent.
func TestStrictNumbersAreDense(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		p.Order = sequencer.OrderStrict
		a, b := p.party("a"), p.party("b")
		for n := int64(1); n < 40; n += 4 {
			ctx, cancel := context.WithCancel(t.Context())
			gone := make(chan error, 1)
			go func() {
				_, err := b.Blocks().Take(ctx, 5)
				gone <- err
			}()
			synctest.Wait()
			cancel()
			if err := <-gone; !errors.Is(err, context.Canceled) {
				t.Errorf("%v", err)
			}
			if last := a.row(1); last != firn.ID(n) {
				t.Errorf("%d, want %d", last, n)
			}
			if last := b.row(3); last != firn.ID(n+3) {
				t.Errorf("%d, want %d", last, n+3)
			}
		}
		if err := a.Claim(t.Context()); err != nil || p.record().Last != 40 {
			t.Errorf("%v; with nobody waiting there is a claim up to %d", err, p.record().Last)
		}
		if err := a.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Blocks().Next(t.Context()); !errors.Is(err, ErrReleased) {
			t.Errorf("%v after it has left", err)
		}
	})
}

// A call for more numbers than are left takes none of them: others get these.
func TestStrictNumbersEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		p.Order, p.Max = sequencer.OrderStrict, 4
		a := p.party("a")
		if last := a.row(2); last != 2 {
			t.Fatalf("%d, want 2", last)
		}
		many := make(chan error, 1)
		go func() {
			_, err := a.Blocks().Take(t.Context(), 3)
			many <- err
		}()
		synctest.Wait()
		if last := a.row(2); last != 4 || !errors.As(<-many, new(*ExhaustedError)) {
			t.Errorf("%d, want 4", last)
		}
		if err := a.Ready(); !errors.As(err, new(*ExhaustedError)) {
			t.Errorf("%v", err)
		}
	})
}

// What a lost answer hid is given once it is found, unless others have claimed since.
func TestAStrictBlockInDoubt(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		p.Order = sequencer.OrderStrict
		a, b := p.party("a"), p.party("b")
		first := make(chan error, 1)
		go func() {
			_, err := a.Blocks().Next(t.Context())
			first <- err
		}()
		synctest.Wait()
		a.once(memstore.FailAfter, 0)
		err := a.Claim(t.Context())
		a.Blocks().Fail(err)
		if err := <-first; !errors.Is(err, store.ErrAmbiguous) {
			t.Fatalf("%v, want a doubt", err)
		}
		if last := a.row(1); last != 1 {
			t.Errorf("%d, want 1", last)
		}
		a.once(memstore.FailAfter, 0)
		go func() {
			_, err := a.Blocks().Next(t.Context())
			first <- err
		}()
		synctest.Wait()
		a.Blocks().Fail(a.Claim(t.Context()))
		<-first
		if last := b.row(1); last != 3 {
			t.Fatalf("%d, want 3", last)
		}
		if last := a.row(1); last != 4 {
			t.Errorf("%d after 3, want 4", last)
		}
	})
}

// held is a store that keeps the answer of a commit back until it is let go.
type held struct {
	store.Store
	letGo chan struct{}
}

func (h held) Commit(ctx context.Context, txn store.Txn) (store.Version, error) {
	v, err := h.Store.Commit(ctx, txn)
	<-h.letGo
	return v, err
}

// What was claimed for a caller who has given up is not for one who came when somebody else had a greater number.
func TestAStrictNumberIsNotForWhoComesLater(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		p.Order = sequencer.OrderStrict
		a, b := p.party("a"), p.party("b")
		answers := held{a.client, make(chan struct{})}
		a.Owner = NewOwner(Config{Store: answers, Key: key, Rule: p.rule()})
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan firn.ID, 2)
		take := func(ctx context.Context) {
			id, err := a.Blocks().Next(ctx)
			if err != nil {
				id = 0
			}
			got <- id
		}
		go take(ctx)
		synctest.Wait()
		go func() { _ = a.Claim(t.Context()) }()
		synctest.Wait()
		if last := b.row(1); last != 2 {
			t.Fatalf("%d, want 2", last)
		}
		cancel()
		if id := <-got; id != 0 {
			t.Fatalf("%d for who has given up", id)
		}
		go take(t.Context())
		synctest.Wait()
		close(answers.letGo)
		synctest.Wait()
		a.claim()
		if id := <-got; id != 3 {
			t.Errorf("%d after 2, want 3", id)
		}
	})
}

func strictRule(t *testing.T) Rule {
	return (&place{T: t, Definition: sequencer.Definition{Kind: sequencer.Counter, Order: sequencer.OrderStrict}}).
		rule()
}
