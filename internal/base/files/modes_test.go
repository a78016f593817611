//go:build unix

package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/internal/test/logtest"
)

// made is a file or a directory (its name ends in /) with a mode, as nobody's umask changes it.
type made struct {
	name string
	mode os.FileMode
}

// What others can write, or can put something else in the place of, is told with its mode and what chmod mends it; what
// everybody can read, too, if they come that far.
func TestModes(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for _, tt := range []struct {
		what   string
		files  []made
		writes string // the end of the error; empty: nobody else can
		reads  string
	}{
		{"its owner's", []made{{"d/", 0o755}, {"d/f", 0o600}}, "", ""},
		{"for a group to read", []made{{"d/", 0o755}, {"d/f", 0o640}}, "", ""},
		{
			"for everybody to read",
			[]made{{"d/", 0o755}, {"d/f", 0o644}},
			"",
			"everybody can read D/d/f (mode 0644): chmod o-r D/d/f",
		},
		{"for everybody to read, where nobody comes", []made{{"d/", 0o700}, {"d/f", 0o644}}, "", ""},
		{
			"for everybody to write",
			[]made{{"d/", 0o755}, {"d/f", 0o666}},
			"everybody can write D/d/f (mode 0666): chmod go-w D/d/f",
			"everybody can read D/d/f (mode 0666): chmod o-r D/d/f",
		},
		{
			"in a directory for everybody",
			[]made{{"d/", 0o777}, {"d/f", 0o600}},
			"everybody can write D/d (mode 0777): chmod go-w D/d", "",
		},
		{
			"in a directory below one for everybody",
			[]made{{"d/", 0o777}, {"d/e/", 0o700}, {"d/e/f", 0o600}},
			"everybody can write D/d (mode 0777): chmod go-w D/d", "",
		},
		{"in a directory such as /tmp", []made{{"d/", 0o777 | os.ModeSticky}, {"d/f", 0o600}}, "", ""},
		{
			"a directory such as /tmp",
			[]made{{"d/", 0o755}, {"d/f/", 0o777 | os.ModeSticky}},
			"everybody can write D/d/f (mode 1777): chmod go-w D/d/f",
			"everybody can read D/d/f (mode 1777): chmod o-rx D/d/f",
		},
		{"a group's, that is its owner's alone", []made{{"d/", 0o775}, {"d/f", 0o660}}, "", ""},
		{
			"a directory for everybody to look into",
			[]made{{"d/", 0o755}, {"d/f/", 0o755}},
			"",
			"everybody can read D/d/f (mode 0755): chmod o-rx D/d/f",
		},
		{"not there", []made{{"d/", 0o700}}, "", ""},
	} {
		dir := openDir(t)
		for _, m := range tt.files {
			path := filepath.Join(dir, m.name)
			make := func() error { return os.WriteFile(path, nil, 0o600) }
			if strings.HasSuffix(m.name, "/") {
				make = func() error { return os.Mkdir(path, 0o700) }
			}
			err := make()
			if err == nil {
				err = os.Chmod(path, m.mode)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		path := filepath.Join(dir, "d/f")
		for what, is := range map[string]struct {
			err  error
			want string
		}{"write": {CheckWriters(path), tt.writes}, "read": {CheckReaders(path), tt.reads}} {
			var mode *ModeError
			if got := strings.ReplaceAll(text(is.err), dir, "D"); got != is.want ||
				got != "" && !errors.As(is.err, &mode) {
				t.Errorf("%s: who can %s it: %q; want %q", tt.what, what, got, is.want)
			}
		}
		t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
		if err := errors.Join(CheckWriters(path), CheckReaders(path)); err != nil {
			t.Errorf("%s, in a pod: %v", tt.what, err)
		}
		t.Setenv("KUBERNETES_SERVICE_HOST", "")
	}
}

// What another user owns is that user's to write, whatever the mode says: a file, a directory above, /tmp itself, a
// link on the way. Root's is as good as one's own.
func TestOwners(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	const alice, me = 4711, 4712
	before := user
	t.Cleanup(func() { user = before })
	user = func() int { return me }
	for _, tt := range []struct {
		what string
		// of D/d/e/f (a file), D/l (a link to d/e) and D/tmp/l (a link to ../d/e, below a directory as /tmp); else root
		owner map[string]int
		path  string
		want  string
	}{
		{"root's", nil, "d/e/f", ""},
		{"one's own", map[string]int{"d": me, "d/e": me, "d/e/f": me, "l": me, "tmp": me, "tmp/l": me}, "tmp/l/f", ""},
		{
			"another's file",
			map[string]int{"d/e/f": alice},
			"d/e/f",
			"its owner 4711 can write D/d/e/f (mode 0600): chown 4712 D/d/e/f",
		},
		{
			"another's file, by a link",
			map[string]int{"d/e/f": alice},
			"l/f",
			"its owner 4711 can write D/l/f (mode 0600): chown 4712 D/l/f",
		},
		{
			"in another's directory",
			map[string]int{"d/e": alice},
			"d/e/f",
			"its owner 4711 can write D/d/e (mode 0700): chown 4712 D/d/e",
		},
		{
			"below another's directory",
			map[string]int{"d": alice},
			"d/e/f",
			"its owner 4711 can write D/d (mode 0700): chown 4712 D/d",
		},
		{
			"another's directory, by a link",
			map[string]int{"d": alice},
			"l/f",
			"its owner 4711 can write D/d (mode 0700): chown 4712 D/d",
		},
		{
			"what is still to be made there",
			map[string]int{"d/e": alice},
			"l/new",
			"its owner 4711 can write D/d/e (mode 0700): chown 4712 D/d/e",
		},
		{
			"in another's directory as /tmp",
			map[string]int{"tmp": alice},
			"tmp/f",
			"its owner 4711 can write D/tmp (mode 1777): chown 4712 D/tmp",
		},
		{
			"another's link below /tmp",
			map[string]int{"tmp/l": alice},
			"tmp/l/f",
			"its owner 4711 can write D/tmp/l (mode 0777): chown 4712 D/tmp/l",
		},
		{
			"a way back through another's",
			map[string]int{"tmp": alice},
			"tmp/../d/e/f",
			"its owner 4711 can write D/tmp (mode 1777): chown 4712 D/tmp",
		},
	} {
		dir := openDir(t)
		for _, err := range []error{
			os.MkdirAll(filepath.Join(dir, "d/e"), 0o700), os.WriteFile(filepath.Join(dir, "d/e/f"), nil, 0o600),
			os.Symlink("d/e", filepath.Join(dir, "l")), os.Mkdir(filepath.Join(dir, "tmp"), 0o700),
			os.Chmod(filepath.Join(dir, "tmp"), 0o777|os.ModeSticky),
			os.Symlink("../d/e", filepath.Join(dir, "tmp/l")), os.WriteFile(filepath.Join(dir, "tmp/f"), nil, 0o600),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		for name, owner := range tt.owner {
			if err := os.Lchown(filepath.Join(dir, name), owner, owner); err != nil {
				t.Fatal(err)
			}
		}
		if got := strings.ReplaceAll(text(CheckWriters(dir+"/"+tt.path)), dir, "D"); got != tt.want {
			t.Errorf("%s: %q; want %q", tt.what, got, tt.want)
		}
		t.Chdir(dir)
		if got := strings.ReplaceAll(text(CheckWriters(tt.path)), dir, "D"); (got == "") != (tt.want == "") {
			t.Errorf("%s, by a relative path: %q; want %q", tt.what, got, tt.want)
		}
		inside := map[bool]string{true: "its owner 4711"}[tt.owner["d"]+tt.owner["d/e"]+tt.owner["d/e/f"] != 0 &&
			tt.want != ""]
		if got := text(CheckTree(filepath.Join(dir, "d"))); !strings.HasPrefix(got, inside) ||
			(got == "") != (inside == "") {
			t.Errorf("%s: the tree: %q; want %q", tt.what, got, inside)
		}
	}
}

// In a user namespace without root, root's directories belong to the user whom the system has for unknown ones.
func TestRootByAnotherName(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	path := filepath.Join(openDir(t), "f")
	write(t, path, "")
	if err := os.Chown(path, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	if CheckWriters(path) == nil {
		t.Error("nothing is said of another user's file")
	}
	before := rootOwner
	t.Cleanup(func() { rootOwner = before })
	rootOwner = func() uint32 { return 65534 }
	if err := CheckWriters(path); err != nil {
		t.Errorf("root's, by another name: %v", err)
	}
}

// Links that lead in circles lead nowhere.
func TestLinksInCircles(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	dir := openDir(t)
	if err := errors.Join(os.Symlink("b", filepath.Join(dir, "a")),
		os.Symlink("a", filepath.Join(dir, "b"))); err != nil {
		t.Fatal(err)
	}
	if err := CheckWriters(filepath.Join(dir, "a")); err != nil {
		t.Error(err)
	}
}

// openDir is a directory for the test that everybody can look into.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "firn-modes-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// As Kubernetes mounts a secret: a link to a link, in a directory that everybody can write and that has the sticky bit,
// to a file that everybody can read. A link in a directory for everybody is as good as no file.
func TestModesOfLinks(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	dir := openDir(t)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(filepath.Join(dir, "..2026"), 0o755))
	must(os.WriteFile(filepath.Join(dir, "..2026", "tokens.yaml"), nil, 0o644))
	must(os.Symlink("..2026", filepath.Join(dir, "..data")))
	must(os.Symlink("..data/tokens.yaml", filepath.Join(dir, "tokens.yaml")))
	must(os.Chmod(dir, 0o777|os.ModeSticky))
	path := filepath.Join(dir, "tokens.yaml")
	if err := CheckWriters(path); err != nil {
		t.Errorf("a secret of Kubernetes: %v", err)
	}
	if CheckReaders(path) == nil {
		t.Error("everybody can read it, and nothing is said")
	}
	must(os.Chmod(dir, 0o777))
	if CheckWriters(path) == nil {
		t.Error("everybody can turn the link over, and nothing is said")
	}
}

// A group is its owner's alone when nobody else has it, by either file.
func TestSharedGroup(t *testing.T) {
	const passwd = "root:x:0:0::/root:/bin/sh\nalice:x:1000:1000::/home/alice:/bin/sh\n" +
		"bob:x:1001:100::/home/bob:/bin/sh\n"
	const groups = "root:x:0:\nusers:x:100:\nalice:x:1000:\ndev:x:2000:alice,bob\nmine:x:2001:alice\nadm:x:4:root\n"
	for gid, want := range map[uint32]string{
		0: "", 1000: "", 2001: "", 4: "", 100: "the group users",
		2000: "the group dev", 65532: "",
	} {
		if got := sharedGroup(passwd, groups, gid, []uint32{1000, 1000, 0}); got != want {
			t.Errorf("the group %d: %q; want %q", gid, got, want)
		}
	}
	if got := sharedGroup("", "", 65532, []uint32{65532, 0}); got != "" {
		t.Errorf("where nobody has a name: %q", got)
	}
}

// A file that others can write is not read. If it becomes one of those, the last value stays.
func TestFilesThatOthersCanWrite(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	path := filepath.Join(t.TempDir(), "file")
	write(t, path, "the owner's")
	synctest.Test(t, func(t *testing.T) {
		var log logtest.Journal
		parse := func(contents [][]byte, _ string) (string, error) { return string(contents[0]), nil }
		v, err := Open("words", log.Logger(), parse, path)
		if err != nil {
			t.Fatal(err)
		}
		write(t, path, "another's")
		becomes := func(mode os.FileMode, want string) {
			t.Helper()
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			if got := v.Get(); got != want {
				t.Errorf("with mode %04o the value is %q; want %q", mode, got, want)
			}
		}
		becomes(0o666, "the owner's")
		log.Wants(t, "(mode 0666): chmod go-w "+path)
		if _, err := Open("words", log.Logger(), parse, path); err == nil ||
			!strings.Contains(err.Error(), "everybody can write") {
			t.Errorf("it is opened: %v", err)
		}
		becomes(0o600, "another's")
	})
}

// device is what a container runtime makes of /dev/null.
type device struct{ fs.FileInfo }

func (device) Mode() fs.FileMode { return fs.ModeDevice | fs.ModeCharDevice | 0o666 }
func (device) Sys() any          { return &syscall.Stat_t{Uid: 4711} }

func TestDevicesKeepNothing(t *testing.T) {
	if err := writers("/dev/null", device{}, false); err != nil {
		t.Error(err)
	}
}
