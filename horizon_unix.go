//go:build unix && !aix && !solaris

package firn

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// openAlone opens a file that only one at a time may have open so. The lock ends with the process.
func openAlone(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	for {
		switch err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); {
		case err == nil:
			return f, nil
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EWOULDBLOCK):
			err = errFileInUse
		default:
			err = fmt.Errorf("can't lock it: %w", err)
		}
		f.Close()
		return nil, err
	}
}

// fileNumber returns what tells the file from its copies: the number of its inode.
func fileNumber(f *os.File) (string, error) {
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", errors.ErrUnsupported
	}
	return fmt.Sprint(stat.Ino), nil
}

// syncFolder has the disk confirm the names in a folder.
func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
