//go:build unix

package secretfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Without data the secret goes to a directory for the user alone; one that another user may have made is refused.
func TestRuntimeDir(t *testing.T) {
	base := t.TempDir()
	t.Setenv("RUNTIME_DIRECTORY", "")
	t.Setenv("XDG_RUNTIME_DIR", base)
	dir, err := runtimeDir()
	if info, statErr := os.Stat(dir); err != nil || statErr != nil || dir != filepath.Join(base, "firn") ||
		info.Mode().Perm() != 0o700 {
		t.Errorf("it is %s, %v, %v", dir, err, statErr)
	}
	if _, err := runtimeDir(); err != nil {
		t.Errorf("once more: %v", err)
	}
	if err := os.Chmod(dir, 0o770); err != nil {
		t.Fatal(err)
	}
	if _, err := runtimeDir(); err == nil || !strings.Contains(err.Error(), "others can get at it (mode 0770)") {
		t.Errorf("others can write there: %v", err)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(t.TempDir(), dir); err != nil {
		t.Fatal(err)
	}
	if _, err := runtimeDir(); err == nil || !strings.Contains(err.Error(), "it is not a directory") {
		t.Errorf("it is a link: %v", err)
	}
	t.Setenv("RUNTIME_DIRECTORY", "/run/firn:/run/other")
	if dir, err := runtimeDir(); dir != "/run/firn" || err != nil {
		t.Errorf("under systemd it is %s, %v", dir, err)
	}
}

// The directory that systemd made stays when the node ends: the next start needs it.
func TestRemoveKeepsTheDirectory(t *testing.T) {
	t.Setenv("RUNTIME_DIRECTORY", t.TempDir())
	for start := range 2 {
		path, err := RuntimePath("127.0.0.1:9080")
		if err == nil {
			err = Write(path, "firn_secret", []string{"127.0.0.1:9080"})
		}
		if err != nil {
			t.Fatalf("start %d: %v", start, err)
		}
		Remove(path, "firn_secret")
		if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) > 0 {
			t.Errorf("start %d leaves %v, %v; want an empty directory", start, left, err)
		}
	}
}

// Where a file's mode keeps nobody out, no secret is written.
func TestNoSecretWithoutModes(t *testing.T) {
	errUnprotected = errors.New("a file's mode does not keep other users out")
	t.Cleanup(func() { errUnprotected = nil })
	path := filepath.Join(t.TempDir(), Name)
	if err := Write(path, "firn_secret", []string{"127.0.0.1:9080"}); !errors.Is(err, errUnprotected) {
		t.Errorf("%v, want %v", err, errUnprotected)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file was made: %v", err)
	}
}
