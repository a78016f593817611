package counter

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/floor"
	"github.com/firn-id/firn/internal/base/fresh"
	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/store"
)

// Config is what an owner needs. Store, Key and Rule are required.
type Config struct {
	Store store.Store
	Key   string // of the counter, see the function Key
	Rule  Rule
	Pace  Pace
	Clock func() int64  // in Unix nanoseconds; nil: that of the system
	By    func() string // what others know the owner by, see Rival; nil: nothing
}

// Dispenser gives the numbers of an owner's blocks: Blocks or, in strict order, a Queue.
type Dispenser interface {
	Next(ctx context.Context) (firn.ID, error)
	Fill(ctx context.Context, numbers []firn.ID) error
	Take(ctx context.Context, n int64) (last firn.ID, err error)
	Ready() error
	Given() int64

	Wanted() <-chan struct{}
	Demand(left int64, tooFew error) Demand
	Add(block Block)
	Fail(err error)
	Stop(why error) (unused [2]Block)
	Start()
}

// Owner is one process's part in a counter: it claims the blocks that its Dispenser gives. It has no goroutine of its
// own. Its methods are safe for concurrent use; those that write run one at a time.
type Owner struct {
	config  Config
	blocks  Dispenser
	writing chan struct{} // a lock, held while the owner reads and writes the store

	rival atomic.Pointer[string]

	mu     sync.Mutex // guards what follows, and is held while a step changes blocks
	state  State
	stamps fresh.Stamps
	unused [2]Block  // what nobody had got when the use stopped
	size   int64     // of the latest block
	given  int64     // how many numbers were given when it was claimed
	since  time.Time // and when that was
}

// NewOwner returns an owner that has read nothing yet.
func NewOwner(config Config) *Owner {
	if config.Clock == nil {
		config.Clock = func() int64 { return time.Now().UnixNano() }
	}
	o := &Owner{config: config, writing: make(chan struct{}, 1)}
	if config.Rule.strict {
		o.blocks = NewQueue()
	} else {
		o.blocks = newBlocks(config.Rule.expiry, config.Clock)
	}
	return o
}

// Blocks gives the numbers.
func (o *Owner) Blocks() Dispenser { return o.blocks }

// State returns what the owner knows.
func (o *Owner) State() State {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.state
}

// backoff paces the claims that lose a race.
var backoff = retry.Backoff{First: 5 * time.Millisecond, Max: time.Second}

// Claim claims a block of a size that follows the rate, unless there is one after the present one that callers have not
// begun. Guards are conditions of that claim.
//
// An *ExhaustedError or *AheadError is returned when there are no more numbers, a *LostError after the store has lost
// data and until an operator resumes the counter, store.ErrRolledBack when the owner finds that out itself, which the
// caller then tells by Tell and Told, and ErrClosed when a guard no longer holds. Other errors are those of the store,
// after which the caller claims again soon, and that of ctx.
func (o *Owner) Claim(ctx context.Context, guards ...store.Condition) error {
	if err := o.lock(ctx); err != nil {
		return err
	}
	defer o.unlock()
	for tries := 0; ; tries++ {
		var e Event = Due{}
		before := o.State()
		left, none := o.left(before)
		demand := o.blocks.Demand(left, none)
		switch before.Phase {
		case Held:
			if demand.Next > 0 && demand.Short <= demand.Next {
				return nil
			}
			if o.config.Rule.strict && demand.Short == 0 {
				return o.recover(ctx)
			}
			e = Need{max(o.next(), demand.Short)}
		case Losing:
			return o.lost()
		case Stopping, Returning, Released:
			return ErrReleased
		}
		if err := o.do(ctx, e, guards); err != nil {
			return err
		}
		s := o.State()
		switch {
		case s.Phase == Lost:
			return o.lost()
		case s.Greatest > before.Greatest:
			if tries == 0 {
				o.rival.Store(nil)
			}
			return nil
		case before.Phase != Held: // it has only read the record
			continue
		case s == before: // neither the counter nor the era has changed
			if err := checkGuards(ctx, o.config.Store, guards); err != nil {
				return err
			}
		}
		if err := retry.Sleep(ctx, backoff.After(tries)); err != nil { // others were faster
			return err
		}
	}
}

// recover finds out whether the store answers again after a claim in strict order has failed, though nobody waits.
func (o *Owner) recover(ctx context.Context) error {
	if o.blocks.Ready() == nil {
		return nil
	}
	err := o.do(ctx, Due{}, nil)
	if err == nil {
		o.blocks.Fail(nil)
	}
	return err
}

// Check reads the counter if the owner may have reserved numbers, so that it sees a loss of data, or what others gave
// back, without having to claim. The errors are those of Claim.
func (o *Owner) Check(ctx context.Context) error {
	if err := o.lock(ctx); err != nil {
		return err
	}
	defer o.unlock()
	if o.State().Phase != Held {
		return nil
	}
	return o.do(ctx, Due{}, nil)
}

// next returns how many numbers the next block is to have: by the rate, and at most half of those that are left, so
// that the last ones are not all reserved by one owner; 1 if callers alone say how many.
func (o *Owner) next() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.config.Rule.strict {
		return 1
	}
	left, _ := o.left(o.state)
	return max(min(o.config.Pace.Size(o.size, o.blocks.Given()-o.given, time.Since(o.since)), left/2), 1)
}

func (o *Owner) limits(s State) Limits {
	return o.config.Rule.Limits(time.Unix(0, o.config.Clock()), s.Known.Last)
}

// left returns how many numbers nobody has reserved yet, as far as that is known, and the error for who wants more.
func (o *Owner) left(s State) (n int64, none error) {
	l := o.limits(s)
	return l.Last - max(s.Known.Last, l.After), l.none(s.Known.Last)
}

// none returns why no more numbers than those up to Last may be claimed.
func (l Limits) none(reserved int64) error {
	if l.Last < 0 {
		return firn.ErrLifetime
	}
	if reserved > l.Last && !l.Until.IsZero() {
		return &AheadError{Reserved: reserved, Last: l.Last}
	}
	return &ExhaustedError{Last: l.Last, Until: l.Until, soon: l.soon}
}

func (o *Owner) lost() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.state.lost()
}

func (s State) lost() error { return &LostError{Last: max(s.Greatest, s.Known.Last)} }

// Rival returns who claimed the block of the record that this owner has read last, as it calls itself; empty: nobody,
// or this owner has claimed since without another one in between.
func (o *Owner) Rival() string {
	if rival := o.rival.Load(); rival != nil {
		return *rival
	}
	return ""
}

// Lost reports whether the counter has stopped since the store has lost data.
func (o *Owner) Lost() bool {
	phase := o.State().Phase
	return phase == Losing || phase == Lost
}

// Ready returns why the next caller gets no number, or nil.
func (o *Owner) Ready() error {
	if s := o.State(); o.config.Rule.strict && s.Phase == Held {
		if left, none := o.left(s); left <= 0 {
			return none
		}
	}
	return o.blocks.Ready()
}

// Lose stops the use, since the store has lost data. The caller then changes the store's era, see Tell, and calls Told.
func (o *Owner) Lose() { o.step(Lose{}) }

// Told says that the store's era has changed since Lose.
func (o *Owner) Told() { o.step(Told{}) }

// Release stops the use, and gives back what nobody got if nobody has claimed above it. It returns store.ErrAmbiguous
// or another error of the store when it is not known whether that was written; the caller may call it again. It returns
// nil when there is nothing to give back any more.
func (o *Owner) Release(ctx context.Context) error {
	if err := o.lock(ctx); err != nil {
		return err
	}
	defer o.unlock()
	if err := o.do(ctx, Leave{}, nil); err != nil {
		return err
	}
	return o.do(ctx, Due{}, nil)
}

func (o *Owner) lock(ctx context.Context) error {
	select {
	case o.writing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (o *Owner) unlock() { <-o.writing }

// step steps, and has the blocks follow.
func (o *Owner) step(e Event) (a Action) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := o.state.Phase
	o.state, a = Step(o.state, e, o.limits(o.state))
	switch {
	case a.Kind == Use:
		o.size, o.given, o.since = a.Block.Size(), o.blocks.Given(), time.Now()
		o.blocks.Add(a.Block)
	case a.Kind == Stop && o.state.Phase == Stopping:
		o.unused = o.blocks.Stop(ErrReleased)
	case a.Kind == Stop && o.state.Phase == Held: // it drops what it has, and goes on
		o.blocks.Stop(nil)
	case a.Kind == Stop:
		o.blocks.Stop(o.state.lost())
	case o.state.Phase == Released:
		o.blocks.Stop(ErrReleased)
	}
	if o.state.Phase == Held && before != Held {
		o.blocks.Start()
	}
	return a
}

// do steps, and does what is to be done, until that is nothing.
func (o *Owner) do(ctx context.Context, e Event, guards []store.Condition) (err error) {
	for {
		a := o.step(e)
		switch a.Kind {
		case Exhausted:
			_, none := o.left(o.State())
			return none
		case Look:
			e, err = o.look(ctx)
		case Commit:
			e, err = o.commit(ctx, a.Write, guards)
		case Stop:
			switch s := o.State(); s.Phase {
			case Stopping:
				e = Stopped{o.unused}
			case Losing:
				return fmt.Errorf("%w: the counter %q: %w", store.ErrRolledBack, o.config.Key, s.lost())
			default:
				return nil
			}
		default:
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (o *Owner) look(ctx context.Context) (Event, error) {
	v, mark, err := Read(ctx, o.config.Store, o.config.Key)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if v.Mine = mark != "" && o.stamps.Sent(mark); v.Mine {
		o.stamps.Settle(mark)
	} else {
		o.rival.Store(&v.By)
	}
	return Seen{v}, nil
}

// commit writes a record, and returns what came of it.
func (o *Owner) commit(ctx context.Context, w Write, guards []store.Condition) (Event, error) {
	o.mu.Lock()
	mark := o.stamps.Next()
	o.mu.Unlock()
	by := ""
	if o.config.By != nil {
		by = o.config.By()
	}
	put, err := w.Record.put(o.config.Key, mark, by)
	if err != nil {
		return nil, err
	}
	txn := store.Txn{
		If:   []store.Condition{{Key: o.config.Key, Version: w.IfVersion}, {Key: floor.EraKey, Version: w.IfEra}},
		Then: []store.Op{put},
	}
	if w.Record.Size > 0 {
		txn.If = append(txn.If, guards...)
	}
	version, err := o.config.Store.Commit(ctx, txn)
	switch {
	case err == nil:
		o.mu.Lock()
		o.stamps.Settle(mark)
		o.mu.Unlock()
		return Applied{w, version}, nil
	case errors.Is(err, store.ErrConflict):
		return Conflict{}, nil
	case errors.Is(err, store.ErrAmbiguous):
		o.step(Doubt{})
	}
	return nil, err
}

// checkGuards returns ErrClosed when a guard no longer holds.
func checkGuards(ctx context.Context, s store.Store, guards []store.Condition) error {
	for _, guard := range guards {
		kv, err := s.Get(ctx, guard.Key)
		if err == nil && kv.Version != guard.Version {
			err = fmt.Errorf("%w: %s has changed", ErrClosed, guard.Key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Abandon ends the use at once and gives nothing back: another process may use the same blocks.
func (o *Owner) Abandon() {
	o.step(Lose{})
	o.step(Leave{})
}
