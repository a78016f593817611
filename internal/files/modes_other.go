//go:build !unix

package files

import "io/fs"

// shared is empty where the members of a group are not known.
func shared(fs.FileInfo) string { return "" }
