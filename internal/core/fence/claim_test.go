package fence

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

func TestClaimTakesWhatIsFree(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a := p.party("a")
		if f := a.mustClaim(40); f.Node() != 40 {
			t.Errorf("claimed node ID %d", f.Node())
		}
		_, err := a.claim(40)
		wantError[*HeldError](t, err, "node ID 40 is held")
		a.mustClaim(41)
		if _, err := a.claim(-1); err == nil {
			t.Error("claiming -1: no error")
		}
	})
}

// A claim reads the keys of its own node ID, however many others there are.
func TestAClaimReadsItsOwnNodeID(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a, b := p.party("a"), p.party("b")
		b.config.Before = b.mustClaim(8)
		for node := range int64(8) {
			a.mustClaim(node)
		}
		b.client.Inject(func(c memstore.Call) memstore.Fault {
			if c.Op == memstore.List || c.Op == memstore.Get && !strings.HasSuffix(c.Key, "/9") &&
				!strings.HasSuffix(c.Key, "/8") {
				t.Errorf("it reads: %v %s", c.Op, c.Key)
			}
			return memstore.Fault{}
		})
		b.mustClaim(9)
	})
}

// What is without a session keeps its node ID.
func TestOwnersInSQLLast(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a := p.party("a")
		a.mustClaim(0)
		if _, err := p.party("b").config.Store.Commit(t.Context(), store.Txn{Then: []store.Op{
			store.Put("w/live/1", liveValue("sql-1@2", 0, "postgresql:shop/public.firn_next")),
		}}); err != nil {
			t.Fatal(err)
		}
		for node, want := range []bool{false, true} {
			_, err := a.claim(int64(node))
			var held *HeldError
			if !errors.As(err, &held) || held.Lasting() != want {
				t.Errorf("node ID %d: %v; want that its owner lasts: %v", node, err, want)
			}
		}
	})
}

// A floor that lies ahead is waited for, but not for too long.
func TestClaimWaitsForAFloorThatIsNear(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		fast, b := p.party("fast"), p.party("b")
		fast.off = 50 * time.Second
		f := fast.mustClaim(0) // horizon: in 80 s
		release(t, f, f.Horizon())
		_, err := b.claim(0)
		wantError[*ClockBehindError](t, err, "1m20s behind", "node ID 0", "up to 1m0s")
		time.Sleep(30 * time.Second)
		h := b.mustClaim(0)
		wantTime(t, "the floor", h.Floor(), f.Horizon())
		wantTime(t, "the horizon", h.Horizon(), h.Floor())
		time.Sleep(window)
		if err := h.Extend(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantTime(t, "the horizon before the floor has come", h.Horizon(), h.Floor().Add(window-20*time.Second))
	})
}

func release(t *testing.T, f *Fence, end time.Time) {
	t.Helper()
	if err := f.Release(t.Context(), func() time.Time { return end }); err != nil {
		t.Fatal(err)
	}
}

// Who claims begins at the later of the last owner's horizon and NotBefore, however far ahead that is.
func TestClaimBeginsNotBeforeItsOwnFloor(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a := p.party("a")
		floor := time.Now().Add(time.Hour)
		a.config.NotBefore = floor.Add(time.Nanosecond)
		f := a.mustClaim(0)
		wantTime(t, "the floor", f.Floor(), floor.Add(time.Millisecond))
		wantTime(t, "the horizon", f.Horizon(), f.Floor())
		release(t, f, f.Horizon())

		time.Sleep(time.Hour)
		a.config.NotBefore = floor
		g := a.mustClaim(0)
		wantTime(t, "the second floor", g.Floor(), f.Horizon())
		release(t, g, time.Time{})

		time.Sleep(time.Hour)
		h := a.mustClaim(1)
		wantTime(t, "a floor that is past", h.Floor(), floor)
		wantTime(t, "the horizon", h.Horizon(), time.Now().Add(window))
	})
}

const guard = "guard"

// guarded puts the guard's key and has the party's claims depend on it.
func (q *party) guarded() {
	q.t.Helper()
	version, err := q.client.Commit(q.t.Context(), store.Txn{Then: []store.Op{store.Put(guard, nil)}})
	if err != nil {
		q.t.Fatal(err)
	}
	q.config.Guards = []store.Condition{{Key: guard, Version: version}}
}

func TestTheGuardStopsClaimsAndNothingElse(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a := p.party("a")
		a.guarded()
		f, g := a.mustClaim(0), a.mustClaim(1)
		old := a.config
		a.guarded() // it changes
		time.Sleep(window / 3)
		if err := f.Extend(t.Context()); err != nil {
			t.Errorf("Extend: %v", err)
		}
		release(t, g, time.Now())
		a.mustClaim(2) // under the new guard
		a.config = old
		if _, err := a.claim(1); !errors.Is(err, ErrClosed) {
			t.Errorf("claiming what was released: %v", err)
		}
		if _, err := a.claim(3); !errors.Is(err, ErrClosed) {
			t.Errorf("claiming what was never used: %v", err)
		}
	})
}

// The guard changes while a claim is in doubt. If it had been applied it stands, else it never will be.
func TestTheGuardChangesUnderAClaimInDoubt(t *testing.T) {
	for outcome, want := range map[memstore.Outcome]error{
		memstore.FailBefore: ErrClosed, memstore.FailAfter: nil, memstore.ApplyLate: ErrClosed,
	} {
		inBubble(t, func(t *testing.T, p *place) {
			a, closer := p.party("a"), p.party("closer")
			a.guarded()
			calls := 0
			a.client.Inject(func(c memstore.Call) memstore.Fault {
				if calls++; calls != 3 { // the first two calls are reads, the third is a Commit
					return memstore.Fault{}
				}
				time.AfterFunc(time.Millisecond, closer.guarded)
				fault := memstore.Fault{Outcome: outcome}
				if outcome == memstore.ApplyLate {
					fault.Delay = 5 * time.Second
				}
				return fault
			})
			if _, err := a.claim(0); !errors.Is(err, want) {
				t.Errorf("fault %d: %v, want %v", outcome, err, want)
			}
			time.Sleep(10 * time.Second) // the late one arrives
			owners, err := Owners(t.Context(), a.client, prefix)
			if held := len(owners) > 0; err != nil || held != (want == nil) {
				t.Errorf("fault %d: %+v, %v", outcome, owners, err)
			}
		})
	}
}

func TestAStoreThatRefusesEndsTheClaim(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a := p.party("a")
		a.client.Close()
		if _, err := a.claim(0); !errors.Is(err, store.ErrRefused) {
			t.Errorf("got %v", err)
		}
	})
}
