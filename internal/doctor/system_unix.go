//go:build unix

package doctor

import (
	"io/fs"
	"os/user"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// freeIn returns how many bytes are free on a directory's file system; negative: unknown.
func freeIn(dir string) int64 {
	var disk unix.Statfs_t
	if err := unix.Statfs(dir, &disk); err != nil {
		return -1
	}
	return int64(disk.Bavail) * int64(disk.Bsize) //nolint:unconvert // other systems have other types
}

// modeOf returns the mode of a file, which tells who can get at it.
func modeOf(info fs.FileInfo) fs.FileMode { return info.Mode() }

// ownerOf returns the user name of a file's owner.
func ownerOf(info fs.FileInfo) string {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "somebody"
	}
	id := strconv.FormatUint(uint64(s.Uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return "user " + id
}
