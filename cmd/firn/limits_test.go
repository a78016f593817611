package main

import (
	"bytes"
	"runtime/debug"
	"strings"
	"testing"
)

// What the limits are is said at the start, and what is more than there is memory or open files for.
func TestLimitsAreSaid(t *testing.T) {
	before := debug.SetMemoryLimit(256 << 20 / 4 * 3) // as GOMEMLIMIT does
	defer debug.SetMemoryLimit(before)
	said := func(args ...string) (all []string) {
		t.Helper()
		var log bytes.Buffer
		n, err := newNode(testSettings(t, args...), &log)
		if err != nil {
			t.Fatal(err)
		}
		n.limitMemory()
		return strings.SplitAfter(log.String(), "\n")
	}
	for _, c := range []struct {
		args  []string
		wants []string
	}{
		{nil, []string{`level=INFO msg=limits memory="256 MiB" from=GOMEMLIMIT heap="192 MiB" connections=`}},
		{[]string{"--max-connections", "100", "--max-calls", "50"}, []string{" connections=100 calls=50 "}},
		{[]string{"--max-connections", "100000", "--max-calls", "1706"}, []string{" connections=100000 calls=1706 ", "level=WARN", "flag=--max-connections asked=100000 fits="}},
	} {
		all := said(c.args...)
		for _, want := range c.wants {
			if !strings.Contains(strings.Join(all, ""), want) {
				t.Errorf("%v: %s; want %s", c.args, all, want)
			}
		}
		if warned := strings.Contains(strings.Join(all, ""), "level=WARN"); warned != (len(c.wants) > 1) {
			t.Errorf("%v: warned: %v: %s", c.args, warned, all)
		}
	}
	if got := debug.SetMemoryLimit(-1); got != 256<<20/4*3 {
		t.Errorf("GOMEMLIMIT became %d", got)
	}
}
