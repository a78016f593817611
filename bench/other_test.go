package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/testenv"
)

// Other libraries and firn make IDs of one space side by side, as docs/comparison.md says: firn bench --against finds
// nothing where their node ID is reserved, and finds the one that a node of firn has, too.
func TestOtherLibrariesSideBySide(t *testing.T) {
	testenv.Slow(t)
	const ours, theirs = 9, 5
	s := settings{programs: t.TempDir(), progress: io.Discard}
	other, err := s.build(t.Context(), "other")
	if err != nil {
		t.Fatal(err)
	}
	f := serveFirn(t, s, fmt.Sprintf("bwmarrin=%[1]d,sonyflake-1=%[1]d,sonyflake-2=%[1]d", ours))
	for _, c := range []struct {
		sequencer, command string
		layout             []string
	}{
		{"bwmarrin", other + " bwmarrin %d", []string{"--layout", "twitter"}},
		{"sonyflake-1", other + " sonyflake %d 2014-09-01", []string{"--layout", "sonyflake"}},
		{"sonyflake-2", other + " sonyflake %d", []string{"--layout", "sonyflake", "--epoch", "2025-01-01"}},
	} {
		t.Run(c.sequencer, func(t *testing.T) {
			f.run(t, append([]string{"sequencer", "create", c.sequencer}, c.layout...)...)
			f.run(t, "sequencer", "reserve", c.sequencer, "--nodes", fmt.Sprint(theirs), "--for", c.sequencer)

			got, err := f.against(t, c.sequencer, fmt.Sprintf(c.command, theirs))
			if err != nil || got.Same != 0 || !slices.Equal(got.Ours, []int64{ours}) ||
				!slices.Equal(got.Theirs, []int64{theirs}) || len(got.Both) > 0 || len(got.Unreserved) > 0 {
				t.Errorf("beside the reserved node ID %d: %v, %+v", theirs, err, got)
			}
			for _, at := range got.Times {
				if since := time.Since(at).Abs(); since > time.Hour {
					t.Errorf("an ID was made at %v by the layout, want about now", at)
				}
			}

			got, err = f.against(t, c.sequencer, fmt.Sprintf(c.command, ours))
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("node ID %d", ours)) ||
				!slices.Equal(got.Both, []int64{ours}) || !slices.Equal(got.Unreserved, []int64{ours}) {
				t.Errorf("beside the node ID %d of firn: %v, %+v; want an error", ours, err, got)
			}
			t.Logf("%d IDs came from both, with one node ID", got.Same)
		})
	}
}

// served is a running firn serve.
type served struct{ program, server, admin string }

// serveFirn starts firn serve with these node IDs, until the test ends.
func serveFirn(t *testing.T, s settings, nodes string) served {
	t.Helper()
	program, err := s.build(t.Context(), filepath.Join("..", "cmd", "firn"))
	if err != nil {
		t.Fatal(err)
	}
	var addresses [2]string
	for i := range addresses {
		if addresses[i], err = freeAddress(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background()) // t.Context() would end before the process is stopped
	c := &contest{dir: t.TempDir()}
	p, err := c.start(ctx, program, "serve", "--http-addr", addresses[0], "--admin-addr", addresses[1], "--data-dir",
		filepath.Join(c.dir, "data"), "--drain-delay", "0s", "--node", nodes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.stop()
		cancel()
	})
	if _, err := p.awaitID(t.Context(), "http", "http://"+addresses[0]); err != nil {
		t.Fatal(err)
	}
	return served{program, addresses[0], addresses[1]}
}

// run runs a command of firn for administrators, which must succeed.
func (f served) run(t *testing.T, args ...string) {
	t.Helper()
	if out, err := f.command(append(args, "--admin", f.admin)...).CombinedOutput(); err != nil {
		t.Fatalf("firn %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

func (f served) command(args ...string) *exec.Cmd { return exec.Command(f.program, args...) }

// compared is what firn bench --against tells programs.
type compared struct {
	Same       int64
	Times      []time.Time
	Ours       []int64 `json:"service_nodes"`
	Theirs     []int64 `json:"command_nodes"`
	Both       []int64 `json:"both_nodes"`
	Unreserved []int64 `json:"unreserved_nodes"`
}

// against runs firn bench --against. The error has what it says on standard error.
func (f served) against(t *testing.T, sequencer, command string) (compared, error) {
	t.Helper()
	var says strings.Builder
	bench := f.command("bench", "--server", f.server, "--sequencer", sequencer, "--concurrency", "2", "--rate", "5000",
		"--duration", "500ms", "--json", "--against", command)
	bench.Stderr = &says
	out, err := bench.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, &says)
	}
	var result struct{ Against compared }
	if json.Unmarshal(out, &result) != nil {
		t.Fatalf("it prints %s, %v", out, err)
	}
	return result.Against, err
}
