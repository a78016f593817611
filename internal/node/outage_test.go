package node

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/member"
)

// A node tells once that it gives no IDs, with the reason, and once that it gives them again. Who has given none yet, and who
// is not ready for a moment, tells nothing.
func TestOutage(t *testing.T) {
	cut := fmt.Errorf("%w: the store does not answer", member.ErrNotReady)
	other := errors.New("another reason")
	for name, c := range map[string]struct {
		by   []error // a second apart
		want []string
	}{
		"never ready":       {[]error{cut, cut, cut, cut, cut}, nil},
		"always ready":      {[]error{nil, nil, nil, nil}, nil},
		"for a moment":      {[]error{nil, cut, cut, nil, nil, cut, cut, nil}, nil},
		"for long":          {[]error{nil, cut, cut, cut, other, other, other}, []string{"ERROR"}},
		"and again":         {[]error{cut, nil, cut, cut, cut, cut, nil, nil}, []string{"ERROR", "INFO"}},
		"twice":             {[]error{nil, cut, cut, cut, nil, cut, cut, cut, nil}, []string{"ERROR", "INFO", "ERROR", "INFO"}},
		"somebody wants it": {[]error{nil, member.ErrDetached, member.ErrDetached, member.ErrDetached}, []string{"WARN"}},
	} {
		var text strings.Builder
		var o outage
		log, now := slog.New(slog.NewTextHandler(&text, nil)), time.Date(2026, 11, 27, 2, 47, 31, 0, time.UTC)
		for _, why := range c.by {
			o.look(log, now, why)
			now = now.Add(time.Second)
		}
		var got []string
		for line := range strings.Lines(text.String()) {
			_, level, _ := strings.Cut(line, "level=")
			level, _, _ = strings.Cut(level, " ")
			got = append(got, level)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v; want %v:\n%s", name, got, c.want, text.String())
		}
		for _, words := range []string{`why="the store does not answer"`, "since=2026-11-27T02:47:3"} {
			if c.by[len(c.by)-1] == other && !strings.Contains(text.String(), words) {
				t.Errorf("%s: it does not say %s: %s", name, words, text.String())
			}
		}
	}
}
