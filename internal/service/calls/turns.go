package calls

import (
	"context"
	"slices"
	"sync"
	"time"
)

// turns makes large calls of a sequencer take their IDs a piece at a time, one caller after the other, at a pace
// that leaves IDs for small calls, which never wait here. Otherwise a few large calls would take every ID while
// they last. The zero value is ready.
type turns struct {
	mu     sync.Mutex       // guards what follows
	byName map[string]*line // of sequencers with large calls, now or just now
}

// few is the most IDs that a call gets without a turn.
const few = 256

const (
	// turnTime is how long a sequencer needs for the IDs of one turn. Timers are late, so turns catch up on at
	// most turnSlack of unused time. Together they are less than firn.DefaultLookAhead, so that others get IDs at
	// any time.
	turnTime  = time.Millisecond
	turnSlack = 2 * time.Millisecond

	// turnsAtOnce is the most turns of a node ID that go on at a time: if small calls take more than their share, at
	// most so many large ones wait for the clock beside them.
	turnsAtOnce = 2

	// leftShare is the part of a sequencer's rate that turns leave to small calls.
	leftShare = 1.0 / 32
)

// line has the large calls of one sequencer.
type line struct {
	users int // guarded by turns.mu

	mu      sync.Mutex // guards what follows
	now     int        // turns that go on
	made    time.Time  // when the sequencer would be done with the IDs of all turns
	waking  bool       // a timer will call nextLocked
	callers []*queue   // waiting, in the order of their next turns
}

// queue has the waiting calls of one caller, at least one. The first goes on until it is done: if they took
// turns, all would be late.
type queue struct {
	caller party
	calls  []*turn
}

// turn is a waiting piece of a call.
type turn struct {
	takes time.Duration // the sequencer's time for its IDs
	comes chan struct{} // closed when the turn begins
}

// enter returns the line of a sequencer, and a function to leave it.
func (t *turns) enter(name string) (l *line, leave func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l = t.byName[name]; l == nil {
		if t.byName == nil {
			t.byName = map[string]*line{}
		}
		l = new(line)
		t.byName[name] = l
	}
	l.users++
	return l, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if l.users--; l.users == 0 && !l.busy() { // also when no sequencer has this name
			delete(t.byName, name)
		}
	}
}

func (l *line) busy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.made.After(time.Now())
}

// take waits for a turn of a caller; again: the call had one before. It returns the error of ctx.
func (l *line) take(ctx context.Context, caller party, takes time.Duration, again bool) error {
	t := &turn{takes: takes}
	l.mu.Lock()
	if now := time.Now(); len(l.callers) == 0 && l.freeLocked(now) {
		l.beginLocked(t, now)
		l.mu.Unlock()
		return nil
	}
	t.comes = make(chan struct{})
	q := l.queueLocked(caller)
	if again {
		q.calls = slices.Insert(q.calls, 0, t)
	} else {
		q.calls = append(q.calls, t)
	}
	l.nextLocked()
	l.mu.Unlock()
	select {
	case <-t.comes:
		return nil
	case <-ctx.Done():
		l.leave(caller, t)
		return ctx.Err()
	}
}

// use makes IDs in a turn, and ends the turn.
func (l *line) use(make func() error) error {
	defer l.over()
	return make()
}

func (l *line) over() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now--
	l.nextLocked()
}

// leave gives up a turn, whether it has begun or not.
func (l *line) leave(caller party, t *turn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-t.comes:
		l.now--
		l.nextLocked()
		return
	default:
	}
	q := l.queueLocked(caller)
	q.calls = slices.DeleteFunc(q.calls, func(c *turn) bool { return c == t })
	if len(q.calls) == 0 {
		l.callers = slices.DeleteFunc(l.callers, func(c *queue) bool { return c == q })
	}
}

// Callers of the methods below hold mu.

func (l *line) queueLocked(caller party) *queue {
	for _, q := range l.callers {
		if q.caller == caller {
			return q
		}
	}
	q := &queue{caller: caller}
	l.callers = append(l.callers, q)
	return q
}

func (l *line) freeLocked(now time.Time) bool {
	return l.now < turnsAtOnce && !l.made.After(now)
}

func (l *line) beginLocked(t *turn, now time.Time) {
	l.now++
	if oldest := now.Add(-turnSlack); l.made.Before(oldest) {
		l.made = oldest
	}
	l.made = l.made.Add(t.takes)
}

// nextLocked begins the turns that are due: of the first call of each caller in order, then of the next calls.
func (l *line) nextLocked() {
	now := time.Now()
	for len(l.callers) > 0 && l.freeLocked(now) {
		q := l.callers[0]
		t := q.calls[0]
		l.callers = l.callers[1:]
		if q.calls = q.calls[1:]; len(q.calls) > 0 {
			l.callers = append(l.callers, q)
		}
		l.beginLocked(t, now)
		close(t.comes)
	}
	if wait := l.made.Sub(now); len(l.callers) > 0 && wait > 0 && !l.waking {
		l.waking = true
		time.AfterFunc(wait, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.waking = false
			l.nextLocked()
		})
	}
}
