//go:build !unix

package doctor

import "io/fs"

// freeIn works on Unix only; negative: unknown.
func freeIn(string) int64 { return -1 }

// modeOf returns 0: modes do not tell who can get at a file here.
func modeOf(fs.FileInfo) fs.FileMode { return 0 }

// ownerOf works on Unix only.
func ownerOf(fs.FileInfo) string { return "somebody" }
