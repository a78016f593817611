//go:build !windows && (!unix || aix || solaris)

package filelock

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

func open(path string) (*os.File, error) {
	return nil, fmt.Errorf("locking %s: %w on %s", path, errors.ErrUnsupported, runtime.GOOS)
}
