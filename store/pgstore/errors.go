package pgstore

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/firn-id/firn/store"
)

var (
	errClosed = fmt.Errorf("%w: the store is closed", store.ErrRefused)

	// errLost means that a call was made when the store had lost data, and that it did nothing.
	errLost = errors.New("the store has lost data, or its tables were replaced")
)

// lasting are the classes and codes of SQLSTATE that another try meets again.
var lasting = []string{"0A", "22", "28", "3D", "42", "54"}

// writeError says what an error means to a transaction that was sent. The server reports an error of severity ERROR
// only once it has rolled the transaction back; any other end of the conversation says nothing.
func writeError(call string, err error) error {
	if failed := rolledBack(err); failed != nil {
		return callError(call, err)
	}
	return wrap(call, store.ErrAmbiguous, err)
}

// callError says what an error means to a call that changes nothing.
func callError(call string, err error) error {
	failed := rolledBack(err)
	switch {
	case errors.Is(err, store.ErrRefused), errors.Is(err, store.ErrUnavailable):
		return fmt.Errorf("%s: %w", call, err)
	case failed != nil && lastingCode(failed.Code):
		return wrap(call, store.ErrRefused, err)
	}
	return wrap(call, store.ErrUnavailable, err)
}

func lastingCode(code string) bool {
	return len(code) == 5 && slices.Contains(lasting, code[:2]) && code != undefinedTable
}

// The code of the server when the tables are not there: they were dropped, and the next connection may find them again.
const undefinedTable = "42P01"

// rolledBack returns the server's error if it has rolled the transaction back.
func rolledBack(err error) *pgconn.PgError {
	failed, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || failed.SeverityUnlocalized != "ERROR" || len(failed.Code) != 5 {
		return nil
	}
	return failed
}

// wrap keeps both: errors.Is finds the port's error and the cause.
func wrap(call string, meaning, cause error) error {
	return fmt.Errorf("%s: %w: %w", call, meaning, cause)
}

// oneLineError is an error of the library without its line breaks.
type oneLineError struct{ error }

func (e oneLineError) Error() string {
	return strings.NewReplacer(":\n\t", ": ", "\n\t", "; ", "\n", " ").Replace(e.error.Error())
}

func (e oneLineError) Unwrap() error { return e.error }
