package doctest

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/responsive"
	"github.com/firn-id/firn/internal/test/testenv"
)

// The runner runs what is right, and only there does it leave something.
func TestAGoodPage(t *testing.T) {
	testenv.Slow(t)
	if err := build(t).runPage(t, readPage(t, "testdata/good.md")); err != nil {
		t.Error(err)
	}
	for _, left := range []string{"/tmp/doctest-testdata", "/etc/doctest-testdata", "/tmp/elsewhere"} {
		if _, err := os.Stat(left); err == nil {
			t.Errorf("%s is left on the machine", left)
		}
	}
}

// The runner finds what is wrong: each part of broken.md is a page, and its heading the error.
func TestBrokenPages(t *testing.T) {
	testenv.Slow(t)
	data, err := os.ReadFile(filepath.Join("testdata", "broken.md"))
	if err != nil {
		t.Fatal(err)
	}
	h := build(t)
	for _, part := range strings.Split(string(data), "\n## ")[1:] {
		want, text, _ := strings.Cut(part, "\n")
		p, err := parse("broken.md", "\n\n"+text)
		if err == nil {
			err = h.runPage(t, p)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n-- found: %v\n-- want: %s", text, err, want)
		}
		if _, err := h.order("end"); err != nil {
			t.Fatal(err)
		}
	}
}

// What may fail on a machine that is late fails on one that is not.
func TestPrompt(t *testing.T) {
	testenv.Slow(t)
	p, err := parse("prompt.md", "<!-- doctest: prompt -->\n```sh\nexit 7 # prints 300\n```\n")
	if err != nil {
		t.Fatal(err)
	}
	h := build(t)
	t.Cleanup(func() { lateSince = responsive.Late })
	for _, late := range []time.Duration{responsive.Limit, responsive.Limit + 1} {
		lateSince = func(time.Time) time.Duration { return late }
		if err := h.runPage(t, p); (err == nil) != (late > responsive.Limit) {
			t.Errorf("late by %v: %v", late, err)
		}
	}
}

// What hangs is ended with its house; else this test would not end.
func TestAHouseEndsWithWhatRuns(t *testing.T) {
	testenv.Slow(t)
	t.Run("house", func(t *testing.T) {
		h := build(t)
		h.write(t, "sleep.sh", "touch /mnt/page/began; sleep 1000")
		if _, err := io.WriteString(h.orders, "run sleep\n"); err != nil {
			t.Fatal(err)
		}
		for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
			if _, err := os.Stat(filepath.Join(h.dir, "began")); err == nil {
				return
			}
			if time.Since(began) > patience {
				t.Fatal("it does not begin")
			}
		}
	})
}
