//go:build unix

package doctor

import (
	"io/fs"
	"os/user"
	"strconv"
	"syscall"
)

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
