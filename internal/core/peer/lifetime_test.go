package peer

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
)

// ending is a layout whose time ends so long after a bubble has begun; it began 2^35 ms before that, 397 days.
func ending(left time.Duration) firn.Layout {
	l := layout
	l.TimeBits, l.SequenceBits = 35, 18
	l.Epoch = epoch.Add(left - 1<<35*time.Millisecond)
	return l
}

// TestReadyUntilTheLayoutsTimeIsOver: from then on it is not ready, with the reason that callers get.
func TestReadyUntilTheLayoutsTimeIsOver(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		const left = 100 * time.Second
		a := w.start("a", func(c *setup) { c.definition = cluster.Define(ending(left)) })
		a.ready(time.Second)
		s := a.settled()
		for time.Until(epoch.Add(left)) > time.Millisecond {
			if err := s.Ready(); err != nil {
				t.Fatalf("%v before the end: %v", time.Until(epoch.Add(left)), err)
			}
			time.Sleep(time.Until(epoch.Add(left)) / 2)
		}
		time.Sleep(time.Until(epoch.Add(left)))
		for _, after := range []time.Duration{0, time.Millisecond, time.Hour} {
			time.Sleep(after)
			if err := s.Ready(); !errors.Is(err, ErrNotReady) || !errors.Is(err, firn.ErrLifetime) ||
				!strings.Contains(err.Error(), "its time ended on 2000-01-01T00:01:40Z") {
				t.Errorf("%v after the end: %v, want ErrLifetime with the date", after, err)
			}
			if _, err := s.Next(t.Context()); !errors.Is(err, firn.ErrLifetime) {
				t.Errorf("%v after the end: %v, want ErrLifetime", after, err)
			}
		}
	})
}

// TestNotReadyBeforeTheEpoch: a clock that goes back to before it has no ID either.
func TestNotReadyBeforeTheEpoch(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		young := layout
		young.Epoch = epoch.Add(-time.Second)
		a := w.start("a", func(c *setup) { c.definition = cluster.Define(young) })
		a.ready(time.Second)
		s := a.settled()
		if err := s.lifetime(young.Epoch); err != nil {
			t.Errorf("at the epoch: %v", err)
		}
		err := s.lifetime(young.Epoch.Add(-time.Nanosecond))
		if !errors.Is(err, ErrNotReady) || !errors.Is(err, firn.ErrLifetime) ||
			!strings.Contains(err.Error(), "its epoch 1999-12-31T23:59:59Z has not come") {
			t.Errorf("before the epoch: %v", err)
		}
	})
}

// TestTheLogSaysThatTimeRunsOut a year, a month and a day ahead and at the end, once each, and at the start.
func TestTheLogSaysThatTimeRunsOut(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var log logbook
		logging := func(c *setup) {
			c.definition = cluster.Define(ending(366 * day))
			c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		}
		a := w.start("a", logging)
		a.ready(time.Second)
		said := func() (days []string) {
			for line := range strings.Lines(log.String()) {
				if _, rest, ok := strings.Cut(line, "out of time"); ok {
					_, number, _ := strings.Cut(strings.TrimSpace(rest), " days=")
					days = append(days, number)
				}
			}
			return days
		}
		for _, c := range []struct {
			step time.Duration
			want []string
		}{
			{0, nil},
			{36 * time.Hour, []string{"364"}},
			{day, []string{"364"}},
			{335 * day, []string{"364", "28"}},
			{27 * day, []string{"364", "28"}},
			{day, []string{"364", "28", "0"}},
			{day, []string{"364", "28", "0", "-1"}},
			{400 * day, []string{"364", "28", "0", "-1"}},
		} {
			a.wall.step(c.step)
			time.Sleep(time.Hour) // in which all of them are logged
			if days := said(); !slices.Equal(days, c.want) {
				t.Fatalf("after a step of %v the log gives these days left: %v, want %v", c.step, days, c.want)
			}
		}
	})
	inBubble(t, func(t *testing.T, w *world) {
		var log logbook
		a := w.start("a", func(c *setup) {
			c.definition = cluster.Define(ending(day + time.Minute))
			c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		})
		a.ready(time.Second)
		if n := strings.Count(log.String(), "runs out of time"); n != 1 {
			t.Errorf("the start logged it %d times, want once:\n%s", n, log.String())
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := strings.Count(log.String(), "runs out of time"); n != 2 {
			t.Errorf("a day ahead it was logged %d times, want twice:\n%s", n, log.String())
		}
	})
}
