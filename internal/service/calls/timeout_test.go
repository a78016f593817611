package calls

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A lazyTimeout does whatever a context with a timeout does, at the same time.
func TestPatientIsAContextWithATimeout(t *testing.T) {
	type key struct{}
	for _, tt := range []struct {
		name   string
		caller time.Duration // the caller's timeout; zero: none
		ask    time.Duration // when a method is first called
		cancel time.Duration // when the caller cancels; zero: never
		end    time.Duration // when the call ends; zero: never
	}{
		{name: "waits in vain"},
		{name: "asks late", ask: 9 * time.Second},
		{name: "asks when it is too late", ask: 11 * time.Second},
		{name: "caller is less lazyTimeout", caller: 3 * time.Second},
		{name: "caller is more lazyTimeout", caller: 30 * time.Second, ask: time.Second},
		{name: "caller goes away", cancel: 2 * time.Second},
		{name: "caller goes away before it asks", cancel: time.Second, ask: 2 * time.Second},
		{name: "ends", end: 5 * time.Second},
		{name: "ends before it is asked", end: time.Second, ask: 2 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				caller, leave := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
				defer leave()
				if tt.caller > 0 {
					var cancel context.CancelFunc
					caller, cancel = context.WithTimeout(caller, tt.caller)
					defer cancel()
				}
				timed, cancel := context.WithTimeout(caller, 10*time.Second)
				defer cancel()
				p := newLazyTimeout(caller, 10*time.Second)
				defer p.end()
				if tt.cancel > 0 {
					time.AfterFunc(tt.cancel, leave)
				}
				if tt.end > 0 {
					time.AfterFunc(tt.end, cancel)
					time.AfterFunc(tt.end, p.end)
				}
				time.Sleep(tt.ask)
				synctest.Wait()
				for range 100 {
					if p.Err() != timed.Err() || ended(p) != ended(timed) {
						t.Fatalf("error %v, ended: %v; want %v, %v", p.Err(), ended(p), timed.Err(), ended(timed))
					}
					time.Sleep(time.Second / 4)
					synctest.Wait()
				}
				if tt.end > tt.ask || tt.end == 0 {
					at, _ := p.Deadline()
					if want, _ := timed.Deadline(); !at.Equal(want) || p.Value(key{}) != "value" {
						t.Errorf("deadline %v, value %v; want %v", at, p.Value(key{}), want)
					}
				}
			})
		})
	}
}

func ended(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return true
	default:
		return false
	}
}

// A context derived from it ends with it, without a goroutine that waits.
func TestPatientsChildren(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newLazyTimeout(t.Context(), 10*time.Second)
		child, cancel := context.WithCancel(p)
		defer cancel()
		began := time.Now()
		<-child.Done()
		if took := time.Since(began); took != 10*time.Second || child.Err() != context.DeadlineExceeded {
			t.Errorf("%v after %v", child.Err(), took)
		}
		p.end()
	})
}

// A call that need not wait allocates one object, and no timer.
func TestPatientIsCheap(t *testing.T) {
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() { newLazyTimeout(ctx, time.Second).end() }); n > 1 {
		t.Errorf("%v allocations, want 1 at most", n)
	}
}
