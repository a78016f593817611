package pgstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/firn-id/firn/store/internal/answers"
)

// A message is statements that are sent at once, with where the rows of each go.
//
// It is a batch of pgx in the simple protocol, which is one message of PostgreSQL's: the library writes the parameters
// into the text. In the extended protocol each statement is several messages, which the server obeys as they come. It
// would then have locked head, and wait for the rest from a client that has stopped; and it takes SET TRANSACTION for a
// transaction of its own. Only the name of the schema, which can be no parameter, is put in by hand: see schemaName.
type message struct {
	conn   *pgx.Conn
	batch  pgx.Batch
	budget int // how many more bytes of rows may come
}

// args are the parameters of a statement, by name.
type args = pgx.NamedArgs

// do adds a statement whose rows nobody looks at.
func (m *message) do(sql string, args args) {
	m.batch.Queue(sql, args).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			if err := m.spend(rows.RawValues()); err != nil {
				closeNow(m.conn)
				return err
			}
		}
		return rows.Err()
	})
}

// several adds a statement that returns any number of rows. Their columns have the names of T's fields.
func several[T any](m *message, all *[]T, sql string, args args) { query(m, all, 0, -1, sql, args) }

// maybe adds a statement that returns at most one row. Without it, found stays nil.
func maybe[T any](m *message, found **T, sql string, args args) {
	var all []T
	query(m, &all, 0, 1, sql, args, func() { *found = &all[0] })
}

// one adds a statement that returns one row.
func one[T any](m *message, found *T, sql string, args args) {
	var all []T
	query(m, &all, 1, 1, sql, args, func() { *found = all[0] })
}

// query adds a statement that returns least to most rows; negative: any number. If there are some, it calls then.
func query[T any](m *message, all *[]T, least, most int, sql string, args args, then ...func()) {
	m.batch.Queue(sql, args).Query(func(rows pgx.Rows) (err error) {
		first := true
		*all, err = pgx.AppendRows((*all)[:0], rows, func(row pgx.CollectableRow) (one T, err error) {
			if err := m.spend(row.RawValues()); err != nil {
				return one, err
			}
			if first {
				if err := hasColumns[T](row.FieldDescriptions()); err != nil {
					return one, err
				}
				first = false
			}
			return pgx.RowToStructByName[T](row)
		})
		switch n := len(*all); {
		case rolledBack(err) != nil:
			return err
		case err != nil:
			err = fmt.Errorf("the answer to %.60q: %w", sql, err)
		case n < least || most >= 0 && n > most:
			err = fmt.Errorf("the server answers %d rows to %.60q; want %d to %d", n, sql, least, most)
		case n > 0:
			for _, f := range then {
				f()
			}
		}
		if err != nil {
			closeNow(m.conn)
		}
		return err
	})
}

// hasColumns returns an error unless columns are the fields of T in some order, in small letters. Another spelling is
// another name: pgx would find the field, and keep each spelling for the life of the process.
func hasColumns[T any](columns []pgconn.FieldDescription) error {
	t, want := reflect.TypeFor[T](), map[string]bool{}
	for _, f := range reflect.VisibleFields(t) {
		want[strings.ToLower(f.Name)] = true
	}
	for _, c := range columns {
		if !want[c.Name] {
			return fmt.Errorf("it has the column %.60q, or has it twice; want those of %v", c.Name, t)
		}
		delete(want, c.Name)
	}
	return nil
}

// around is about how much memory a row takes besides its values, and each value besides its bytes.
const around = 32

var errTooMuch = fmt.Errorf("the server answers more than %d bytes", answers.Max)

// spend takes the values of a row from the budget.
func (m *message) spend(values [][]byte) error {
	m.budget -= around * (len(values) + 1)
	for _, v := range values {
		m.budget -= len(v)
	}
	if m.budget < 0 {
		return errTooMuch
	}
	return nil
}

// exec sends a message, and reads the answer. It closes a connection over which comes anything else.
func exec(ctx context.Context, conn *pgx.Conn, fill func(*message)) error {
	m := &message{conn: conn, budget: answers.Max}
	fill(m)
	allow(conn, 2*answers.Max) // with all that is around the values
	err := conn.SendBatch(ctx, &m.batch).Close()
	if err != nil && rolledBack(err) == nil {
		closeNow(conn)
	}
	return err
}

// run sends statements of which nobody needs the answers.
func run(ctx context.Context, conn *pgx.Conn, sql string) error {
	allow(conn, greeting)
	return conn.PgConn().Exec(ctx, sql).Close()
}

// greeting is how many bytes a server may send before a client uses it, and a message before that. Notifications may
// have as many until somebody uses the connection.
const greeting = 256 << 10

// connect makes a connection, which ends with life.
func connect(ctx, life context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
	left := new(atomic.Int64)
	until(life, &config.Config, left)
	config.MaxProtocolMessageBodyLen = greeting
	// what pgx writes is read so
	config.RuntimeParams["client_encoding"], config.RuntimeParams["standard_conforming_strings"] = "UTF8", "on"
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	conn.PgConn().Frontend().SetMaxBodyLen(answers.Max)
	conn.PgConn().CustomData()[leftOf] = left
	return conn, nil
}

const leftOf = "bytes left"

// allow has a server send up to so many bytes from now on.
func allow(conn *pgx.Conn, n int64) { conn.PgConn().CustomData()[leftOf].(*atomic.Int64).Store(n) }

// metered is a connection over which only so much comes. Without that, a server could fill the memory with messages
// that the library keeps, such as parameters.
type metered struct {
	net.Conn
	left *atomic.Int64
}

func (m *metered) Read(b []byte) (int, error) {
	if m.left.Load() <= 0 {
		return 0, errors.New("the server sends more than it was asked for")
	}
	n, err := m.Conn.Read(b)
	m.left.Add(-int64(n))
	return n, err
}
