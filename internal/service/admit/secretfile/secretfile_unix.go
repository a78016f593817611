//go:build unix

package secretfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// errUnprotected is returned where files can't be kept from other users by their mode.
var errUnprotected error

// openFile opens a file to read. It does not follow a link, and does not wait for a pipe.
func openFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
}

// checkOwn returns an error unless the user of this process owns a file or directory, and other users have no
// access. Root may read the file of any user.
func checkOwn(info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch me := os.Geteuid(); {
	case !ok || int(stat.Uid) != me && (me != 0 || info.IsDir()):
		return errors.New("it belongs to another user")
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("others can get at it (mode %04o)", info.Mode().Perm())
	}
	return nil
}
