package keyring

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn/internal/base/files"
)

// ReadFile reads a file of keys. An error is returned when the file has none, or more than MaxKeys, when a key is
// wrong, and when others than the file's owner can change it, or everybody can read it; a group may read it, as of a
// file that Kubernetes or systemd mounts. Errors name the path.
func ReadFile(path string) (Keys, error) {
	text, err := files.Read(path)
	if err != nil {
		return nil, err
	}
	if err := files.CheckReaders(path); err != nil {
		return nil, err
	}
	keys, err := ParseFile(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return keys, nil
}

// UserFile returns the path of a file with a key that this user's processes on this machine share for a list of
// machines, in any order: another list is another quorum, whose key tells when it began. It makes the file if there is
// none; of several processes at once, all get the same one.
func UserFile(machines []string) (path string, err error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("no directory for a key of this user: %w; want a file with a key, which firn quorum "+
			"key makes", err)
	}
	dir = filepath.Join(dir, "firn")
	list := sha256.Sum256([]byte(strings.Join(slices.Sorted(slices.Values(machines)), "\n")))
	path = filepath.Join(dir, fmt.Sprintf("quorum-%x.key", list[:8]))
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return path, nil // whoever reads it finds out what else may be wrong
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	if err := files.CheckWriters(dir); err != nil {
		return "", err
	}
	temporary, err := writeTemporary(dir, []byte(NewKey(time.Now()).String()+"\n"))
	if err != nil {
		return "", err
	}
	defer func() { _ = os.Remove(temporary) }()
	// Unlike a rename, a link does not replace the file of a process that was faster.
	if err := os.Link(temporary, path); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return path, nil
}

// writeTemporary writes a new file that only its owner can read, and returns its path.
func writeTemporary(dir string, text []byte) (path string, err error) {
	f, err := os.CreateTemp(dir, ".quorum-*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		_ = os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// writeFile writes a file that only its owner can read. It replaces the file at once, or not at all.
func writeFile(path string, text []byte) error {
	temporary, err := writeTemporary(filepath.Dir(path), text)
	if err != nil {
		return err
	}
	if err := os.Rename(temporary, path); err != nil {
		_ = os.Remove(temporary)
		return err
	}
	return nil
}
