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
	"time"

	"github.com/firn-id/firn/internal/base/files"
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

// trial is a quorum on one machine.
var trial = []string{"127.0.0.1:7421", "127.0.0.1:7422", "127.0.0.1:7423"}

// Each list of machines has a key of its own, made when it is first used: an old one would have a new quorum wait, for
// there may have been one before.
func TestUserFilePerList(t *testing.T) {
	config := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", config)
	t.Setenv("HOME", config)
	read := func(machines ...string) (string, Keys) {
		t.Helper()
		path, err := UserFile(machines)
		if err != nil {
			t.Fatal(err)
		}
		keys, err := ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return path, keys
	}
	first, keys := read(trial...)
	if again, _ := read(trial[2], trial[0], trial[1]); again != first {
		t.Errorf("%s, and in another order %s", first, again)
	}
	old := NewKey(time.Now().Add(-48 * time.Hour))
	if err := os.WriteFile(first, []byte(old.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	other, others := read("127.0.0.1:7521", "127.0.0.1:7522", "127.0.0.1:7523")
	if age := time.Since(others.Since()); other == first || slices.Equal(keys, others) || age > time.Hour {
		t.Errorf("another list has %s, made %v ago; want a new key, not %s", other, age, first)
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
			path, err := UserFile(trial)
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
	path, err := UserFile(trial)
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
	if path, err := UserFile(trial); err == nil ||
		!strings.Contains(err.Error(), "want a file with a key, which firn quorum key makes") {
		t.Errorf("%s, %v; want an error that says what to do", path, err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CONFIG_HOME", file)
	t.Setenv("HOME", file)
	if path, err := UserFile(trial); err == nil {
		if _, err := ReadFile(path); err == nil {
			t.Errorf("%s is there; want an error: a file is where its directory should be", path)
		}
	}
}
