package files

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ModeError is returned for a file or a directory that others than this process's user and root can read or write.
type ModeError struct {
	Path string
	Mode fs.FileMode // its permissions
	Who  string      // such as "everybody", or "its owner alice"
	Can  string      // "write" or "read"
	Do   string      // the command that takes it away, without the path, such as "chmod go-w"
}

func (e *ModeError) Error() string {
	return fmt.Sprintf("%s can %s %s (mode %04o): %s %[3]s", e.Who, e.Can, e.Path, octal(e.Mode), e.Do)
}

// ForOthers tells whether others than the owner may open a file by its mode. Where modes tell nothing it is false.
func ForOthers(info fs.FileInfo) bool { return modesTell && info.Mode().Perm()&0o077 != 0 }

// octal are permissions as chmod writes them.
func octal(mode fs.FileMode) uint32 {
	bits := uint32(mode.Perm())
	if mode&fs.ModeSticky != 0 {
		bits |= 0o1000
	}
	if mode&fs.ModeSetgid != 0 {
		bits |= 0o2000
	}
	return bits
}

// inPod tells whether this process runs in a pod of Kubernetes, where it is alone and the kubelet sets the modes of
// volumes.
func inPod() bool { return os.Getenv("KUBERNETES_SERVICE_HOST") != "" }

// CheckWriters returns a *ModeError when others than this process's user and root can change a file or a directory, or
// put something else in its place, as ssh checks its keys (StrictModes): everything on the way to it, links and all
// directories above, must belong to one of these two, and neither everybody nor a group with other members may write
// it. A directory above it with the sticky bit, such as /tmp, is safe. A path that does not exist is checked as far as
// it does; what can't be examined is not an error, and neither is anything where modes tell nothing.
func CheckWriters(path string) error {
	if !modesTell || inPod() {
		return nil
	}
	return way(path, func(at string, info fs.FileInfo, last bool) error {
		if last {
			at = path // as the caller calls it
		}
		return writers(at, info, !last)
	})
}

// CheckTree is CheckWriters for a directory and all that is in it.
func CheckTree(dir string) error {
	if err := CheckWriters(dir); err != nil || !modesTell || inPod() {
		return err
	}
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil { // who needs it finds out what is wrong
			return nil //nolint:nilerr // such as lost+found
		}
		info, err := d.Info()
		if err != nil {
			return nil //nolint:nilerr // it is gone
		}
		return writers(path, info, false)
	})
}

// ReadOnce reads a file as os.ReadFile does, a pipe too. A *ModeError is returned when CheckWriters finds one.
func ReadOnce(path string) ([]byte, error) {
	if err := CheckWriters(path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// LoadPair is tls.LoadX509KeyPair for files that CheckWriters finds nothing about.
func LoadPair(cert, key string) (tls.Certificate, error) {
	if err := cmp.Or(CheckWriters(cert), CheckWriters(key)); err != nil {
		return tls.Certificate{}, err
	}
	return tls.LoadX509KeyPair(cert, key)
}

// maxLinks is how many links a path may lead through; Linux allows 40.
const maxLinks = 40

// way visits what the system passes on its way to a path, from the root on: directories, links, and last what the path
// names. It ends where there is nothing, or nothing can be examined.
func way(path string, visit func(at string, info fs.FileInfo, last bool) error) error {
	if !filepath.IsAbs(path) {
		dir, err := os.Getwd()
		if err != nil {
			return nil //nolint:nilerr // nobody can read the path then
		}
		path = dir + "/" + path // as it is: a/link/.. is not a
	}
	at, rest, links := "/", strings.Split(path, "/"), 0
	for {
		info, err := os.Lstat(at)
		if err != nil {
			return nil //nolint:nilerr // who reads it finds out what is wrong
		}
		for len(rest) > 0 && (rest[0] == "" || rest[0] == ".") {
			rest = rest[1:]
		}
		link := info.Mode()&fs.ModeSymlink != 0
		if err := visit(at, info, len(rest) == 0 && !link); err != nil {
			return err
		}
		if link {
			to, err := os.Readlink(at)
			if links++; err != nil || links > maxLinks {
				return nil //nolint:nilerr // as above
			}
			if at = filepath.Dir(at); filepath.IsAbs(to) {
				at = "/"
			}
			rest = append(strings.Split(to, "/"), rest...)
			continue
		}
		if len(rest) == 0 {
			return nil
		}
		if rest[0] == ".." {
			at = filepath.Dir(at)
		} else {
			at = filepath.Join(at, rest[0])
		}
		rest = rest[1:]
	}
}

// writers returns an error when others can write what info tells of: as its owner, always. Above is for a directory on
// the way, in which the sticky bit keeps others from what is not theirs.
func writers(path string, info fs.FileInfo, above bool) error {
	mode := info.Mode()
	if mode&fs.ModeDevice != 0 {
		return nil // such as /dev/null, which container runtimes give to the user of a container: it keeps nothing
	}
	e := &ModeError{Path: path, Mode: mode, Can: "write"}
	if name := stranger(info); name != "" {
		e.Who, e.Do = "its owner "+name, "chown "+self()
		return e
	}
	if !mode.IsRegular() && !mode.IsDir() || above && mode&fs.ModeSticky != 0 {
		return nil // links have no mode; anything else is refused when it is read
	}
	if mode.Perm()&0o002 != 0 {
		e.Who, e.Do = "everybody", "chmod go-w"
		return e
	}
	if mode.Perm()&0o020 != 0 {
		if group := shared(info); group != "" {
			e.Who, e.Do = group, "chmod g-w"
			return e
		}
	}
	return nil
}

// above are the directories in which a path lies, where links that lead to it lie too.
func above(path string) (all []string) {
	_ = way(path, func(at string, info fs.FileInfo, last bool) error {
		if info.IsDir() && !last {
			all = append(all, at)
		}
		return nil
	})
	return all
}

// everybody tells whether everybody may do that with a file.
func everybody(path string, may fs.FileMode) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().Perm()&may != 0
}

// CheckReaders returns a *ModeError when everybody can read a file, or list a directory. A group that can was set on
// purpose. Where modes tell nothing it returns nil.
func CheckReaders(path string) error {
	if !modesTell || inPod() || !everybody(path, 0o004) {
		return nil
	}
	for _, dir := range above(path) {
		if !everybody(dir, 0o001) { // nobody else comes that far
			return nil
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	do := "chmod o-r"
	if info.IsDir() {
		do = "chmod o-rx"
	}
	return &ModeError{Path: path, Mode: info.Mode(), Who: "everybody", Can: "read", Do: do}
}
