// Package space says how much room file systems have.
package space

import (
	"errors"
	"syscall"
)

// Room is the room on a file system for a user without privileges.
type Room struct {
	Free   int64   `json:"free"`   // bytes
	Share  float64 `json:"share"`  // of its bytes: 0 to 1
	Inodes float64 `json:"inodes"` // the share of its inodes that is free: 0 to 1; 1 where it has no number of them
}

// Low reports whether somebody should make room soon: a fifth or less is left. Large disks may be fuller.
func (r Room) Low() bool { return r.Inodes < 0.2 || r.Share < 0.2 && r.Free < 4<<30 }

// VeryLow reports whether somebody has to make room now: a twentieth or less is left.
func (r Room) VeryLow() bool { return r.Inodes < 0.05 || r.Share < 0.05 && r.Free < 1<<30 }

// Full reports whether an error of a write says that there is no room, or that the user may have no more.
func Full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// share is a/b; of nothing, all is free.
func share(a, b uint64) float64 {
	if b == 0 {
		return 1
	}
	return float64(a) / float64(b)
}
