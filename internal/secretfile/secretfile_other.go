//go:build !unix

package secretfile

import (
	"errors"
	"io/fs"
	"os"
)

func openFile(path string) (*os.File, error) { return os.Open(path) }

// checkOwn can't see here who else may read a file.
func checkOwn(info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return errors.New("it is not a regular file")
	}
	return nil
}

func checkOwnDir(info fs.FileInfo) error {
	if !info.IsDir() {
		return errors.New("it is not a directory")
	}
	return nil
}
