package fence

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

func (q *party) mustClaimAll(n int) []*Fence {
	q.t.Helper()
	var fences []*Fence
	for node := range int64(n) {
		fences = append(fences, q.mustClaim(node))
	}
	return fences
}

// befall has every commit of the party meet this outcome, and counts them.
func (q *party) befall(o memstore.Outcome) (commits *int) {
	commits = new(int)
	q.client.Inject(func(c memstore.Call) memstore.Fault {
		if c.Op != memstore.Commit {
			return memstore.Fault{}
		}
		*commits++
		return memstore.Fault{Outcome: o, Delay: time.Duration(o) * time.Second}
	})
	return commits
}

func wantErrors(t *testing.T, what string, errs []error, want error) {
	t.Helper()
	for i, err := range errs {
		if !errors.Is(err, want) {
			t.Errorf("%s: fence %d: %v, want %v", what, i, err, want)
		}
	}
}

func TestExtendAllSendsAsFewTransactionsAsItCan(t *testing.T) {
	for n, want := range map[int]int{0: 0, 1: 1, 2: 1, 64: 1, 65: 2, 200: 4} {
		inBubble(t, func(t *testing.T, p *place) {
			a := p.party("a")
			fences := a.mustClaimAll(n)
			commits := a.befall(memstore.Answered)
			wantErrors(t, "nothing to write", ExtendAll(t.Context(), fences), nil)
			if *commits != 0 {
				t.Errorf("%d fences with nothing to write: %d transactions", n, *commits)
			}
			time.Sleep(window / 3)
			wantErrors(t, "extending", ExtendAll(t.Context(), fences), nil)
			if *commits != want {
				t.Errorf("%d fences: %d transactions, want %d", n, *commits, want)
			}
			p.wantWritten(fences, time.Now().Add(window))
		})
	}
}

// wantWritten checks that the fences and the store say the same.
func (p *place) wantWritten(fences []*Fence, horizon time.Time) {
	p.t.Helper()
	owners, err := Owners(p.t.Context(), p.service.Client("reader"), prefix)
	if err != nil || len(owners) != len(fences) {
		p.t.Fatal(len(owners), err)
	}
	for i, f := range fences {
		wantTime(p.t, fmt.Sprintf("the horizon of fence %d", i), f.Horizon(), horizon)
		wantTime(p.t, fmt.Sprintf("the horizon of %d in the store", i), owners[i].Horizon, horizon)
	}
}

// A joint write in doubt moves no bound, and is settled by the next ones.
func TestExtendAllSettlesAWriteInDoubt(t *testing.T) {
	for _, outcome := range []memstore.Outcome{memstore.FailBefore, memstore.FailAfter, memstore.ApplyLate} {
		inBubble(t, func(t *testing.T, p *place) {
			a := p.party("a")
			fences := a.mustClaimAll(65)
			before := fences[0].Horizon()
			time.Sleep(window / 3)
			a.befall(outcome)
			wantErrors(t, "in doubt", ExtendAll(t.Context(), fences), store.ErrAmbiguous)
			for _, f := range fences {
				wantTime(t, "the horizon in doubt", f.Horizon(), before)
			}
			a.client.Inject(nil)
			for range 3 {
				time.Sleep(2 * time.Second) // the late one is applied in between
				wantErrors(t, "settling", ExtendAll(t.Context(), fences), nil)
			}
			p.wantWritten(fences, time.Now().Add(window))
		})
	}
}

func TestExtendAllInAPartition(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a := p.party("a")
		fences := a.mustClaimAll(2)
		before := fences[0].Horizon()
		a.client.CutOff(true)
		time.Sleep(time.Second)
		wantErrors(t, "cut off", ExtendAll(t.Context(), fences), store.ErrAmbiguous)
		p.wantWritten(fences, before)
		a.client.CutOff(false)
		wantErrors(t, "afterwards", ExtendAll(t.Context(), fences), nil)
		p.wantWritten(fences, time.Now().Add(window))
	})
}

// One lost fence costs two transactions for each halving, and no neighbour anything.
func TestOneLostAmongMany(t *testing.T) {
	losses := map[string]func(q *party, f *Fence) error{
		"deleted": func(q *party, f *Fence) error {
			_, err := q.client.Commit(q.t.Context(), store.Txn{Then: []store.Op{store.Delete(liveKey(prefix, f.node))}})
			return err
		},
		"session ended": func(q *party, f *Fence) error {
			q.service.Expire(f.session)
			return nil
		},
	}
	for name, lose := range losses {
		for _, lost := range []int{0, 40, 63} {
			inBubble(t, func(t *testing.T, p *place) {
				a := p.party("a")
				var fences []*Fence
				for node := range int64(64) {
					a.renew()
					fences = append(fences, a.mustClaim(node))
				}
				before := fences[lost].Horizon()
				if err := lose(a, fences[lost]); err != nil {
					t.Fatal(err)
				}
				time.Sleep(window / 3)
				commits := a.befall(memstore.Answered)
				errs := ExtendAll(t.Context(), fences)
				if *commits > 1+2*6 {
					t.Errorf("%s: %d transactions", name, *commits)
				}
				wantErrors(t, name, errs[lost:lost+1], ErrLost)
				wantTime(t, "its horizon", fences[lost].Horizon(), before)
				wantErrors(t, name, slices.Delete(errs, lost, lost+1), nil)
				for _, f := range slices.Delete(slices.Clone(fences), lost, lost+1) {
					wantTime(t, "a neighbour's horizon", f.Horizon(), time.Now().Add(window))
				}
				*commits = 0
				time.Sleep(window / 3)
				wantErrors(t, "once more", ExtendAll(t.Context(), fences)[lost:lost+1], ErrLost)
				if *commits != 1 {
					t.Errorf("%s: what is lost takes part: %d transactions", name, *commits)
				}
			})
		}
	}
}

// brittle is a store whose commits fail in one way when they touch one key.
type brittle struct {
	store.Store
	key     string
	err     error
	commits int
}

func (b *brittle) Commit(ctx context.Context, txn store.Txn) (store.Version, error) {
	b.commits++
	touches := func(o store.Op) bool { return strings.Contains(o.Key, b.key) }
	if b.err != nil && slices.ContainsFunc(txn.Then, touches) {
		return 0, b.err
	}
	return b.Store.Commit(ctx, txn)
}

// What the store refuses is found by halves; a store that is unavailable is not asked again.
func TestExtendAllAgainstAStoreThatRefuses(t *testing.T) {
	for _, c := range []struct {
		err     error
		commits int
		spared  error // what the neighbours get
	}{{store.ErrRefused, 5, nil}, {store.ErrUnavailable, 1, store.ErrUnavailable}} {
		inBubble(t, func(t *testing.T, p *place) {
			a := p.party("a")
			b := &brittle{Store: a.client, key: "/2"}
			a.config.Store = b
			fences := a.mustClaimAll(4)
			time.Sleep(window / 3)
			b.err, b.commits = c.err, 0
			errs := ExtendAll(t.Context(), fences)
			wantErrors(t, "the fence", errs[2:3], c.err)
			wantErrors(t, "its neighbours", slices.Delete(errs, 2, 3), c.spared)
			if b.commits != c.commits {
				t.Errorf("%v: %d transactions, want %d", c.err, b.commits, c.commits)
			}
			b.err = nil
			wantErrors(t, "afterwards", ExtendAll(t.Context(), fences), nil)
			p.wantWritten(fences, time.Now().Add(window))
		})
	}
}

// While many are extended, single ones may be extended and released.
func TestExtendAllBesideSingleFences(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a := p.party("a")
		fences := a.mustClaimAll(20)
		var others sync.WaitGroup
		for i, f := range fences {
			others.Go(func() {
				time.Sleep(time.Duration(i) * time.Second)
				if err := f.Extend(t.Context()); err != nil {
					t.Error(err)
				}
				release(t, f, f.Floor().Add(time.Second))
			})
		}
		for range 30 {
			time.Sleep(time.Second)
			for i, err := range ExtendAll(t.Context(), fences) {
				if err != nil && !errors.Is(err, ErrLost) {
					t.Errorf("fence %d: %v", i, err)
				}
			}
		}
		others.Wait()
		wantErrors(t, "in the end", ExtendAll(t.Context(), fences), ErrLost)
	})
}
