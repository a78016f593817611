//go:build !unix

package doctor

import "io/fs"

// freeIn works on Unix only; negative: unknown.
func freeIn(string) int64 { return -1 }

// ownerOf works on Unix only.
func ownerOf(fs.FileInfo) string { return "somebody" }
