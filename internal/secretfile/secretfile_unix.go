//go:build unix

package secretfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// openFile opens a file to read. A link is not followed, and a pipe not waited for.
func openFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
}

// checkOwn returns an error unless a file is its owner's alone, who is the user of this process, or anybody where that is root.
func checkOwn(info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch me := os.Geteuid(); {
	case !info.Mode().IsRegular():
		return errors.New("it is not a regular file")
	case !ok || me != 0 && int(stat.Uid) != me:
		return errors.New("it belongs to another user")
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("others can get at it (mode %04o)", info.Mode().Perm())
	}
	return nil
}

// checkOwnDir returns an error unless a directory is the user's of this process, and nobody else's.
func checkOwnDir(info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return errors.New("it is not a directory")
	case !ok || int(stat.Uid) != os.Geteuid():
		return errors.New("it belongs to another user")
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("others can get at it (mode %04o)", info.Mode().Perm())
	}
	return nil
}
