//go:build !unix

package files

import "io/fs"

// modesTell: on Windows all files have the same mode, whoever can get at them.
const modesTell = false

// shared is empty where the members of a group are not known.
func shared(fs.FileInfo) string { return "" }

// stranger is empty where the owner is not known.
func stranger(fs.FileInfo) string { return "" }

// self is not known either.
func self() string { return "" }
