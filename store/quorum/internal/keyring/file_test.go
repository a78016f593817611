//go:build unix

package keyring

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/firn-id/firn/internal/files"
)

func TestReadFile(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	dir, err := os.MkdirTemp("", "firn-keys-") // unlike that of the test, everybody can look into it
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "firn.key")
	keys := keysOf("ab")
	if err := os.WriteFile(path, []byte(keys[0].String()+"\n"+keys[1].String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[os.FileMode]string{
		0o600: "", 0o400: "", 0o440: "",
		0o644: "everybody can read " + path + " (mode 0644): chmod o-r " + path,
		0o602: "everybody can write " + path + " (mode 0602): chmod go-w " + path,
	} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		got, err := ReadFile(path)
		var wrong *files.ModeError
		switch {
		case want == "" && (err != nil || !slices.Equal(got, keys)):
			t.Errorf("mode %04o: %d keys, %v; want both", mode, len(got), err)
		case want != "" && (!errors.As(err, &wrong) || err.Error() != want):
			t.Errorf("mode %04o: %v; want %s", mode, err, want)
		}
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1") // the kubelet sets the modes of what it mounts
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadFile(path); err != nil || !slices.Equal(got, keys) {
		t.Errorf("in a pod: %v", err)
	}
	if err := os.WriteFile(path, []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(path); err == nil || !strings.HasPrefix(err.Error(), path+": line 1: not a key") {
		t.Errorf("%v; want it with the path", err)
	}
}

// All processes of a user that start at once get the same key, which nobody else can read.
func TestUserFileIsMadeOnce(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config") // it is not there yet
	t.Setenv("XDG_CONFIG_HOME", config)
	t.Setenv("HOME", config) // of systems that do not ask for XDG_CONFIG_HOME
	var all sync.WaitGroup
	begin := make(chan struct{})
	got := make([]Keys, 16)
	for i := range got {
		all.Go(func() {
			<-begin
			path, err := UserFile()
			if err == nil {
				got[i], err = ReadFile(path)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	close(begin)
	all.Wait()
	for _, keys := range got {
		if len(keys) != 1 || !slices.Equal(keys, got[0]) {
			t.Fatalf("%v and %v; want one key, and the same for all", keys.Fingerprints(), got[0].Fingerprints())
		}
	}
	path, err := UserFile()
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want mode %04o", path, info, err, want)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
		t.Errorf("these are left: %v", left)
	}
}

func TestUserFileWithoutADirectory(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("HOME", "")
	if path, err := UserFile(); err == nil || !strings.Contains(err.Error(), "want a file with a key, which firn quorum key makes") {
		t.Errorf("%s, %v; want an error that says what to do", path, err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CONFIG_HOME", file)
	t.Setenv("HOME", file)
	if path, err := UserFile(); err == nil {
		if _, err := ReadFile(path); err == nil {
			t.Errorf("%s is there; want an error: a file is where its directory should be", path)
		}
	}
}
