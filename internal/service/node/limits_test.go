package node

import (
	"bytes"
	"log/slog"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

// The node logs its limits at the start, and warns of those that memory or open files do not allow.
func TestLimitsAreSaid(t *testing.T) {
	before := debug.SetMemoryLimit(256 << 20 / 4 * 3) // as GOMEMLIMIT does
	defer debug.SetMemoryLimit(before)
	said := func(connections, calls int) (all []string) {
		t.Helper()
		var log bytes.Buffer
		c := testConfig(t)
		c.MaxConnections, c.MaxCalls, c.Logger = connections, calls, slog.New(slog.NewTextHandler(&log, nil))
		newNode(t, c).limitMemory()
		return strings.SplitAfter(log.String(), "\n")
	}
	for _, c := range []struct {
		connections, calls int
		wants              []string
	}{
		{0, 0, []string{`level=INFO msg=limits memory="256 MiB" from=GOMEMLIMIT heap="192 MiB" connections=`}},
		{100, 50, []string{" connections=100 calls=50 "}},
		{
			100_000, 1706,
			[]string{" connections=100000 calls=1706 ", "level=WARN", "setting=max-connections asked=100000 fits="},
		},
	} {
		all := said(c.connections, c.calls)
		for _, want := range c.wants {
			if !strings.Contains(strings.Join(all, ""), want) {
				t.Errorf("%v: %s; want %s", c.connections, all, want)
			}
		}
		if warned := strings.Contains(strings.Join(all, ""), "level=WARN"); warned != (len(c.wants) > 1) {
			t.Errorf("%v: warned: %v: %s", c.connections, warned, all)
		}
	}
	if got := debug.SetMemoryLimit(-1); got != 256<<20/4*3 {
		t.Errorf("GOMEMLIMIT became %d", got)
	}
}

// queue is a number of connections to close, a few at a time.
type queue struct{ left, each int }

func (q *queue) Shed() int {
	n := min(q.left, q.each)
	q.left -= n
	return n
}

// Callers are the first whose connections are closed. Those of administrators follow when that is not enough, or when
// there are no callers.
func TestCallersAreShedFirst(t *testing.T) {
	now := time.Now()
	callers, admins := &queue{5, 3}, &queue{100, 2}
	s := shedding{callers: callers, admins: admins}
	for _, step := range []struct {
		later           time.Duration
		callers, admins int
	}{{0, 3, 0}, {2 * time.Second, 2, 0}, {2 * time.Second, 0, 2}, {100 * time.Millisecond, 0, 2}} {
		now = now.Add(step.later)
		if c, a := s.shed(now); c != step.callers || a != step.admins {
			t.Errorf("%v later: %d and %d, want %d and %d", step.later, c, a, step.callers, step.admins)
		}
	}
	callers.left = 5
	s.shed(now.Add(time.Minute))
	if c, a := s.shed(now.Add(time.Minute + 100*time.Millisecond)); c != 2 || a != 2 {
		t.Errorf("when the callers were not enough: %d and %d", c, a)
	}
}
