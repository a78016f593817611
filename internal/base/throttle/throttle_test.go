package throttle

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/internal/test/logtest"
)

// journal is what a log has written.
type journal struct{ logtest.Journal }

// take returns how many lines since the last call have a text, and how many were left out according to the others.
func (j *journal) take(t *testing.T, text string) (written, leftOut int) {
	t.Helper()
	for _, line := range j.Take() {
		_, said, ok := strings.Cut(line, " left_out=")
		switch {
		case ok:
			n, err := strconv.Atoi(said)
			if err != nil {
				t.Errorf("the log says %q", line)
			}
			leftOut += n
		case strings.Contains(line, text):
			written++
		default:
			t.Errorf("the log says %q", line)
		}
	}
	return written, leftOut
}

// Thousands of lines become a bounded number, and a line at the end of the period, or when the log is flushed, counts
// those that were left out.
func TestWhatIsLeftOutIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		l := New(j.Logger())
		const lines = 7200
		flood := func() {
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					for range lines / 8 {
						l.Write(slog.LevelWarn, "", "refused")
					}
				})
			}
			all.Wait()
		}
		flood()
		if written, leftOut := j.take(t, "refused"); written != First || leftOut != 0 {
			t.Errorf("of %d lines %d are written, and %d said to be left out; want %d and none yet", lines, written,
				leftOut, First)
		}
		time.Sleep(Period)
		synctest.Wait()
		if written, leftOut := j.take(t, "refused"); written != 0 || leftOut != lines-First {
			t.Errorf("after the period %d are written, and %d said to be left out; want 0 and %d", written,
				leftOut, lines-First)
		}
		time.Sleep(Period)
		flood() // the next period is like the first
		l.Flush()
		if written, leftOut := j.take(t, "refused"); written != First || leftOut != lines-First {
			t.Errorf("in another period %d are written, and %d said to be left out; want %d and %d", written, leftOut,
				First, lines-First)
		}
		time.Sleep(2 * Period)
		l.Flush()
		if written, leftOut := j.take(t, "refused"); written != 0 || leftOut != 0 {
			t.Errorf("in peace %d are written, and %d said to be left out", written, leftOut)
		}
	})
}

// A log that writes lines once counts the others as well.
func TestOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		l := NewOnce(j.Logger())
		for range 2 {
			for range First {
				l.Write(slog.LevelWarn, "", "refused")
			}
			time.Sleep(Period)
			synctest.Wait()
			if written, leftOut := j.take(t, "refused"); written != 1 || leftOut != First-1 {
				t.Errorf("%d are written, and %d said to be left out; want 1 and %d", written, leftOut, First-1)
			}
		}
	})
}

// A flood of one kind hides no other, and lines below the log's level count for nothing.
func TestKindsAreCountedApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		l := New(j.Logger())
		for range 10 * First {
			l.Write(slog.LevelWarn, "anonymous", "refused")
			l.Write(slog.LevelDebug, "", "nobody looks at it")
		}
		j.take(t, "refused")
		l.Write(slog.LevelWarn, "billing", "refused", "who", "billing")
		l.Write(slog.LevelInfo, "anonymous", "refused", "who", "billing")
		if written, _ := j.take(t, "who=billing"); written != 2 {
			t.Errorf("%d of 2 lines of other kinds are written", written)
		}
		l.Flush()
	})
}

// Any number of kinds takes a bounded amount of memory.
func TestKindsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		l := New(j.Logger())
		const all = 3 * maxKinds
		for i := range all {
			l.Write(slog.LevelWarn, fmt.Sprint(i), "refused")
		}
		if n := len(l.kinds); n > maxKinds+1 {
			t.Errorf("there are %d kinds", n)
		}
		l.Flush()
		if written, leftOut := j.take(t, "refused"); written != maxKinds+First || written+leftOut != all {
			t.Errorf("%d are written and %d left out; want %d, and %d in all", written, leftOut, maxKinds+First, all)
		}
	})
	var none *Log
	none.Write(slog.LevelWarn, "", "nobody is told")
	none.Flush()
}
