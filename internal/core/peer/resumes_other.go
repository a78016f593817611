//go:build !linux

package peer

import (
	"context"
	"errors"
)

// Resumes returns a channel for Options.Resumed that tells whenever the virtual machine resumes from a snapshot. It
// returns an error: only Linux reports that.
func Resumes(context.Context) (<-chan struct{}, error) {
	return nil, errors.New("this system does not report that it resumes from a snapshot; Linux does")
}
