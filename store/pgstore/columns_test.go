package pgstore

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// Columns have exactly the names that are asked for, whatever pgx would take for the same.
func TestColumns(t *testing.T) {
	type row struct{ Revision, MaxConns int64 }
	for names, ok := range map[string]bool{
		"revision maxconns": true, "maxconns revision": true,
		"revision":          true, // pgx says that the other one is missing
		"Revision maxconns": false, "revision max_conns": false, "revision revision": false,
		"revision maxconns more": false, "rev_ision": false,
	} {
		var columns []pgconn.FieldDescription
		for name := range strings.FieldsSeq(names) {
			columns = append(columns, pgconn.FieldDescription{Name: name})
		}
		if err := hasColumns[row](columns); (err == nil) != ok {
			t.Errorf("%s: %v", names, err)
		}
	}
}
