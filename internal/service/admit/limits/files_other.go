//go:build !unix

package limits

import "errors"

// OpenFiles returns how many files this process may have open: known on Unix only.
func OpenFiles() (uint64, error) { return 0, errors.ErrUnsupported }
