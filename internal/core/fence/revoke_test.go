package fence

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

func TestRevokeTakesEveryNodeID(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a, closer := p.party("a"), p.party("closer")
		if h, err := Revoke(t.Context(), closer.client, prefix); err != nil || !h.IsZero() {
			t.Errorf("without owners: %v, %v", h, err)
		}
		fences := a.mustClaimAll(2*store.MaxOps + 1)
		time.Sleep(time.Second)
		release(t, a.mustClaim(1000), time.Now().Add(time.Hour))
		horizon, err := Revoke(t.Context(), closer.client, prefix)
		if err != nil {
			t.Fatal(err)
		}
		wantTime(t, "the last horizon", horizon, time.Now().Add(time.Hour))
		wantErrors(t, "extending", ExtendAll(t.Context(), fences), ErrLost)
		all, _ := closer.client.List(t.Context(), prefix+liveKeys)
		if len(all) != 0 {
			t.Errorf("%d are left", len(all))
		}
	})
}

// Whatever happens to its writes, and whichever owners leave meanwhile, it ends when no owner is left.
func TestRevokeTriesAgain(t *testing.T) {
	for _, outcome := range []memstore.Outcome{
		memstore.Answered, memstore.FailBefore, memstore.FailAfter,
		memstore.ApplyLate,
	} {
		inBubble(t, func(t *testing.T, p *place) {
			a, closer := p.party("a"), p.party("closer")
			a.mustClaim(1)
			g := a.mustClaim(2)
			calls := 0
			closer.client.Inject(func(c memstore.Call) memstore.Fault {
				if calls++; calls > 6 {
					return memstore.Fault{}
				}
				if calls == 2 {
					release(t, g, time.Now()) // between List and Commit
				}
				return memstore.Fault{Outcome: outcome, Delay: time.Millisecond}
			})
			horizon, err := Revoke(t.Context(), closer.client, prefix)
			if err != nil {
				t.Fatal(err)
			}
			owners, err := Owners(t.Context(), a.client, prefix)
			if err != nil || len(owners) != 2 || owners[0].Live || owners[1].Live {
				t.Errorf("fault %d: %+v, %v", outcome, owners, err)
			}
			wantTime(t, "the last horizon", horizon, owners[0].Horizon)
		})
	}
}

func TestRevokeSaysWhatItCanNotKnow(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a := p.party("a")
		f := a.mustClaim(1)
		a.put(reportedKey(prefix, 5), "soon")
		if _, err := Revoke(t.Context(), a.client, prefix); err == nil {
			t.Error("with a horizon that can't be read: no error")
		}
		time.Sleep(time.Second)
		if err := f.Extend(t.Context()); !errors.Is(err, ErrLost) {
			t.Errorf("Extend: %v", err)
		}
	})
}

func TestRevokeEnds(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a := p.party("a")
		a.mustClaim(1)
		a.befall(memstore.FailBefore)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := Revoke(ctx, a.client, prefix); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with its context: %v", err)
		}
		a.client.Close()
		if _, err := Revoke(t.Context(), a.client, prefix); !errors.Is(err, store.ErrRefused) {
			t.Errorf("with its store: %v", err)
		}
	})
}

// Once its guard has changed, those who have claimed since are left alone.
func TestRevokeUnderAGuard(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a, closer := p.party("a"), p.party("closer")
		closer.guarded()
		guard := closer.config.Guards[0]
		f := a.mustClaim(1)
		changeGuard(t, closer.client, guard)
		if _, err := Revoke(t.Context(), closer.client, prefix, guard); !errors.Is(err, ErrClosed) {
			t.Errorf("under a guard that has changed: %v", err)
		}
		time.Sleep(time.Second)
		if err := f.Extend(t.Context()); err != nil {
			t.Errorf("Extend: %v", err)
		}
		kv, err := closer.client.Get(t.Context(), guard.Key)
		if err != nil {
			t.Fatal(err)
		}
		guard.Version = kv.Version
		horizon, err := Revoke(t.Context(), closer.client, prefix, guard)
		if err != nil {
			t.Fatal(err)
		}
		wantTime(t, "the last horizon", horizon, f.Horizon())
		time.Sleep(time.Second)
		if err := f.Extend(t.Context()); !errors.Is(err, ErrLost) {
			t.Errorf("Extend: %v", err)
		}
	})
}
