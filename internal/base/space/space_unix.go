//go:build unix

package space

import "golang.org/x/sys/unix"

// Of returns the room on the file system of a file or directory. It works on Unix only; false: unknown.
func Of(path string) (Room, bool) {
	var s unix.Statfs_t
	if unix.Statfs(path, &s) != nil {
		return Room{}, false
	}
	// Systems have other types; some count below zero where only privileged users may write.
	free, used := uint64(max(0, int64(s.Bavail))), uint64(s.Blocks)-uint64(s.Bfree) //nolint:unconvert // see above
	return Room{
		Free: int64(free) * int64(s.Bsize), Share: share(free, free+used), //nolint:unconvert // see above
		Inodes: share(uint64(max(0, int64(s.Ffree))), uint64(s.Files)), //nolint:unconvert // see above
	}, true
}
