package demo

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/firn-id/firn/internal/ops/deploy"
)

// The program calls itself by its name only if a shell finds this very program by it.
func TestSelf(t *testing.T) {
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "firn"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", other)
	if got := self(); got != deploy.Quote(path) {
		t.Errorf("where firn is another program it calls itself %s, want %s", got, deploy.Quote(path))
	}
	same := t.TempDir()
	if err := os.Symlink(path, filepath.Join(same, "firn")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", same)
	if got := self(); got != "firn" {
		t.Errorf("where firn is this program it calls itself %s, want firn", got)
	}
}

// builtByGoRun recognizes programs of go run, new and cached.
func TestBuiltByGoRun(t *testing.T) {
	for _, path := range []string{"/usr/bin/firn", "/home/go-builder/exec/firn"} {
		if builtByGoRun(path) {
			t.Errorf("%s is taken for one that go run has built", path)
		}
	}
	source := filepath.Join(t.TempDir(), "where.go")
	const text = "package main\n\nimport \"os\"\n\nfunc main() { path, _ := os.Executable(); print(path) }\n"
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		out, err := exec.Command("go", "run", source).CombinedOutput()
		if path := string(out); err != nil || !builtByGoRun(path) {
			t.Errorf("%q is not taken for one that go run has built: %v", path, err)
		}
	}
}
