package firn

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// openAlone opens a file that only one at a time may have open so: others may read it meanwhile, and not write. That
// ends with the process.
func openAlone(path string) (*os.File, error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	const sharingViolation = syscall.Errno(32)
	h, err := syscall.CreateFile(name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, syscall.FILE_SHARE_READ, nil,
		syscall.OPEN_EXISTING, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if errors.Is(err, sharingViolation) {
		return nil, errFileInUse
	}
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(h), path), nil
}

// fileNumber returns what tells the file from its copies.
func fileNumber(f *os.File) (string, error) {
	var info syscall.ByHandleFileInformation
	if err := syscall.GetFileInformationByHandle(syscall.Handle(f.Fd()), &info); err != nil {
		return "", err
	}
	return fmt.Sprint(uint64(info.FileIndexHigh)<<32 | uint64(info.FileIndexLow)), nil
}

// syncFolder does nothing: NTFS keeps a journal of names.
func syncFolder(string) error { return nil }
