//go:build unix

package place

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// entered has a directory belong to where it is, and returns the log.
func entered(t *testing.T, dir, address string, moved bool) string {
	t.Helper()
	var log bytes.Buffer
	if err := Check(dir, address, moved); err != nil {
		t.Error(err)
	}
	if err := Enter(dir, address, moved, slog.New(slog.NewTextHandler(&log, nil))); err != nil {
		t.Fatal(err)
	}
	return log.String()
}

// refused expects an error that says something, and a directory that is as before.
func refused(t *testing.T, dir, address string, moved bool, want ...string) {
	t.Helper()
	before, _ := os.ReadFile(filepath.Join(dir, File))
	checked := Check(dir, address, moved)
	err := Enter(dir, address, moved, slog.New(slog.DiscardHandler))
	if differs, ok := errors.AsType[*Error](err); ok && (checked == nil || checked.Error() != differs.Error()) {
		t.Errorf("Check: %v; want what Enter says: %v", checked, err)
	}
	for _, w := range want {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("%v; want an error that says %q", err, w)
		}
	}
	if after, _ := os.ReadFile(filepath.Join(dir, File)); !bytes.Equal(before, after) {
		t.Errorf("the file was %s and is %s", before, after)
	}
}

func copied(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// A directory is used again where it is, also under another name; a copy is not, until somebody says that it was moved.
func TestEnterAlone(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for range 3 { // new, and twice more
		if log := entered(t, dir, "", false); log != "" {
			t.Errorf("it says %s", log)
		}
	}
	twin := copied(t, dir)
	refused(t, twin, "", false, "it is a copy, or was moved", dir, twin, "--moved")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	entered(t, link, "", false)
	renamed := dir + "-renamed"
	if err := os.Rename(dir, renamed); err != nil {
		t.Fatal(err)
	}
	entered(t, renamed, "", false)
	if log := entered(t, renamed, "", true); !strings.Contains(log, "without the flag copies of it are refused") {
		t.Errorf("moved without need: it says %q", log)
	}
	if log := entered(t, twin, "", true); !strings.Contains(log, "it belongs here from now on") {
		t.Errorf("moved: it says %q", log)
	}
	entered(t, twin, "", false)
	entered(t, renamed, "", false)
	back := copied(t, renamed) // as from a backup, in place of the original
	if err := os.RemoveAll(renamed); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(renamed, os.DirFS(back)); err != nil {
		t.Fatal(err)
	}
	refused(t, renamed, "", false, "it is a copy, or was moved")
}

// A machine of a quorum uses any copy of its own directory, and no other machine's, whatever its user says.
func TestEnterAMachine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	entered(t, dir, "ids-1:7420", false)
	twin := copied(t, dir)
	for _, moved := range []bool{false, true} {
		refused(t, twin, "ids-2:7420", moved, "belongs to the machine ids-1:7420 of a quorum",
			"this machine is ids-2:7420", "start this machine with an empty one",
			"delete nothing", "firn quorum replace ids-1:7420 ids-2:7420",
			"firn quorum restore "+twin+" --as ids-2:7420")
	}
	refused(t, twin, "", false, "it is a copy, or was moved")
	entered(t, twin, "ids-1:7420", false)
	entered(t, dir, "", false) // the last one becomes a quorum of one
	entered(t, dir, "ids-3:7420", false)
	refused(t, dir, "ids-1:7420", true, "belongs to the machine ids-3:7420")

	restored := t.TempDir()
	if err := Assign(restored, "ids-1:7420"); err != nil {
		t.Fatal(err)
	}
	refused(t, restored, "ids-2:7420", true, "belongs to the machine ids-1:7420 of a quorum, and")
	refused(t, restored, "", false, "it belongs to the machine ids-1:7420 of a quorum, and is now "+restored)
	entered(t, restored, "ids-1:7420", false)
}

// What can't be read is not taken for a directory that has no place yet.
func TestEnterUnreadable(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "{", "{}", "null", `{"inode": "1"}`} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, File), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		refused(t, dir, "", true, filepath.Join(dir, File), "can't be read", "delete the file")
	}
}
