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
	if err := othersWrite(f); err != nil {
		f.Close()
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

// othersWrite returns an error when others than this process's user and root can write the file.
func othersWrite(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("it belongs to user %d, who can write it; want a file of user %d or of root",
			stat.Uid, os.Geteuid())
	}
	if info.Mode().Perm()&0o002 != 0 {
		return fmt.Errorf("everybody can write it (mode %04o); want at most 0660", info.Mode().Perm())
	}
	return nil
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
