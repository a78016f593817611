package files

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ModeError is returned for a file or a directory that others than its owner can read or write.
type ModeError struct {
	Path string
	Mode fs.FileMode // its permissions
	Who  string      // such as "everybody"
	Can  string      // "write" or "read"
	Bits string      // what chmod takes away
}

func (e *ModeError) Error() string {
	return fmt.Sprintf("%s can %s %s (mode %04o): chmod %s %[3]s", e.Who, e.Can, e.Path, octal(e.Mode), e.Bits)
}

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

// inPod tells whether this process runs in a pod of Kubernetes, where it is alone and the kubelet sets the modes of volumes.
func inPod() bool { return os.Getenv("KUBERNETES_SERVICE_HOST") != "" }

// CheckWriters returns a *ModeError when others than the owner can change a file or a directory, or replace it, as ssh
// checks its keys: everybody, or a group with other members. A directory above it with the sticky bit, such as /tmp, is
// safe. A path that does not exist, or can't be examined, is not an error, and neither is any where modes tell nothing.
func CheckWriters(path string) error {
	if !modesTell || inPod() {
		return nil
	}
	if info, err := os.Stat(path); err == nil && (info.IsDir() || info.Mode().IsRegular()) { // anything else is refused when it is read
		if err := writers(path, info); err != nil {
			return err
		}
	}
	for _, dir := range above(path) {
		info, err := os.Stat(dir)
		if err != nil || !info.IsDir() || info.Mode()&fs.ModeSticky != 0 {
			continue
		}
		if err := writers(dir, info); err != nil {
			return err
		}
	}
	return nil
}

// above are the directories in which a path lies, where links that lead to it lie too.
func above(path string) (all []string) {
	seen := map[string]bool{}
	full, err := filepath.Abs(path)
	if err != nil {
		return nil
	}
	ends := []string{full}
	if real, err := filepath.EvalSymlinks(full); err == nil {
		ends = append(ends, real)
	}
	for _, end := range ends {
		for dir := filepath.Dir(end); !seen[dir]; dir = filepath.Dir(dir) {
			seen[dir] = true
			all = append(all, dir)
		}
	}
	return all
}

// writers returns an error when others can write.
func writers(path string, info fs.FileInfo) error {
	e := &ModeError{Path: path, Mode: info.Mode(), Can: "write"}
	if info.Mode().Perm()&0o002 != 0 {
		e.Who, e.Bits = "everybody", "go-w"
		return e
	}
	if info.Mode().Perm()&0o020 != 0 {
		if group := shared(info); group != "" {
			e.Who, e.Bits = group, "g-w"
			return e
		}
	}
	return nil
}

// everybody tells whether everybody may do that with a file.
func everybody(path string, may fs.FileMode) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().Perm()&may != 0
}

// CheckReaders returns a *ModeError when everybody can read a file, or list a directory. A group that can was set on purpose.
// Where modes tell nothing it returns nil.
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
	bits := "o-r"
	if info.IsDir() {
		bits = "o-rx"
	}
	return &ModeError{Path: path, Mode: info.Mode(), Who: "everybody", Can: "read", Bits: bits}
}
