package fence

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// bubbled is a layout whose time has begun in a bubble.
var bubbled = func() firn.Layout {
	l := firn.Default
	l.Epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	return l
}()

// used is a process that makes IDs under a fence, of which a test makes a copy.
type used struct {
	*Fence
	client    *memstore.Client
	generator *firn.Generator
}

func (q *party) use(f *Fence) *used {
	q.t.Helper()
	g, err := firn.NewGenerator(bubbled, f.Node(), firn.WithFloor(f.Floor()), firn.WithBound(f.Bound()),
		firn.FailAtBound())
	if err != nil {
		q.t.Fatal(err)
	}
	return &used{f, q.client, g}
}

func (u *used) copy(q *party) *used { return q.use(u.Clone(q.config, u.session)) }

// extend extends the fence as a member does.
func (u *used) extend(t *testing.T) error {
	err := u.Extend(t.Context())
	if errors.Is(err, ErrCopied) {
		u.generator.Stop()
	} else {
		u.generator.SetBound(u.Bound())
	}
	return err
}

// Two processes with the same session, versions and operation, as a snapshot makes them: one of them goes on, whichever
// writes first, and the other one finds out at its next write. No ID beyond what was reserved at the snapshot comes
// twice.
func TestACopyOfAProcess(t *testing.T) {
	for first := range 2 {
		inBubble(t, func(t *testing.T, p *place) {
			a := p.party("a")
			f := a.use(a.mustClaim(7))
			g := f.copy(p.party("twin"))
			reserved := f.Horizon()
			both := []*used{f, g}
			given, ended := map[firn.ID]bool{}, 0
			for range 40 {
				for i := range both {
					switch err := both[(i+first)%2].extend(t); {
					case errors.Is(err, ErrCopied):
						ended++
					case err != nil && !errors.Is(err, ErrLost):
						t.Fatal(err)
					}
				}
				for range 10 {
					time.Sleep(window / 30)
					for _, u := range both {
						id, err := u.generator.TryNext()
						if err != nil {
							continue
						}
						if at, _ := bubbled.Time(id); given[id] && !at.Before(reserved) {
							t.Fatalf("%d, of %v, comes twice; %v was reserved when the copy was made", id, at, reserved)
						}
						given[id] = true
					}
				}
			}
			winner, loser := both[first], both[1-first]
			if s := winner.State(); s.Phase != Held || s.Copied {
				t.Errorf("the first to write is %+v", s)
			}
			if s := loser.State(); s.Phase != Lost || !s.Copied || ended == 0 {
				t.Errorf("the other one is %+v", s)
			}
			if err := loser.Release(t.Context(), func() time.Time { return time.Now() }); err != nil {
				t.Errorf("the other one releases: %v", err)
			}
			if err := winner.extend(t); err != nil {
				t.Errorf("after that, the first one: %v", err)
			}
		})
	}
}

// A process that is set back finds what it wrote itself, and can't know that from what a copy wrote.
func TestAProcessThatIsSetBack(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a := p.party("a")
		f := a.mustClaim(7)
		before := f.Clone(a.config, a.session)
		for range 3 {
			time.Sleep(window / 3)
			if err := f.Extend(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := before.Extend(t.Context()); !errors.Is(err, ErrCopied) {
			t.Errorf("after it was set back: %v, want ErrCopied", err)
		}
	})
}

// A write that was sent before the copy belongs to both. The next ones do not.
func TestACopyWhileAWriteIsInDoubt(t *testing.T) {
	for _, outcome := range []memstore.Outcome{memstore.FailBefore, memstore.FailAfter} {
		inBubble(t, func(t *testing.T, p *place) {
			a := p.party("a")
			f := a.mustClaim(7)
			time.Sleep(window / 3)
			a.client.Inject(func(memstore.Call) memstore.Fault { return memstore.Fault{Outcome: outcome} })
			if err := f.Extend(t.Context()); !errors.Is(err, store.ErrAmbiguous) {
				t.Fatal(err)
			}
			a.client.Inject(nil)
			both := []*Fence{f, f.Clone(p.party("twin").config, a.session)}
			copied := 0
			for range 3 {
				time.Sleep(window / 3)
				for _, f := range both {
					if err := f.Extend(t.Context()); errors.Is(err, ErrCopied) {
						copied++
						both = both[:1]
					} else if err != nil {
						t.Fatal(err)
					}
				}
			}
			if copied != 1 {
				t.Errorf("%d of two found out that there is a copy, want one", copied)
			}
		})
	}
}

// A process may be copied in the middle of a claim.
func TestACopyDuringAClaim(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a := p.party("a")
		f := newFence(a.config.withDefaults(), a.session, 7, View{})
		g := f.Clone(p.party("twin").config, a.session)
		for _, f := range []*Fence{f, g} {
			if err := f.write(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if s := f.State(); s.Phase != Held {
			t.Errorf("the first to claim is %+v", s)
		}
		if s := g.State(); s.Phase != Failed || !s.Copied {
			t.Errorf("the other one is %+v", s)
		}
	})
}

// Claim says that a copy was faster, rather than that another owner holds the node ID, which its caller would give up.
func TestAClaimThatACopyHasMade(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a, twin := p.party("a"), p.party("twin")
		made := false
		a.client.Inject(func(c memstore.Call) memstore.Fault {
			if c.Op == memstore.Commit && !made { // the copy was made before this write, and sends its own
				made = true
				other := store.Txn{If: c.Txn.If, Then: slices.Clone(c.Txn.Then)}
				other.Then[0].Value = append(bytes.Clone(other.Then[0].Value), "OTHER"...)
				if _, err := twin.client.Commit(t.Context(), other); err != nil {
					t.Error(err)
				}
			}
			return memstore.Fault{}
		})
		if _, err := a.claim(7); !errors.Is(err, ErrCopied) {
			t.Errorf("the claim returns %v, want ErrCopied", err)
		}
	})
}

// After a copy was made, one of the two claims a node ID, and the other one is to claim it, too: it is under its own
// session, which it renews, so it would wait for ever. It knows by the operation ID that a copy has it. A claim of its
// own in doubt is none of a copy's, nor is that of another member.
func TestAClaimForWhatACopyHolds(t *testing.T) {
	inBubble(t, func(t *testing.T, p *place) {
		a, twin, other := p.party("a"), p.party("twin"), p.party("b")
		a.config.Holder, twin.config.Holder, other.config.Holder = NewHolder("a"), NewHolder("a"), NewHolder("b")
		twin.session = a.session
		var held *HeldError
		before := twin.mustClaim(6)
		a.config.Holder.remember(before.operation) // a claim whose outcome it did not see
		if _, err := a.claim(6); !errors.As(err, &held) || errors.Is(err, ErrCopied) {
			t.Errorf("a node ID that it may have claimed itself: %v, want a HeldError", err)
		}
		f := twin.mustClaim(7)
		if _, err := a.claim(7); !errors.Is(err, ErrCopied) {
			t.Errorf("a node ID that a copy holds: %v, want ErrCopied", err)
		}
		if _, err := other.claim(7); !errors.As(err, &held) {
			t.Errorf("a node ID that another member holds: %v, want a HeldError", err)
		}
		if err := f.Release(t.Context(), func() time.Time { return time.Time{} }); err != nil {
			t.Fatal(err)
		}
		mine := a.mustClaim(7)
		if _, err := a.claim(7); !errors.As(err, &held) {
			t.Errorf("a node ID that it holds itself: %v, want a HeldError", err)
		}
		if err := mine.Release(t.Context(), func() time.Time { return time.Time{} }); err != nil {
			t.Fatal(err)
		}
		if n := len(a.config.Holder.made); n != 1 {
			t.Errorf("%d operation IDs are remembered, want the one of the claim in doubt", n)
		}
	})
}
