package main

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// table is the application's own: a row for each order and invoice, whose key is its ID. The database would refuse an
// ID that comes twice. The table's zero value needs a URL. It is safe for concurrent use.
type table struct {
	url string

	mu   sync.Mutex // guards conn
	conn *pgconn.PgConn
}

// inserting is how long one row may take.
const inserting = 2 * time.Second

// Write inserts a line "name id". It connects again after an error.
func (t *table) Write(line []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), inserting)
	defer cancel()
	if t.conn == nil || t.conn.IsClosed() {
		conn, err := pgconn.Connect(ctx, t.url)
		if err != nil {
			return 0, err
		}
		t.conn = conn
		const create = `CREATE TABLE IF NOT EXISTS orders (what text, id bigint, PRIMARY KEY (what, id))`
		if _, err := conn.Exec(ctx, create).ReadAll(); err != nil {
			return 0, err
		}
	}
	what, id, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
	const insert = `INSERT INTO orders VALUES ($1, $2)`
	result := t.conn.ExecParams(ctx, insert, [][]byte{[]byte(what), []byte(id)}, nil, nil, nil).Read()
	return len(line), result.Err
}

func (t *table) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conn != nil {
		_ = t.conn.Close(context.Background())
	}
}
