package load_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/ops/load"
)

// twice gives IDs of node ID 7 of the default layout: the same in each run.
type twice struct{ next firn.ID }

func (g *twice) Take(_ context.Context, ids []firn.ID) error {
	for i := range ids {
		ids[i] = g.next
		g.next++
	}
	return nil
}

func (g *twice) Close() {}

// after is a connection that waits for something first.
type after struct {
	load.Connection
	wait func() error
}

func (a after) Take(ctx context.Context, ids []firn.ID) error {
	if err := a.wait(); err != nil {
		return err
	}
	return a.Connection.Take(ctx, ids)
}

// id composes an ID of the default layout.
func id(t *testing.T, node, sequence int64) firn.ID {
	t.Helper()
	made, err := firn.Default.Compose(firn.Parts{Tick: 1000, Node: node, Sequence: sequence})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// against is a plan that takes ten IDs of node ID 7, from sequence 5 on, beside a command.
func against(t *testing.T, command string) load.Plan {
	t.Helper()
	return load.Plan{
		Connect:     func(int) (load.Connection, error) { return &twice{id(t, 7, 5)}, nil },
		Connections: 1, Batch: 2, Count: 10,
		Against: &load.Other{Command: command, Layout: &firn.Default, Stderr: io.Discard},
	}
}

// echo is a command that prints IDs, all at once.
func echo(ids ...firn.ID) string {
	return "printf '" + strings.ReplaceAll(strings.Trim(fmt.Sprint(ids), "[]"), " ", "\\n") + "\\n'"
}

func TestAgainst(t *testing.T) {
	for name, c := range map[string]struct {
		command string
		want    load.Against
	}{
		"another node ID": {
			echo(id(t, 8, 5), id(t, 9, 0)),
			load.Against{
				IDs: 2, Checked: 2, From: id(t, 8, 5), To: id(t, 9, 0), Ours: []int64{7}, Theirs: []int64{8, 9},
			},
		},
		"the same node ID": {
			echo(id(t, 7, 4), id(t, 7, 15), id(t, 1, 1)),
			load.Against{
				IDs: 3, Checked: 3, From: id(t, 1, 1), To: id(t, 7, 15), Ours: []int64{7}, Theirs: []int64{1, 7},
				Both: []int64{7},
			},
		},
		"the same IDs": {
			echo(id(t, 7, 14), id(t, 7, 5), id(t, 7, 5), id(t, 7, 15)),
			load.Against{
				IDs: 4, Checked: 4, Again: 1, Same: 2, Some: []firn.ID{id(t, 7, 5), id(t, 7, 14)}, From: id(t, 7, 5),
				To: id(t, 7, 15), Ours: []int64{7}, Theirs: []int64{7}, Both: []int64{7},
			},
		},
		"blank lines, and those of Windows": {
			"printf '\\n" + id(t, 8, 5).String() + "\\r\\n\\n'",
			load.Against{IDs: 1, Checked: 1, From: id(t, 8, 5), To: id(t, 8, 5), Ours: []int64{7}, Theirs: []int64{8}},
		},
		"a command that leaves others": {
			echo(id(t, 8, 5)) + "; sleep 1000 | sleep 1000",
			load.Against{
				IDs: 1, Stopped: true, Checked: 1, From: id(t, 8, 5), To: id(t, 8, 5), Ours: []int64{7},
				Theirs: []int64{8},
			},
		},
		"a command without an end": {
			"echo " + id(t, 8, 5).String() + "; exec sleep 1000",
			load.Against{
				IDs: 1, Stopped: true, Checked: 1, From: id(t, 8, 5), To: id(t, 8, 5), Ours: []int64{7},
				Theirs: []int64{8},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := result(t, against(t, c.command)).Against
			if !c.want.Stopped {
				got.Stopped = false // it may have ended or not
			}
			if fmt.Sprintf("%+v", *got) != fmt.Sprintf("%+v", c.want) {
				t.Errorf("%q: %+v; want %+v", c.command, *got, c.want)
			}
		})
	}
}

// What scattered sequencers give is compared as it is, and its node ID is that before.
func TestAgainstScattered(t *testing.T) {
	same := firn.Scatter(id(t, 7, 6))
	p := against(t, echo(same))
	p.Scattered = true
	p.Connect = func(int) (load.Connection, error) { return scattering{&twice{id(t, 7, 5)}}, nil }
	got := result(t, p).Against
	if got.Same != 1 || !slices.Equal(got.Some, []firn.ID{same}) || !slices.Equal(got.Both, []int64{7}) {
		t.Errorf("%+v; want the ID %d, of node ID 7", *got, same)
	}
}

type scattering struct{ load.Connection }

func (s scattering) Take(ctx context.Context, ids []firn.ID) error {
	err := s.Connection.Take(ctx, ids)
	for i := range ids {
		ids[i] = firn.Scatter(ids[i])
	}
	return err
}

// IDs without a layout have no node IDs.
func TestAgainstCounter(t *testing.T) {
	p := against(t, echo(id(t, 7, 6)))
	p.Against.Layout = nil
	if got := result(t, p).Against; got.Same != 1 || got.Ours != nil || got.Theirs != nil || got.Both != nil {
		t.Errorf("%+v; want an ID that came twice, and no node ID", *got)
	}
}

// The memory for the IDs of a command is bounded.
func TestAgainstInLittleMemory(t *testing.T) {
	printed := make(chan struct{})
	p := against(t, "seq 2 2 200000; echo printed >&2; exec sleep 1000")
	p.Memory = 1 << 12
	p.Against.Stderr = written(func() { close(printed) })
	p.Connect = func(int) (load.Connection, error) {
		return after{&twice{id(t, 7, 5)}, func() error { <-printed; return nil }}, nil
	}
	r := result(t, p)
	if a := r.Against; a.IDs < 1<<12 || a.Checked >= 1<<12 || r.Duplicates.Checked != 10 {
		t.Errorf("%+v, %+v; want only some of the command's IDs compared, and all of the service", *a, r.Duplicates)
	}
}

func TestAgainstErrors(t *testing.T) {
	for command, want := range map[string]string{
		"exit 7":                 "the command ended with exit status 7; want 0",
		"echo 1; echo 2; exit 7": "the command ended with exit status 7; want 0",
		"no-such-command":        "the command ended with exit status 127; want 0",
		"true":                   "the command printed no ID; want decimals, one per line",
		"echo; echo":             "the command printed no ID; want decimals, one per line",
		"echo 1; echo x2; exec sleep 1000": `line 2 of the command's output: "x2" is not a decimal ID: it has 'x' at ` +
			"byte 0; want only 0123456789",
		"printf '1\\n-2'": `line 2 of the command's output: "-2" is not a decimal ID: it has '-' at byte 0; want ` +
			"only 0123456789",
		"tr '\\0' 1 </dev/zero": "line 1 of the command's output: ",
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			p := against(t, command)
			p.Count, p.Rate, p.Duration = 0, 1000, patience/6 // until the error
			if err := load.New(p).Do(t.Context()); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%v; want %q", err, want)
			}
		})
	}
	narrow := firn.JavaScript
	p := against(t, "echo 9007199254740992")
	p.Against.Layout = &narrow
	const want = "line 1 of the command's output: 9007199254740992 is not an ID of the layout 41/5/7: " +
		"its 53 bits hold 0 to 9007199254740991"
	if err := load.New(p).Do(t.Context()); err == nil || err.Error() != want {
		t.Errorf("%v; want %q", err, want)
	}
}

// The command gets to say on standard error what is wrong with it.
func TestAgainstStandardError(t *testing.T) {
	var says bytes.Buffer
	p := against(t, "echo sorry >&2; exit 1")
	p.Against.Stderr = &says
	if err := load.New(p).Do(t.Context()); err == nil || says.String() != "sorry\n" {
		t.Errorf("%v, and it says %q; want an error, and sorry", err, &says)
	}
}

// An interrupt ends the command, also before its first ID.
func TestAgainstIsInterrupted(t *testing.T) {
	for _, command := range []string{"echo begun >&2; exec sleep 1000", "echo 1; exec sleep 1000"} {
		ctx, interrupt := context.WithCancel(t.Context())
		p := against(t, command)
		p.Count = 0
		p.Connect = func(int) (load.Connection, error) {
			return after{&twice{id(t, 7, 5)}, func() error { interrupt(); return nil }}, nil
		}
		p.Against.Stderr = written(interrupt)
		run := load.New(p)
		if err := run.Do(ctx); err != nil {
			t.Errorf("%q: %v; want what there is", command, err)
		}
		if got := run.Result().Against; got == nil || !got.Stopped {
			t.Errorf("%q: %+v; want a command that was stopped", command, got)
		}
		interrupt()
	}
}

// written is a writer that calls a function.
type written func()

func (w written) Write(b []byte) (int, error) {
	w()
	return len(b), nil
}

// After an interrupt no command starts, which is no error.
func TestAgainstIsInterruptedBefore(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	run := load.New(against(t, "echo 1"))
	if err := run.Do(ctx); err != nil || run.Result().Against != nil {
		t.Errorf("%v, %+v; want nothing", err, run.Result().Against)
	}
}
