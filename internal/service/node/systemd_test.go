package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// told records the messages to systemd, and when they came, by a clock that begins at zero.
type told struct {
	began time.Time

	mu    sync.Mutex // guards lines
	lines []string
}

func (w *told) tell(message string) error {
	at := time.Since(w.began).Round(time.Millisecond)
	w.mu.Lock()
	defer w.mu.Unlock()
	for line := range strings.Lines(message) {
		w.lines = append(w.lines, fmt.Sprint(at, " ", strings.TrimSpace(line)))
	}
	return nil
}

// with returns the lines that contain a text.
func (w *told) with(text string) (lines []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, line := range w.lines {
		if strings.Contains(line, text) {
			lines = append(lines, line)
		}
	}
	return lines
}

// supervise runs a supervisor in a bubble while the script runs.
func supervise(t *testing.T, s *supervisor, script func(w *told, drain func())) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &told{began: time.Now()}
		if s.tell == nil {
			s.tell = w.tell
		}
		draining, drain := context.WithCancel(context.Background())
		s.draining, s.stopping = draining.Done(), time.Minute
		ctx, end := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.run(ctx)
		}()
		script(w, drain)
		drain()
		end()
		<-done
	})
}

// A whole run: joining, ready, not ready for a while, ready again, and stopping.
func TestSystemdIsToldOfALife(t *testing.T) {
	var text atomic.Value
	text.Store("not ready: joining")
	s := &supervisor{stand: func() (string, bool) {
		now := text.Load().(string)
		return now, now == "giving IDs"
	}}
	supervise(t, s, func(w *told, drain func()) {
		time.Sleep(2050 * time.Millisecond)
		text.Store("giving IDs")
		time.Sleep(3 * time.Second)
		text.Store("not ready: horizon")
		time.Sleep(3 * time.Second)
		text.Store("giving IDs")
		time.Sleep(3 * time.Second)
		text.Store("not ready: shutting down")
		drain()
		time.Sleep(3 * time.Second)
		want := []string{
			"0s STATUS=not ready: joining", "0s EXTEND_TIMEOUT_USEC=30000000",
			"2.1s READY=1", "2.1s STATUS=giving IDs",
			"5.1s STATUS=not ready: horizon",
			"8.1s STATUS=giving IDs",
			"11.05s STOPPING=1", "11.05s EXTEND_TIMEOUT_USEC=60000000", "11.05s STATUS=not ready: shutting down",
		}
		if got := w.with(""); !slices.Equal(got, want) {
			t.Errorf("systemd was told\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// A start may take any time while the node answers, and fails by its timeout when it does not.
func TestAStartIsExtendedWhileTheNodeAnswers(t *testing.T) {
	s := &supervisor{stand: stuckAfter(35*time.Second, false)}
	supervise(t, s, func(w *told, _ func()) {
		time.Sleep(time.Hour)
		want := []string{
			"0s EXTEND_TIMEOUT_USEC=30000000", "10s EXTEND_TIMEOUT_USEC=30000000",
			"20s EXTEND_TIMEOUT_USEC=30000000", "30s EXTEND_TIMEOUT_USEC=30000000",
		}
		if got := w.with("EXTEND"); !slices.Equal(got, want) {
			t.Errorf("asked for more time at %q; want %q", got, want)
		}
	})
}

// The watchdog gets a ping every half of its interval while the node answers, ready or not, and none otherwise.
func TestTheWatchdogIsPingedWhileTheNodeAnswers(t *testing.T) {
	for _, ready := range []bool{true, false} {
		s := &supervisor{watchdog: 20 * time.Second, stand: stuckAfter(45*time.Second, ready)}
		supervise(t, s, func(w *told, _ func()) {
			time.Sleep(time.Hour)
			want := []string{"0s WATCHDOG=1", "10s WATCHDOG=1", "20s WATCHDOG=1", "30s WATCHDOG=1", "40s WATCHDOG=1"}
			if got := w.with("WATCHDOG"); !slices.Equal(got, want) {
				t.Errorf("ready: %v; pinged at %q; want %q", ready, got, want)
			}
		})
	}
}

// stuckAfter returns the state of a node that answers at once for a while, and then takes two hours.
func stuckAfter(after time.Duration, ready bool) func() (string, bool) {
	var began time.Time
	return func() (string, bool) {
		if began.IsZero() {
			began = time.Now()
		}
		if time.Since(began) > after {
			time.Sleep(2 * time.Hour)
		}
		return "?", ready
	}
}

// A watchdog with an interval below a second gets its pings in time; without a watchdog there are none.
func TestShortWatchdogsAndNone(t *testing.T) {
	for _, tt := range []struct {
		watchdog time.Duration
		least    int
	}{{100 * time.Millisecond, 20}, {0, 0}} {
		s := &supervisor{watchdog: tt.watchdog, stand: func() (string, bool) { return "giving IDs", true }}
		supervise(t, s, func(w *told, _ func()) {
			time.Sleep(time.Second)
			if pings := len(w.with("WATCHDOG")); pings < tt.least || tt.least == 0 && pings > 0 {
				t.Errorf("a watchdog of %v is pinged %d times in a second; want at least %d", tt.watchdog,
					pings, tt.least)
			}
		})
	}
}

// A status that changes all the time is sent once a second, on one line.
func TestSystemdIsNotFlooded(t *testing.T) {
	n := 0
	s := &supervisor{stand: func() (string, bool) { n++; return fmt.Sprintf("not ready:\n%d", n), false }}
	supervise(t, s, func(w *told, _ func()) {
		time.Sleep(10500 * time.Millisecond)
		if got := w.with("STATUS=not ready: "); len(got) != 11 {
			t.Errorf("the status was told %d times in 10.5 s: %q; want 11", len(got), got)
		}
	})
}

// A missing socket is logged once, and does not end the node.
func TestSystemdIsGone(t *testing.T) {
	log, tries := &strings.Builder{}, 0
	s := &supervisor{
		watchdog: time.Second, log: slog.New(slog.NewTextHandler(log, nil)),
		stand: func() (string, bool) { return "giving IDs", true },
		tell:  func(string) error { tries++; return errors.New("no such socket") },
	}
	supervise(t, s, func(*told, func()) { time.Sleep(10 * time.Second) })
	if tries < 10 || strings.Count(log.String(), "no such socket") != 1 {
		t.Errorf("%d tries; the log: %s", tries, log)
	}
}
