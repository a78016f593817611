//go:build unix

package limits

import "syscall"

// OpenFiles returns how many files this process may have open.
func OpenFiles() (uint64, error) {
	var limit syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	return uint64(limit.Cur), err //nolint:unconvert // other systems have other types
}
