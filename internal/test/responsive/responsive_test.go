package responsive

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// What ended late counts from when it ended, and what is overdue counts now.
func TestLate(t *testing.T) {
	at := func(ms int) time.Time { return time.Unix(1e9, 0).Add(time.Duration(ms) * time.Millisecond) }
	var r record
	r.begin(0, at(10))
	r.end(0, at(310))
	r.begin(0, at(320))
	r.end(0, at(350))
	r.begin(0, at(360))
	r.begin(1, at(400))
	for _, tt := range []struct{ from, now, want int }{
		{0, 355, 300},
		{309, 355, 300},
		{310, 355, 30},
		{349, 355, 30},
		{350, 355, 0},
		{350, 365, 5},
		{350, 900, 540},
		{0, 900, 540},
	} {
		if got := r.late(at(tt.from), at(tt.now)); got != time.Duration(tt.want)*time.Millisecond {
			t.Errorf("from %d to %d ms: late by %v, want %d ms", tt.from, tt.now, got, tt.want)
		}
	}
}

// A machine on which a program does not end is late for as long as that, and one that does all in time is not.
func TestMeasure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r record
		var took atomic.Int64 // how long a program takes; negative: no more of them
		began := time.Now()
		go r.measure(1, programEach, func() {
			if time.Sleep(time.Duration(took.Load())); took.Load() < 0 {
				runtime.Goexit()
			}
		})
		time.Sleep(time.Minute)
		if late := r.late(began, time.Now()); late != 0 {
			t.Errorf("late by %v, want 0", late)
		}
		took.Store(int64(time.Hour))
		time.Sleep(30 * time.Minute)
		if late := r.late(began, time.Now()); late < 29*time.Minute {
			t.Errorf("late by %v, and nothing ended for half an hour", late)
		}
		took.Store(-1)
		time.Sleep(time.Hour)
	})
}

// told keeps what a test is told.
type told struct {
	testing.TB
	errors, logs []string
}

func (t *told) Helper() {}
func (t *told) Errorf(format string, args ...any) {
	t.errors = append(t.errors, fmt.Sprintf(format, args...))
}

func (t *told) Logf(format string, args ...any) {
	t.logs = append(t.logs, fmt.Sprintf(format, args...))
}

// What is wrong is an error on a responsive machine, and is reported with the figure on another.
func TestJudge(t *testing.T) {
	var got told
	judge(&got, Limit, "%d calls failed", 3)
	judge(&got, Limit+time.Millisecond, "%d calls failed", 4)
	if len(got.errors) != 1 || got.errors[0] != "3 calls failed" {
		t.Errorf("errors %q", got.errors)
	}
	if len(got.logs) != 1 || !strings.HasSuffix(got.logs[0], "late by up to 201ms: 4 calls failed") {
		t.Errorf("logs %q", got.logs)
	}
}

// This machine is measured.
func TestWatch(t *testing.T) {
	Watch()
	for began := time.Now(); ; time.Sleep(timerEach) {
		if late := Late(began); late > 0 {
			t.Logf("late by %v", late)
			return
		}
	}
}
