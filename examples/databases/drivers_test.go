package databases

import (
	"database/sql"
	"fmt"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/lib/pq"
	_ "modernc.org/sqlite"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/test/dbtest"
	"github.com/firn-id/firn/internal/test/testenv"
)

// What drivers make of the types of columns that hold integers or text is read as the ID that was written, by a query
// as text and by one that is prepared, which some drivers read in another way.
func TestScanWhatDriversReturn(t *testing.T) {
	testenv.Slow(t)
	postgres := dbtest.Postgres(t)
	for _, d := range []struct {
		name, source, parameter string
		types                   []string
	}{
		{
			"pgx", "host=" + postgres + " user=postgres dbname=postgres", "$1",
			[]string{"BIGINT", "NUMERIC(19)", "TEXT", "VARCHAR(19)"},
		},
		{
			"postgres", "host=" + postgres + " user=postgres dbname=postgres", "$1",
			[]string{"BIGINT", "NUMERIC(19)", "TEXT", "VARCHAR(19)"},
		},
		{"mysql", "root@unix(" + dbtest.MariaDB(t) + ")/test", "?", []string{
			"BIGINT", "BIGINT UNSIGNED", "DECIMAL(19)",
			"DECIMAL(20) UNSIGNED", "VARCHAR(19)", "VARBINARY(19)",
		}},
		{"sqlite", ":memory:", "?", []string{"INTEGER", "BIGINT", "UNSIGNED BIG INT", "TEXT"}},
	} {
		db, err := sql.Open(d.name, d.source)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		db.SetMaxOpenConns(1) // which has the memory of sqlite
		for i, column := range d.types {
			table := fmt.Sprintf("scan_%s_%d", d.name, i)
			if _, err := db.Exec("CREATE TABLE " + table + " (id " + column + ")"); err != nil {
				t.Fatal(d.name, column, err)
			}
			for _, id := range []firn.ID{1, 1<<53 + 1, firn.MaxID} {
				var prepared, read firn.ID
				_, err := db.Exec("INSERT INTO "+table+" VALUES ("+d.parameter+")", id.String())
				if err == nil {
					err = db.QueryRow("SELECT id FROM "+table+" WHERE id = "+d.parameter, id.String()).Scan(&prepared)
				}
				if err == nil {
					err = db.QueryRow("SELECT id FROM " + table).Scan(&read)
				}
				if err == nil {
					_, err = db.Exec("DELETE FROM " + table)
				}
				if prepared != id || read != id || err != nil {
					t.Errorf("%s, %s: %d is read as %d and %d, %v", d.name, column, id, prepared, read, err)
				}
			}
		}
	}
}
