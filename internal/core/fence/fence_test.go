package fence

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

const (
	prefix = "w/"
	ttl    = 20 * time.Second
	window = 30 * time.Second
)

// place is a node ID's store, seen by as many owners as a test wants.
type place struct {
	t       *testing.T
	service *memstore.Service
}

func inBubble(t *testing.T, f func(t *testing.T, p *place)) {
	synctest.Test(t, func(t *testing.T) { f(t, &place{t, memstore.NewService()}) })
}

// party is one process that may own node IDs.
type party struct {
	*place
	client  *memstore.Client
	session store.Session
	config  Config
	off     time.Duration // how far its clock is off
}

func (p *place) party(name string) *party {
	p.t.Helper()
	c := p.service.Client(name)
	p.t.Cleanup(func() { c.Close() })
	q := &party{place: p, client: c}
	q.config = Config{Store: c, Prefix: prefix, Owner: name, Clock: func() time.Time {
		return time.Now().Add(q.off)
	}, Window: window}
	q.renew()
	return q
}

func (q *party) renew() {
	q.t.Helper()
	var err error
	if q.session, err = q.client.OpenSession(q.t.Context(), ttl); err != nil {
		q.t.Fatal(err)
	}
}

func (q *party) claim(node int64) (*Fence, error) {
	return Claim(q.t.Context(), q.config, q.session, node)
}

func (q *party) mustClaim(node int64) *Fence {
	q.t.Helper()
	f, err := q.claim(node)
	if err != nil {
		q.t.Fatal(err)
	}
	return f
}

func (q *party) crash() {
	q.client.CutOff(true)
	time.Sleep(ttl + time.Second) // its session ends
}

func wantTime(t *testing.T, what string, got, want time.Time) {
	t.Helper()
	if !got.Equal(want) {
		t.Errorf("%s is %v, want %v", what, got.UTC(), want.UTC())
	}
}

// The horizon is the window ahead of the clock, and moves only when the store says so.
func TestExtendMovesTheHorizonOnceTheStoreHasConfirmed(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a := p.party("a")
		f := a.mustClaim(7)
		claimed := time.Now()
		wantTime(t, "the first horizon", f.Horizon(), claimed.Add(window))
		time.Sleep(window / 3)

		a.client.Inject(func(c memstore.Call) memstore.Fault { return memstore.Fault{Outcome: memstore.FailBefore} })
		if err := f.Extend(t.Context()); !errors.Is(err, store.ErrAmbiguous) {
			t.Errorf("Extend without an answer: %v", err)
		}
		wantTime(t, "the horizon without an answer", f.Horizon(), claimed.Add(window))

		a.client.Inject(nil)
		if err := f.Extend(t.Context()); err != nil {
			t.Error(err)
		}
		wantTime(t, "the horizon", f.Horizon(), time.Now().Add(window))
		if _, err := p.party("b").claim(7); !isHeld(err) {
			t.Errorf("another owner claims: %v", err)
		}
	})
}

// A write whose answer was lost is settled by the next one: if it was applied, the horizon that the
// store has is taken over, and the node ID is not lost.
func TestExtendSettlesAWriteInDoubt(t *testing.T) {
	for _, outcome := range []memstore.Outcome{memstore.FailBefore, memstore.FailAfter, memstore.ApplyLate} {
		inBubble(t, func(t *testing.T, p *place) {
			a := p.party("a")
			f := a.mustClaim(7)
			time.Sleep(window / 3)
			a.client.Inject(func(memstore.Call) memstore.Fault {
				return memstore.Fault{Outcome: outcome, Delay: 3 * time.Second}
			})
			if err := f.Extend(t.Context()); !errors.Is(err, store.ErrAmbiguous) {
				t.Fatalf("fault %d: %v", outcome, err)
			}
			a.client.Inject(nil)
			for range 3 {
				time.Sleep(2 * time.Second) // the late one is applied in between
				if err := f.Extend(t.Context()); err != nil {
					t.Errorf("fault %d: %v", outcome, err)
				}
			}
			wantTime(t, "the horizon", f.Horizon(), time.Now().Add(window))
		})
	}
}

// A write that arrives after a later one can't bring the horizon back.
func TestALateWriteIsNotApplied(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a, b := p.party("a"), p.party("b")
		f := a.mustClaim(7)
		time.Sleep(window / 3)
		a.client.Inject(func(memstore.Call) memstore.Fault {
			return memstore.Fault{Outcome: memstore.ApplyLate, Delay: 10 * time.Second}
		})
		if err := f.Extend(t.Context()); !errors.Is(err, store.ErrAmbiguous) {
			t.Fatal(err)
		}
		a.client.Inject(nil)
		time.Sleep(5 * time.Second)
		if err := f.Extend(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		a.crash()
		wantTime(t, "the successor's floor", b.mustClaim(7).Floor(), f.Horizon())
	})
}

// An owner whose live key is gone has lost the node ID, even before another takes it.
func TestALostSessionIsALostNodeID(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a := p.party("a")
		f := a.mustClaim(7)
		p.service.Expire(a.session)
		time.Sleep(window / 3)
		horizon := f.Horizon()
		if err := f.Extend(t.Context()); !errors.Is(err, ErrLost) {
			t.Errorf("Extend: %v", err)
		}
		wantTime(t, "the horizon", f.Horizon(), horizon)
	})
}

// A successor's floor is the horizon of its predecessor.
func TestSuccessorBeginsAtTheHorizonOfACrashedOwner(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a, b := p.party("a"), p.party("b")
		f := a.mustClaim(7)
		a.crash()
		g := b.mustClaim(7)
		wantTime(t, "the floor", g.Floor(), f.Horizon())
		wantTime(t, "the horizon", g.Horizon(), time.Now().Add(window))
		a.client.CutOff(false)
		if err := f.Extend(t.Context()); !errors.Is(err, ErrLost) {
			t.Errorf("the crashed owner extends: %v", err)
		}
		if err := f.Extend(t.Context()); !errors.Is(err, ErrLost) {
			t.Errorf("and again: %v", err)
		}
		wantTime(t, "its horizon", f.Horizon(), g.Floor())
	})
}

func TestReleaseWritesTheEndOfTheUse(t *testing.T) {
	for _, c := range []struct {
		name      string
		used      time.Duration // how long after the floor the use ended; 0: nothing was used
		wantFloor time.Duration // of the successor, after the own
	}{
		{"used", 4500*time.Microsecond + 1, 5 * time.Millisecond},
		{"not used", 0, 0},
	} {
		inBubble(t, func(t *testing.T, p *place) {
			a, b := p.party("a"), p.party("b")
			release(t, a.mustClaim(7), time.Now().Add(time.Second))
			f := a.mustClaim(7)
			stopped := false
			err := f.Release(t.Context(), func() time.Time {
				if stopped = true; c.used == 0 {
					return time.Time{}
				}
				return f.Floor().Add(c.used)
			})
			if err != nil || !stopped {
				t.Errorf("%s: Release: %v, stopped: %v", c.name, err, stopped)
			}
			g := b.mustClaim(7)
			wantTime(t, c.name+": the floor", g.Floor(), f.Floor().Add(c.wantFloor))
			if err := f.Extend(t.Context()); !errors.Is(err, ErrLost) {
				t.Errorf("%s: Extend after Release: %v", c.name, err)
			}
		})
	}
}

// Nothing is written before the generator has stopped, whatever becomes of the write.
func TestReleaseStopsFirst(t *testing.T) {
	for _, outcome := range []memstore.Outcome{
		memstore.Answered, memstore.FailBefore, memstore.FailAfter,
		memstore.ApplyLate,
	} {
		inBubble(t, func(t *testing.T, p *place) {
			a, b := p.party("a"), p.party("b")
			f := a.mustClaim(7)
			stops, tries := 0, 0
			a.client.Inject(func(c memstore.Call) memstore.Fault {
				if stops == 0 {
					t.Errorf("%s before the generator has stopped", c.Op)
				}
				if tries++; tries > 1 {
					return memstore.Fault{}
				}
				return memstore.Fault{Outcome: outcome, Delay: time.Second}
			})
			end := time.Now().Add(5 * time.Millisecond)
			for f.Release(t.Context(), func() time.Time { stops++; return end }) != nil {
				time.Sleep(700 * time.Millisecond)
			}
			if stops != 1 {
				t.Errorf("fault %d: stopped %d times", outcome, stops)
			}
			wantTime(t, "the successor's floor", b.mustClaim(7).Floor(), end)
		})
	}
}

// What is lost can't be released, and says nothing.
func TestReleaseAfterALoss(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a, b := p.party("a"), p.party("b")
		f := a.mustClaim(7)
		p.service.Expire(a.session)
		g := b.mustClaim(7)
		if err := f.Release(t.Context(), time.Now); err != nil {
			t.Error(err)
		}
		if err := g.Extend(t.Context()); err != nil {
			t.Errorf("the successor: %v", err)
		}
		wantTime(t, "the successor's floor", g.Floor(), f.Horizon())
	})
}

// A claim in doubt is tried again until it is clear who has the node ID.
func TestClaimSettlesAWriteInDoubt(t *testing.T) {
	for _, outcome := range []memstore.Outcome{memstore.FailBefore, memstore.FailAfter, memstore.ApplyLate} {
		inBubble(t, func(t *testing.T, p *place) {
			a := p.party("a")
			commits := 0
			a.client.Inject(func(c memstore.Call) memstore.Fault {
				if commits++; c.Op != memstore.Commit || commits > 4 {
					return memstore.Fault{}
				}
				return memstore.Fault{Outcome: outcome, Delay: 30 * time.Millisecond}
			})
			f := a.mustClaim(7)
			if s := f.State(); s.Phase != Held {
				t.Errorf("fault %d: %+v", outcome, s)
			}
			a.client.Inject(nil)
			time.Sleep(window / 3)
			if err := f.Extend(t.Context()); err != nil {
				t.Errorf("fault %d: %v", outcome, err)
			}
		})
	}
}

func TestClaimEndsWithItsContext(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a := p.party("a")
		a.client.Inject(func(c memstore.Call) memstore.Fault {
			if c.Op == memstore.Commit {
				return memstore.Fault{Outcome: memstore.FailBefore}
			}
			return memstore.Fault{}
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if f, err := Claim(ctx, a.config, a.session, 0); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, %v", f, err)
		}
	})
}

func TestClaimFailsWhenItsSessionHasEnded(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a := p.party("a")
		p.service.Expire(a.session)
		if f, err := a.claim(0); !errors.Is(err, store.ErrSessionEnded) {
			t.Errorf("got %v, %v", f, err)
		}
	})
}

// A horizon moves by no more than the time that has passed and MaxStep, whatever the clock shows.
func TestAClockThatRanAheadDoesNotPoisonTheHorizon(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a := p.party("a")
		f := a.mustClaim(7)
		before := f.Horizon()
		a.off = 365 * 24 * time.Hour
		time.Sleep(window / 3)
		if err := f.Extend(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantTime(t, "the horizon", f.Horizon(), before.Add(window/3+DefaultMaxStep))
	})
}

// A step that the caller believes moves it in one write, to a window ahead of where the clock steps to.
func TestAStepThatIsBelievedMovesTheHorizon(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a := p.party("a")
		fences := a.mustClaimAll(3)
		time.Sleep(window / 3)
		more := store.Txn{Then: []store.Op{store.Put("more", nil)}}
		version, errs := Round{Fences: fences, Ahead: time.Hour, More: more}.Commit(t.Context())
		wantErrors(t, "extending", errs, nil)
		p.wantWritten(fences, time.Now().Add(time.Hour+window))
		if kv, err := a.client.Get(t.Context(), "more"); err != nil || version == 0 || kv.Version != version {
			t.Errorf("along with them it wrote version %d, and there is %+v, %v", version, kv, err)
		}
	})
}

// A clock that fell back leaves the horizon where it is.
func TestTheHorizonNeverGoesBack(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a := p.party("a")
		f := a.mustClaim(7)
		before := f.Horizon()
		a.off = -time.Hour
		time.Sleep(window / 3)
		if err := f.Extend(t.Context()); err != nil {
			t.Fatal(err)
		}
		wantTime(t, "the horizon", f.Horizon(), before)
	})
}

func TestForeignValuesAreLeftAlone(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a := p.party("a")
		for node, value := range map[int]string{0: "", 1: "soon", 2: "-5 x", 3: "99999999999999999999 x"} {
			_, err := a.client.Commit(t.Context(),
				store.Txn{Then: []store.Op{store.Put(fmt.Sprintf("%slast_reported_time/%d", prefix, node),
					[]byte(value))}})
			if err != nil {
				t.Fatal(err)
			}
		}
		for node := range int64(4) {
			_, err := a.claim(node)
			wantError[*ClockBehindError](t, err, "can't be read")
		}
		a.mustClaim(4)
	})
}

func TestTheStoreShowsPeopleWhoHoldsWhat(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a := p.party("a")
		f := a.mustClaim(7)
		all, err := a.client.List(t.Context(), prefix)
		if err != nil || len(all) != 2 {
			t.Fatal(all, err)
		}
		reported, live := all[0], all[1]
		want := fmt.Sprintf("%d %s ", f.Horizon().UnixMilli(), f.operation)
		if stamp, ok := strings.CutPrefix(string(reported.Value), want); reported.Key != "w/last_reported_time/7" ||
			!ok || !f.stamps.Sent(stamp) {
			t.Errorf("%s = %s, want %s and a stamp", reported.Key, reported.Value, want)
		}
		if want := fmt.Sprintf("%s %d a", f.operation, time.Now().UnixMilli()); live.Key != "w/live/7" ||
			string(live.Value) != want {
			t.Errorf("%s = %s, want %s", live.Key, live.Value, want)
		}
	})
}

func isHeld(err error) bool {
	var e *HeldError
	return errors.As(err, &e)
}

func wantError[E error](t *testing.T, err error, says ...string) {
	t.Helper()
	var e E
	if !errors.As(err, &e) {
		t.Errorf("the error is %v, want a %T", err, e)
		return
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("the error is %q; want it to say %q", err, s)
		}
	}
}

// A store that was set back shows an older version of the horizon: what came after is not known to it.
func TestAHorizonThatWentBackIsNoticed(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		q := p.party("a")
		f := q.mustClaim(0)
		backup := p.service.Backup()
		time.Sleep(window / 3)
		if err := f.Extend(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.service.RollBack(backup, 0)
		time.Sleep(window / 3)
		if err := f.Extend(t.Context()); !errors.Is(err, store.ErrRolledBack) {
			t.Errorf("%v, want ErrRolledBack", err)
		}
	})
}
