package databases

import (
	"context"
	"database/sql"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/test/dbtest"
	"github.com/firn-id/firn/internal/test/testenv"
)

// follower reads a table page by page, and keeps its place: the columns before the item in the last row.
type follower struct {
	db    *sql.DB
	query string
	after []any
}

// read returns the items of the pages that are there now.
func (f *follower) read(t *testing.T) (items []string) {
	t.Helper()
	for {
		rows, err := f.db.Query(f.query, f.after...)
		if err != nil {
			t.Fatal(err)
		}
		more := false
		for ; rows.Next(); more = true {
			var item string
			var into []any
			for i := range f.after {
				into = append(into, &f.after[i])
			}
			if err := rows.Scan(append(into, &item)...); err != nil {
				t.Fatal(err)
			}
			items = append(items, item)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		if !more {
			return items
		}
	}
}

// What docs/databases.md says of pages: a program that follows a table by IDs misses rows, one that follows
// transactions reads each row once.
func TestPages(t *testing.T) {
	testenv.Slow(t)
	t.Cleanup(dbtest.RemoveTemplates)
	page, err := os.ReadFile("../../docs/databases.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Pages\n")
	section, _, _ = strings.Cut(section, "\n## ")
	blocks := regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(section, -1)
	if len(blocks) != 3 {
		t.Fatalf("the page has %d blocks of SQL on pages, want 3", len(blocks))
	}
	naive, prepare, recipe := blocks[0][1], blocks[1][1], blocks[2][1]

	// Autovacuum is a transaction, too, and would delay the recipe.
	db, err := sql.Open("pgx", dbtest.StartPostgres(t, "autovacuum=off").URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	exec := func(statement string) {
		t.Helper()
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	g, err := firn.NewGenerator(firn.Default, 1)
	if err != nil {
		t.Fatal(err)
	}
	next := func() firn.ID {
		id, err := g.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	insert := func(into interface {
		ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	}, id firn.ID, item string,
	) {
		t.Helper()
		if _, err := into.ExecContext(t.Context(), "INSERT INTO orders (id, item) VALUES ($1, $2)", id,
			item); err != nil {
			t.Fatal(err)
		}
	}

	for _, tt := range []struct {
		name string
		// write writes a row with a smaller ID in a transaction that is open while read is called, or begins later.
		write  func(t *testing.T, read func())
		misses string // of them, by IDs
		reads  string // by transactions
	}{
		{"a transaction is slow", func(t *testing.T, read func()) {
			slow := begin(t, db)
			insert(slow, next(), "slow")
			insert(db, next(), "fast")
			read()
			end(t, slow.Commit)
		}, "slow", "slow fast"},
		{"a savepoint", func(t *testing.T, read func()) {
			slow := begin(t, db)
			end(t, func() error { _, err := slow.Exec("SAVEPOINT here"); return err })
			insert(slow, next(), "slow")
			insert(db, next(), "fast")
			read()
			end(t, slow.Commit)
		}, "slow", "slow fast"},
		{"an ID waits for its transaction", func(_ *testing.T, read func()) {
			early := next()
			insert(db, next(), "fast")
			read()
			insert(db, early, "late")
		}, "late", "fast late"},
		{"a transaction ends without its row", func(t *testing.T, read func()) {
			slow := begin(t, db)
			insert(slow, next(), "never")
			insert(db, next(), "fast")
			read()
			end(t, slow.Rollback)
		}, "", "fast"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			exec("DROP TABLE IF EXISTS orders")
			exec("CREATE TABLE orders (id bigint PRIMARY KEY, item text NOT NULL)")
			insert(db, next(), "old")
			for _, statement := range strings.Split(strings.TrimSuffix(strings.TrimSpace(prepare), ";"), ";") {
				exec(statement)
			}
			many := begin(t, db) // more rows than a page has
			want := []string{"old"}
			for range 250 {
				insert(many, next(), "many")
				want = append(want, "many")
			}
			end(t, many.Commit)

			byID := &follower{db, naive, []any{int64(0)}}
			byTx := &follower{db, recipe, []any{"0", int64(0)}}
			var gotID, gotTx []string
			read := func() {
				gotID = append(gotID, byID.read(t)...)
				gotTx = append(gotTx, byTx.read(t)...)
			}
			tt.write(t, read)
			read()
			if want := append(want, strings.Fields(tt.reads)...); !slices.Equal(gotTx, want) {
				t.Errorf("by transactions it reads %q, want %q", gotTx, want)
			}
			missed := slices.DeleteFunc(strings.Fields(tt.reads), func(s string) bool {
				return slices.Contains(gotID, s)
			})
			if got := strings.Join(missed, " "); got != tt.misses {
				t.Errorf("by IDs it misses %q, want %q", got, tt.misses)
			}
		})
	}
}

func begin(t *testing.T, db *sql.DB) *sql.Tx {
	t.Helper()
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

func end(t *testing.T, how func() error) {
	t.Helper()
	if err := how(); err != nil {
		t.Fatal(err)
	}
}
