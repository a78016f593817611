package zkstore

import (
	"errors"
	"fmt"
	"slices"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/zkstore/internal/wire"
)

var errClosed = fmt.Errorf("%w: the store is closed", store.ErrRefused)

// lasting are the errors of servers that another try does not change.
var lasting = []error{wire.ErrNoAuth, wire.ErrAuthFailed, wire.ErrInvalidACL, wire.ErrQuota}

func isLasting(err error) bool {
	return slices.ContainsFunc(lasting, func(known error) bool { return errors.Is(err, known) })
}

// callError says what an error means to a call after which nothing was applied.
func callError(call string, err error) error {
	switch {
	case errors.Is(err, store.ErrRefused), errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrRolledBack):
		return fmt.Errorf("%s: %w", call, err)
	case isLasting(err):
		return wrap(call, store.ErrRefused, err)
	default:
		return wrap(call, store.ErrUnavailable, err)
	}
}

// wrap keeps both: errors.Is finds the port's error and the cause.
func wrap(call string, meaning, cause error) error {
	return fmt.Errorf("%s: %w: %w", call, meaning, cause)
}
