package fence

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/firn-id/firn/internal/base/floor"
	"github.com/firn-id/firn/internal/base/fresh"
	"github.com/firn-id/firn/internal/core/journal"
	"github.com/firn-id/firn/store"
)

// Defaults for the fields of Config that are zero.
const (
	DefaultWindow  = floor.Window
	DefaultMaxStep = 10 * time.Second
)

// Config is what an owner's fences share. Store and Clock are required.
type Config struct {
	Store  store.Store
	Prefix string           // of the keys, with its trailing slash
	Owner  string           // the name in the live key, for people; it decides nothing
	Holder *Holder          // of the session; nil: a claim does not know a node ID that a copy of this process holds
	Clock  func() time.Time // ID time: the clock of the generator

	// Window is how far ahead of the clock an owner writes its horizon: how long it makes IDs without the store.
	// Whole milliseconds; zero means 30 s. The owner calls Extend every third of it.
	Window time.Duration

	// MaxWait is how far a floor may lie ahead of the clock for Claim to accept it. Zero means twice the window:
	// a crash of a node with the same window leaves the floor at most one window ahead of that node's clock, or
	// where it was.
	MaxWait time.Duration

	// NotBefore is a floor that the claimer sets: the later of it and the last owner's horizon is the fence's
	// floor. Zero means none. Claim rounds it up to a millisecond; it may lie ahead of the clock by any time.
	NotBefore time.Time

	// Guards are conditions of claims, and of nothing else: keys, each with the version that it must have. A
	// change of one of these keys closes the prefix to all who claim under it.
	Guards []store.Condition

	// Journal gets what each fence does, before that has any effect. Nil: nobody does.
	Journal func(journal.Line)

	// Before is an older fence of the same owner, or nil. Claim returns store.ErrRolledBack if the store has lost
	// what that one wrote.
	Before *Fence

	// MaxStep is how much more than the elapsed time one Extend may move a horizon, besides a step of the clock
	// that its caller believes. Zero means 10 s.
	MaxStep time.Duration
}

func (c Config) withDefaults() Config {
	c.Window = cmp.Or(c.Window, DefaultWindow)
	c.MaxWait = cmp.Or(c.MaxWait, 2*c.Window)
	c.MaxStep = cmp.Or(c.MaxStep, DefaultMaxStep)
	return c
}

// Fence is one owner's hold on one node ID. Claim returns it. Its methods are safe for concurrent use; those that
// write run one at a time.
type Fence struct {
	config    Config
	session   store.Session
	node      int64
	operation string // in the values that this fence writes

	writing chan struct{} // a lock, held from sending a write until its answer is processed

	mu      sync.Mutex // guards what follows
	state   State
	stamps  fresh.Stamps // of its writes of the horizon
	written time.Time    // when the write of the horizon in state was sent
}

func newFence(config Config, session store.Session, node int64, v View) *Fence {
	read := v.Horizon
	v.Horizon = max(v.Horizon, roundUp(config.NotBefore)) // as if an earlier owner had reached it
	f := &Fence{
		config: config, session: session, node: node, operation: config.Holder.operation(),
		writing: make(chan struct{}, 1), state: Begin(v), written: time.Now(),
	}
	f.note(journal.Line{
		Do: journal.Read, Version: uint64(v.Reported), By: v.ReportedBy, Horizon: read,
		Floor: f.state.Floor,
	})
	return f
}

// Node returns the node ID.
func (f *Fence) Node() int64 { return f.node }

// Floor returns the instant before which this owner may not use the node ID.
func (f *Fence) Floor() time.Time { return time.UnixMilli(f.State().Floor) }

// Horizon returns the instant from which on this owner may not use the node ID, until Extend
// moves it. The store has confirmed it.
func (f *Fence) Horizon() time.Time { return time.UnixMilli(f.State().Horizon) }

// State returns the state of the owner's hold.
func (f *Fence) State() State {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state
}

// Release releases the node ID. It calls stop, which must stop the use of the node ID for good and return its end
// (the zero time if there was no use), and only then writes that end, so that the next owner need not wait.
// Release does not call stop when ctx ends while another call writes. An error is returned when the store has not
// confirmed the release: the node ID is then free from the horizon on, once its session has ended, or sooner if
// the caller calls Release again.
func (f *Fence) Release(ctx context.Context, stop func() time.Time) error {
	if err := f.lock(ctx); err != nil {
		return err
	}
	defer f.unlock()
	if f.step(Leave{}).Kind == Stop {
		end := stop()
		f.step(Stopped{End: roundUp(end)})
	}
	for f.State().Phase == Releasing {
		if err := f.write(ctx); err != nil {
			return err
		}
	}
	if f.State().Phase == Released {
		f.config.Holder.forget(f.operation)
	}
	return nil
}

func (f *Fence) lock(ctx context.Context) error {
	select {
	case f.writing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *Fence) tryLock() bool {
	select {
	case f.writing <- struct{}{}:
		return true
	default:
		return false
	}
}

func (f *Fence) unlock() { <-f.writing }

// look reads the keys, and steps with the outcome of earlier writes.
func (f *Fence) look(ctx context.Context) error {
	v, err := f.view(ctx)
	if err != nil {
		return err
	}
	read := time.Now()
	if err := f.checkKept(v); err != nil {
		return err
	}
	f.step(Seen{View: v})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.written = read // every write in doubt was sent before that
	if v.ReportedMine {
		f.stamps.Settle(v.ReportedStamp)
	}
	return nil
}

// checkKept returns store.ErrRolledBack when a view shows that the store has lost a write: no owner deletes the
// key of a horizon, and each write of it has a greater version.
func (f *Fence) checkKept(v View) error {
	if known := f.State().Reported; v.Reported < known {
		return f.lostWrite(v.Reported, known)
	}
	return nil
}

// Kept returns store.ErrRolledBack when the store has lost the latest write of the horizon. Other errors are of the
// store.
func (f *Fence) Kept(ctx context.Context) error {
	known := f.State().Reported
	kv, err := f.config.Store.Get(ctx, reportedKey(f.config.Prefix, f.node))
	if err == nil && kv.Version < known {
		err = f.lostWrite(kv.Version, known)
	}
	return err
}

func (f *Fence) lostWrite(now, known store.Version) error {
	return fmt.Errorf("%w: the horizon of node ID %d is at version %d, and was at %d", store.ErrRolledBack,
		f.node, now, known)
}

// view reads both keys at one moment.
func (f *Fence) view(ctx context.Context) (v View, err error) {
	all, err := f.config.Store.List(ctx, f.config.Prefix)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, kv := range all {
		if node, ok := nodeOf(f.config.Prefix, kv.Key); ok && node == f.node && err == nil {
			err = v.put(f.config.Prefix, kv, f.operation, f.stamps.Sent)
		}
	}
	return v, err
}

// TakenOver reports whether another owner has claimed the node ID, or used it last. If the store keeps what it
// committed, this fence is lost or released before that, and the other owner begins where its time ends or later.
// The error is that of the store.
func (f *Fence) TakenOver(ctx context.Context) (bool, error) {
	v, err := f.view(ctx)
	return v.Live != 0 && !v.LiveMine || v.Reported != 0 && v.ReportedBy != f.operation, err
}

func (f *Fence) step(e Event) Action { return f.stepBy(e, 0) }

// stepBy is step where the clock is about to step ahead by so much.
func (f *Fence) stepBy(e Event, ahead time.Duration) Action {
	f.mu.Lock()
	defer f.mu.Unlock()
	var a Action
	f.state, a = Step(f.state, e,
		Limits{Window: f.config.Window.Milliseconds(), MaxStep: (f.config.MaxStep + ahead).Milliseconds()})
	f.noteStep(e, a)
	return a
}

func (f *Fence) transaction(w Write, stamp string) store.Txn {
	live, reported := liveKey(f.config.Prefix, f.node), reportedKey(f.config.Prefix, f.node)
	t := store.Txn{
		If:   []store.Condition{{Key: live, Version: w.IfLive}, {Key: reported, Version: w.IfReported}},
		Then: []store.Op{store.Put(reported, reportedValue(w.Horizon, f.operation, stamp))},
	}
	switch w.Live {
	case Take:
		since := f.config.Clock().UnixMilli()
		t.Then = append(t.Then, store.PutEphemeral(live, liveValue(f.operation, since, f.config.Owner), f.session))
		t.If = append(t.If, f.config.Guards...)
	case Drop:
		t.Then = append(t.Then, store.Delete(live))
	}
	return t
}

// Clone returns the fence as a copy of the process has it, with all that it knows and has sent, and with what is the
// copy's own. It is for tests of copies. The answer to a write that is under way does not reach the copy.
func (f *Fence) Clone(config Config, session store.Session) *Fence {
	f.mu.Lock()
	defer f.mu.Unlock()
	if config.Holder != nil {
		config.Holder.remember(f.operation)
	}
	return &Fence{
		config: config.withDefaults(), session: session, node: f.node, operation: f.operation,
		writing: make(chan struct{}, 1), state: f.state, stamps: f.stamps.Clone(), written: f.written,
	}
}

// roundUp returns the first Unix millisecond at or after t, and 0 for the zero time.
func roundUp(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Add(time.Millisecond - 1).UnixMilli()
}
