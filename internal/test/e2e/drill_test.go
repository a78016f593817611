//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// drilled is the member with drills: right before it sends a command, a process looks for a file of that name in the
// directory that DRILLS names. The one that takes the file away dies, as by kill -9; while there is one that ends in
// .hold it waits.
func drilled() map[string]string {
	return map[string]string{filepath.Join("..", "..", "..", "internal", "core", "peer", "drill.go"): `package peer

import (
	"os"
	"path/filepath"
	"syscall"
	"time"
)

func drill(command string) {
	dir := os.Getenv("DRILLS")
	if dir == "" {
		return
	}
	file := filepath.Join(dir, command)
	if os.Remove(file) == nil {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	for {
		if _, err := os.Stat(file + ".hold"); err != nil {
			return
		}
		_ = os.WriteFile(file+".held", nil, 0o600)
		time.Sleep(5 * time.Millisecond)
	}
}
`}
}

// drills is the directory of the nodes of one test.
type drills struct {
	t   *testing.T
	dir string
}

func (d drills) put(file string) {
	d.t.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, file), nil, 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// kill has the first node die that is about to send the command.
func (d drills) kill(command string) { d.put(command) }

// hold has nodes that are about to send the command wait until it is told to go on.
func (d drills) hold(command string) (goOn func()) {
	d.t.Helper()
	d.put(command + ".hold")
	return func() {
		d.t.Helper()
		for _, file := range []string{".hold", ".held"} {
			if err := os.Remove(filepath.Join(d.dir, command+file)); err != nil {
				d.t.Fatal(err)
			}
		}
	}
}

// held waits until some node does.
func (d drills) held(command string) {
	d.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(d.dir, command+".held")); err == nil {
			return
		}
		if time.Now().After(deadline) {
			d.t.Fatalf("nobody is about to send %s", command)
		}
	}
}
