package pgstore

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/internal/answers"
)

// statement is a statement of SQL, and what its answer looks like.
type statement struct {
	sql     string
	columns string // a letter for each column, see fits; empty: nobody looks at the rows
	least   int    // rows
	most    int    // rows; negative: as many as fit into answers.Max
}

// do is a statement whose rows nobody looks at, one has one row, maybe at most one, and several any number.
func do(sql string) statement               { return statement{sql: sql} }
func one(sql, columns string) statement     { return statement{sql, columns, 1, 1} }
func maybe(sql, columns string) statement   { return statement{sql, columns, 0, 1} }
func several(sql, columns string) statement { return statement{sql, columns, 0, -1} }

// fits tells whether a value is one of a kind of column. A capital letter is the same kind, or null.
func fits(kind byte, value []byte) bool {
	if value == nil {
		return 'A' <= kind && kind <= 'Z'
	}
	switch kind | 0x20 {
	case 'i': // an integer
		_, err := strconv.ParseInt(string(value), 10, 64)
		return err == nil
	case 'p': // a positive one
		n, err := strconv.ParseInt(string(value), 10, 64)
		return err == nil && n > 0
	case 'b': // a boolean
		return string(value) == "t" || string(value) == "f"
	case 't': // text
		return true
	case 'x': // a bytea: bytea_output is hex
		digits, found := bytes.CutPrefix(value, []byte(`\x`))
		_, err := hex.Decode(make([]byte, len(digits)/2), digits)
		return found && err == nil
	case 'u': // a UUID, which may become part of a statement
		return len(value) == 36 && len(bytes.Trim(value, "0123456789abcdef-")) == 0
	case 'e': // the ID of an entry, too
		return store.ValidateEntry(string(value), nil) == nil
	}
	return false
}

// rows are the rows of one statement, as text. They have the columns that the statement says.
type rows [][][]byte

// int is a number in a row; SQL's null is zero.
func (r rows) int(row, column int) int64 {
	n, _ := strconv.ParseInt(string(r[row][column]), 10, 64) // it fits
	return n
}

func (r rows) text(row, column int) string { return string(r[row][column]) }

// bytes is a bytea in a row.
func (r rows) bytes(row, column int) []byte {
	b, _ := hex.DecodeString(strings.TrimPrefix(r.text(row, column), `\x`)) // it fits
	return b
}

func (r rows) is(row, column int) bool { return r.text(row, column) == "t" }

// around is about how much memory a row takes besides its values, and each value besides its bytes.
const around = 32

var errTooMuch = fmt.Errorf("the server answers more than %d bytes", answers.Max)

// read reads the rows of a statement, as long as they have the shape and are in the budget, which it makes smaller.
func (s statement) read(answer *pgconn.ResultReader, budget *int) (rows, error) {
	var all rows
	for answer.NextRow() {
		values := answer.Values()
		*budget -= around * (len(values) + 1)
		for _, v := range values {
			*budget -= len(v)
		}
		if *budget < 0 {
			return nil, errTooMuch
		}
		if s.columns == "" {
			continue
		}
		if len(values) != len(s.columns) {
			return nil, fmt.Errorf("the server answers a row of %d columns to %s; want %d", len(values), s.short(),
				len(s.columns))
		}
		row := make([][]byte, len(values))
		for i, v := range values {
			if !fits(s.columns[i], v) {
				return nil, fmt.Errorf("the server answers %.80q in column %d to %s; want one of kind %c", v, i+1,
					s.short(), s.columns[i])
			}
			row[i] = bytes.Clone(v)
		}
		if all = append(all, row); s.most >= 0 && len(all) > s.most {
			return nil, fmt.Errorf("the server answers more than %d rows to %s", s.most, s.short())
		}
	}
	if _, err := answer.Close(); err != nil {
		return nil, err
	}
	if len(all) < s.least {
		return nil, fmt.Errorf("the server answers %d rows to %s; want %d", len(all), s.short(), s.least)
	}
	return all, nil
}

// short is the beginning of the statement.
func (s statement) short() string { return fmt.Sprintf("%.60q", s.sql) }

// exec sends statements as one message, and returns the rows of each. It closes a connection over which comes anything
// else.
func exec(ctx context.Context, conn *pgconn.PgConn, statements ...statement) (all []rows, err error) {
	defer func() {
		if err != nil && rolledBack(err) == nil {
			closeNow(conn)
		}
	}()
	text := make([]string, len(statements))
	for i, s := range statements {
		text[i] = s.sql
	}
	allow(conn, 2*answers.Max) // with all that is around the values
	budget := answers.Max
	results := conn.Exec(ctx, strings.Join(text, ";\n"))
	for results.NextResult() {
		if len(all) == len(statements) {
			return nil, fmt.Errorf("the server answers more than %d statements", len(statements))
		}
		r, err := statements[len(all)].read(results.ResultReader(), &budget)
		if err != nil {
			if rolledBack(err) == nil {
				closeNow(conn) // the rest is not read
			}
			_ = results.Close()
			return nil, err
		}
		all = append(all, r)
	}
	if err := results.Close(); err != nil {
		return nil, err
	}
	if len(all) != len(statements) {
		return nil, fmt.Errorf("the server answers %d statements; want %d", len(all), len(statements))
	}
	return all, nil
}

// run sends statements of which nobody needs the answers.
func run(ctx context.Context, conn *pgconn.PgConn, sql string) error {
	allow(conn, greeting)
	return conn.Exec(ctx, sql).Close()
}

// greeting is how many bytes a server may send before a client uses it, and a message before that. Notifications may
// have as many until somebody uses the connection.
const greeting = 256 << 10

// connect makes a connection, which ends with life.
func connect(ctx, life context.Context, config *pgconn.Config) (*pgconn.PgConn, error) {
	left := new(atomic.Int64)
	until(life, config, left)
	config.MaxProtocolMessageBodyLen = greeting
	conn, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	conn.Frontend().SetMaxBodyLen(answers.Max)
	conn.CustomData()[leftOf] = left
	return conn, nil
}

const leftOf = "bytes left"

// allow has a server send up to so many bytes from now on.
func allow(conn *pgconn.PgConn, n int64) { conn.CustomData()[leftOf].(*atomic.Int64).Store(n) }

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
