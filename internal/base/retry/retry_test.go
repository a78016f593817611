package retry

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"
)

func TestBackoffDoublesUpToItsMax(t *testing.T) {
	b := Backoff{First: 100 * time.Millisecond, Max: time.Second}
	for failures, ms := range []int{100, 200, 400, 800, 1000, 1000} {
		most := time.Duration(ms) * time.Millisecond
		low, high := most, time.Duration(0)
		for range 1000 {
			pause := b.After(failures)
			low, high = min(low, pause), max(high, pause)
		}
		if low < most/2 || high > most || low > most*6/10 || high < most*9/10 {
			t.Errorf("after %d failures it pauses from %v to %v, want %v to %v", failures, low, high, most/2, most)
		}
	}
	if pause := b.After(math.MaxInt); pause < b.Max/2 || pause > b.Max {
		t.Errorf("after very many failures it pauses for %v, want at most %v", pause, b.Max)
	}
}

func TestSleepEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := Sleep(t.Context(), time.Hour); err != nil || time.Since(began) != time.Hour {
			t.Errorf("it slept for %v: %v; want an hour", time.Since(began), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began = time.Now()
		if err := Sleep(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Minute {
			t.Errorf("it slept for %v: %v; want the context's error after a minute", time.Since(began), err)
		}
		for _, d := range []time.Duration{0, -1, 1} {
			if err := Sleep(ctx, d); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Sleep of %v with a context that has ended returns %v", d, err)
			}
		}
	})
}
