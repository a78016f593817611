// Package responsive measures, beside tests, how promptly the machine lets programs run. A test asserts safety on every
// machine. A claim that holds only on a machine that runs programs in time, such as that no call fails while a node is
// killed, it asserts with [Errorf]: that fails the test if the machine was responsive, and otherwise logs how late it
// was. It is for tests alone, and no benchmark.
package responsive

import (
	"os/exec"
	"sync"
	"testing"
	"time"
)

// Limit is how late a responsive machine is at most. An idle one with two cores is late by up to 20 ms, and by up to
// 120 ms while a test starts programs.
const Limit = 200 * time.Millisecond

// It measures how late a timer fires, and how long it takes to start a program that does nothing and to see it end.
const (
	timerEach   = 10 * time.Millisecond
	programEach = 100 * time.Millisecond
)

var (
	machine record
	once    sync.Once
)

// Watch begins to measure, once, and goes on until the process ends.
func Watch() {
	once.Do(func() {
		go machine.measure(0, timerEach, func() {})
		go machine.measure(1, programEach, func() { _ = exec.Command("true").Run() })
	})
}

// Late returns how late the machine was at most since from, or since the call of [Watch].
func Late(from time.Time) time.Duration { return machine.late(from, time.Now()) }

// Errorf fails the test if the machine was responsive since from; otherwise it logs the message, and how late the
// machine was. Call [Watch] before from.
func Errorf(t testing.TB, from time.Time, format string, args ...any) {
	t.Helper()
	judge(t, Late(from), format, args...)
}

func judge(t testing.TB, late time.Duration, format string, args ...any) {
	t.Helper()
	if late > Limit {
		t.Logf("not judged, since this machine was late by up to %v: "+format,
			append([]any{late.Round(time.Millisecond)}, args...)...)
		return
	}
	t.Errorf(format, args...)
}

// record holds how late the machine was, and when.
type record struct {
	mu     sync.Mutex   // guards those below
	delays []delay      // of more than a timerEach, in the order of their ends
	due    [2]time.Time // when the measurements in progress should end
}

type delay struct {
	ended time.Time
	late  time.Duration
}

func (r *record) measure(kind int, each time.Duration, do func()) {
	for {
		r.begin(kind, time.Now().Add(each))
		time.Sleep(each)
		do()
		r.end(kind, time.Now())
	}
}

func (r *record) begin(kind int, due time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.due[kind] = due
}

func (r *record) end(kind int, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if late := now.Sub(r.due[kind]); late > timerEach {
		r.delays = append(r.delays, delay{now, late})
	}
	r.due[kind] = time.Time{}
}

// late returns the longest delay that ended after from, or that goes on now.
func (r *record) late(from, now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	var most time.Duration
	for i := len(r.delays) - 1; i >= 0 && r.delays[i].ended.After(from); i-- {
		most = max(most, r.delays[i].late)
	}
	for _, due := range r.due {
		if !due.IsZero() {
			most = max(most, now.Sub(due))
		}
	}
	return most
}
