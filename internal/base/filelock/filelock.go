// Package filelock opens a file that only one process at a time may have open so.
package filelock

import (
	"errors"
	"os"
)

// ErrInUse is returned by Open when somebody has the file open so.
var ErrInUse = errors.New("another process uses it")

// Open opens a file for reading and writing, creates it if it does not exist, with the mode 0600, and locks it. Others
// can read it meanwhile. The lock ends when the file is closed, at the latest with the process. ErrInUse is returned
// when it is locked, and errors.ErrUnsupported on systems without such locks.
func Open(path string) (*os.File, error) { return open(path) }
