package server

import (
	"context"
	"slices"
	"sync"
	"time"
)

// turns have those who ask for many IDs of a sequencer make them one after the other, and leave a part of what the sequencer can
// make to those who ask for few, who never wait here. Otherwise a few large calls would take every ID for as long as they go on, and others one by
// chance. The zero value is ready.
type turns struct {
	mu     sync.Mutex
	byName map[string]*line // those that are used, or were just now
}

// few is how many IDs a call may ask for and not wait for its turn.
const few = 256

const (
	// turnTime is for how long a sequencer needs to make what one turn makes, and turnSlack how much of what it could have made before is made up
	// for: a sleep ends too late. Together they are less than firn.DefaultLookAhead, so that there are IDs for others at any time.
	turnTime  = time.Millisecond
	turnSlack = 2 * time.Millisecond

	// leftShare is the part of what a sequencer can make that is left to small calls.
	leftShare = 1.0 / 32
)

// line are the calls for many IDs of a sequencer.
type line struct {
	users int // guarded by turns.mu

	mu      sync.Mutex // guards what follows
	taken   bool
	callers []*queue // in the order of their next turns; each waits with one call at least

	made time.Time // until when the sequencer needs for what was made; belongs to whose turn it is
}

// queue are the calls of a caller. The first goes on until it is done: all would be late if each made a part in turn.
type queue struct {
	caller party
	calls  []chan struct{} // closed when it is its turn
}

// each has make called for count IDs of a sequencer, at most so many at a time, each time in a turn of the caller. It returns the
// first error of make, or that of ctx.
func (t *turns) each(ctx context.Context, name string, caller party, rate float64, count, most int, make func(n int) error) error {
	l, leave := t.enter(name)
	defer leave()
	if err := l.take(ctx, caller); err != nil {
		return err
	}
	mine := true
	defer func() {
		if mine {
			l.over()
		}
	}()
	for {
		n := min(count, most)
		if err := l.pace(ctx, n, rate); err != nil {
			return err
		}
		if err := make(n); err != nil {
			return err
		}
		if count -= n; count == 0 {
			return nil
		}
		if err := l.again(ctx, caller); err != nil {
			mine = false
			return err
		}
	}
}

// enter returns the line of a sequencer, and how to leave it.
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
		if l.users--; l.users == 0 && !l.made.After(time.Now()) { // else somebody comes back for more, or it is a name that there is
			delete(t.byName, name)
		}
	}
}

// take waits for the first turn. An error is that of ctx.
func (l *line) take(ctx context.Context, caller party) error {
	l.mu.Lock()
	if !l.taken {
		l.taken = true
		l.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	q := l.queue(caller)
	q.calls = append(q.calls, turn)
	l.mu.Unlock()
	return l.wait(ctx, caller, turn)
}

// again lets other callers have their turns, and waits for the next of the call that has it. An error is that of ctx; then the
// turn is over.
func (l *line) again(ctx context.Context, caller party) error {
	l.mu.Lock()
	if len(l.callers) == 0 || len(l.callers) == 1 && l.callers[0].caller == caller {
		l.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	q := l.queue(caller)
	q.calls = slices.Insert(q.calls, 0, turn)
	l.callers = append(slices.DeleteFunc(l.callers, func(c *queue) bool { return c == q }), q) // it has had its turn
	l.nextLocked()
	l.mu.Unlock()
	return l.wait(ctx, caller, turn)
}

// over ends a turn.
func (l *line) over() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.nextLocked()
}

// queue is that of a caller. Who calls holds mu.
func (l *line) queue(caller party) *queue {
	for _, q := range l.callers {
		if q.caller == caller {
			return q
		}
	}
	q := &queue{caller: caller}
	l.callers = append(l.callers, q)
	return q
}

// nextLocked gives the turn to the next caller's first call. Who calls holds mu.
func (l *line) nextLocked() {
	if len(l.callers) == 0 {
		l.taken = false
		return
	}
	q := l.callers[0]
	l.callers = l.callers[1:]
	close(q.calls[0])
	if q.calls = q.calls[1:]; len(q.calls) > 0 {
		l.callers = append(l.callers, q)
	}
}

func (l *line) wait(ctx context.Context, caller party, turn chan struct{}) error {
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-turn: // meanwhile
		l.nextLocked()
	default:
		q := l.queue(caller)
		q.calls = slices.DeleteFunc(q.calls, func(c chan struct{}) bool { return c == turn })
		if len(q.calls) == 0 {
			l.callers = slices.DeleteFunc(l.callers, func(c *queue) bool { return c == q })
		}
	}
	return ctx.Err()
}

// pace waits, in a turn, until the sequencer has had the time for what was made, but for turnSlack, and notes n IDs more. An error is that of ctx.
func (l *line) pace(ctx context.Context, n int, rate float64) error {
	now := time.Now()
	if ahead := l.made.Sub(now); ahead > 0 {
		timer := time.NewTimer(ahead)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		now = time.Now()
	}
	if oldest := now.Add(-turnSlack); l.made.Before(oldest) {
		l.made = oldest
	}
	l.made = l.made.Add(time.Duration(float64(n) / (rate * (1 - leftShare)) * float64(time.Second)))
	return nil
}
