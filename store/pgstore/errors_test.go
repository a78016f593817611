package pgstore

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/firn-id/firn/store"
)

// The library says in several lines why it can't connect; logs have one.
func TestErrorsHaveOneLine(t *testing.T) {
	cause := &pgconn.PgError{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: "57P03", Message: "starting up"}
	err := connectError(errors.Join(errors.New("failed to connect:\n\tone\n\ttwo"), cause))
	if text := err.Error(); strings.ContainsAny(text, "\n\t") ||
		!strings.Contains(text, "failed to connect: one; two") {
		t.Errorf("the text is %q; want one line", text)
	}
	if !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, cause) {
		t.Errorf("%v is not ErrUnavailable with its cause", err)
	}
}
