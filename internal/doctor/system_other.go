//go:build !unix

package doctor

import "io/fs"

// freeIn is for Unix; negative: not known.
func freeIn(string) int64 { return -1 }

// ownerOf is for Unix.
func ownerOf(fs.FileInfo) string { return "somebody" }
