package fence

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// Together they fare as they would one by one, once what was in doubt is settled; and neither way has a bound
// ever been ahead of what is written.
func TestExtendAllAgreesWithExtend(t *testing.T) {
	oneByOne := func(ctx context.Context, fences []*Fence) (errs []error) {
		for _, f := range fences {
			errs = append(errs, f.Extend(ctx))
		}
		return errs
	}
	for seed := range uint64(15) {
		inBubble(t, func(t *testing.T, p *place) {
			other := &place{t, memstore.NewService()}
			r := rand.New(rand.NewPCG(seed, 7))
			n := 1 + r.IntN(90)
			together := &crowd{party: p.party("together"), extend: ExtendAll}
			single := &crowd{party: other.party("single"), extend: oneByOne}
			crowds := []*crowd{together, single}
			for _, c := range crowds {
				c.fences = c.mustClaimAll(n)
			}
			for range 20 {
				time.Sleep(time.Duration(1+r.IntN(4)) * time.Second)
				lost := r.IntN(8 * n)
				for _, c := range crowds {
					c.harass(r, lost)
				}
				together.settle()
				single.settle()
				for i, f := range together.fences {
					one, two := f.State(), single.fences[i].State()
					if one.Phase != two.Phase || one.Phase == Held && one.Horizon != two.Horizon {
						t.Fatalf("seed %d: fence %d: together %+v, single %+v", seed, i, one, two)
					}
				}
			}
		})
	}
}

// crowd is fences that are extended in one of the two ways.
type crowd struct {
	*party
	fences []*Fence
	extend func(context.Context, []*Fence) []error
}

// harass has a fence lost, if there is one of that number, and a few attempts fail.
func (c *crowd) harass(r *rand.Rand, lost int) {
	if lost < len(c.fences) {
		if _, err := c.client.Commit(c.t.Context(),
			store.Txn{Then: []store.Op{store.Delete(liveKey(prefix, int64(lost)))}}); err != nil {
			c.t.Fatal(err)
		}
	}
	c.client.Inject(func(call memstore.Call) memstore.Fault {
		if call.Op != memstore.Commit && call.Op != memstore.List { // the session's renewals come from elsewhere
			return memstore.Fault{}
		}
		return memstore.Fault{Outcome: memstore.Outcome(r.IntN(4)), Delay: time.Duration(r.IntN(3)) * time.Millisecond}
	})
	for range r.IntN(3) {
		c.extend(c.t.Context(), c.fences)
		c.neverAhead()
	}
	c.client.Inject(nil)
}

// settle ends at a moment that both ways have in common.
func (c *crowd) settle() {
	for range 2 {
		for i, err := range c.extend(c.t.Context(), c.fences) {
			if err != nil && !errors.Is(err, ErrLost) {
				c.t.Errorf("fence %d: %v", i, err)
			}
		}
		c.neverAhead()
	}
}

func (c *crowd) neverAhead() {
	owners, err := Owners(c.t.Context(), c.service.Client("reader"), prefix)
	if err != nil {
		c.t.Fatal(err)
	}
	for i, f := range c.fences {
		if f.Horizon().After(owners[i].Horizon) {
			c.t.Errorf("fence %d: the bound is %v, and %v is written", i, f.Horizon(), owners[i].Horizon)
		}
	}
}
