//go:build !windows && (!unix || aix || solaris)

package firn

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

func openAlone(string) (*os.File, error) { return nil, errNoLocks }

func fileNumber(*os.File) (string, error) { return "", errNoLocks }

func syncFolder(string) error { return nil }

var errNoLocks = fmt.Errorf("%w on %s, which has no locks of files that end with their process",
	errors.ErrUnsupported, runtime.GOOS)
