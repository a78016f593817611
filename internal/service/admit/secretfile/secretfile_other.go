//go:build !unix

package secretfile

import (
	"errors"
	"io/fs"
	"os"
)

// errUnprotected is returned here for every secret: by its mode a file can't be kept from other users, nor be found to
// be.
var errUnprotected = errors.New("on this system a file's mode does not keep other users out")

func openFile(path string) (*os.File, error) { return os.Open(path) }

func checkOwn(fs.FileInfo) error { return errUnprotected }
