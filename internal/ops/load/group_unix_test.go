//go:build unix

package load_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/ops/load"
)

// pipe returns the name of a pipe, and a function that waits until nobody has it open for writing.
func pipe(t *testing.T) (name string, closed func() error) {
	t.Helper()
	name = filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	if err := r.SetReadDeadline(time.Now().Add(patience / 2)); err != nil {
		t.Fatal(err)
	}
	return name, func() error {
		if _, err := r.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			return fmt.Errorf("the pipe is open: %w", err)
		}
		return nil
	}
}

// What the command has started ends with it: a pipe that only it holds is closed.
func TestAgainstLeavesNothing(t *testing.T) {
	name, closed := pipe(t)
	if got := result(t, against(t, "exec 3>"+name+"; sleep 1000 & echo 1; wait")).Against; got.IDs != 1 {
		t.Errorf("%+v; want one ID", *got)
	}
	if err := closed(); err != nil {
		t.Error(err)
	}
}

// A command that ended by itself has printed all its IDs, the last one also without the end of its line.
func TestAgainstReadsAll(t *testing.T) {
	name, closed := pipe(t)
	p := against(t, "exec 3>"+name+"; echo 1; printf 2")
	p.Connect = func(int) (load.Connection, error) { return after{&twice{id(t, 7, 5)}, closed}, nil }
	if got := result(t, p).Against; got.IDs != 2 || got.Stopped {
		t.Errorf("%+v; want two IDs of a command that was not stopped", *got)
	}
}
