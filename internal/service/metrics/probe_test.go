package metrics

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/store"
)

// aLog is a store's log whose answers the test sets.
type aLog struct {
	store.Log
	mu    sync.Mutex // guards the rest
	asked []store.Position
	hangs bool
	takes time.Duration
}

func (l *aLog) Read(ctx context.Context, after store.Position) (store.Batch, error) {
	l.mu.Lock()
	l.asked = append(l.asked, after)
	hangs, takes := l.hangs, l.takes
	l.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return store.Batch{}, store.ErrUnavailable
	}
	time.Sleep(takes)
	return store.Batch{Entries: make([]store.LogEntry, 10-after)}, nil
}

// However many callers ask, the probe asks the store once a second, and waits for it little longer.
func TestProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProbe()
		l := &aLog{takes: 20 * time.Millisecond}
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if r := p.ask(l, 7); r != (reply{true, 20 * time.Millisecond, 3}) {
					t.Errorf("it says %+v", r)
				}
			})
		}
		all.Wait()
		time.Sleep(probeEvery - 1)
		p.ask(l, 8)
		if len(l.asked) != 1 {
			t.Errorf("the store was asked for %v", l.asked)
		}
		time.Sleep(time.Nanosecond)
		if r := p.ask(l, 9); r.entries != 1 || len(l.asked) != 2 {
			t.Errorf("a second later it says %+v, after %v", r, l.asked)
		}
		l.hangs = true
		time.Sleep(probeEvery)
		began := time.Now()
		for range 10 {
			all.Go(func() {
				if r := p.ask(l, 10); r.up || r.entries != 0 {
					t.Errorf("a store that hangs says %+v", r)
				}
			})
		}
		all.Wait()
		if took := time.Since(began); took != probeWithin {
			t.Errorf("ten asked a store that hangs for %v", took)
		}
	})
}
