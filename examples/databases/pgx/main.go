// Command pgx shows IDs of firn as primary keys in PostgreSQL, with database/sql and pgx.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"log"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/examples/databases"
)

// Order is a row, and an object in JSON, where its ID is a string: a browser's numbers would lose digits.
type Order struct {
	ID   firn.ID `json:"id"`
	Item string  `json:"item"`
}

const schema = `CREATE TABLE orders (id bigint PRIMARY KEY, item text NOT NULL)`

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	ids, err := databases.Open(ctx)
	if err != nil {
		return err
	}
	defer ids.Close()
	db, err := sql.Open("pgx", "") // where PGHOST, PGUSER and PGDATABASE say
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return err
	}

	insert := func(items ...string) error {
		for _, item := range items {
			id, err := ids.Next(ctx)
			if err != nil {
				return err
			}
			if _, err := db.ExecContext(ctx, `INSERT INTO orders (id, item) VALUES ($1, $2)`, id, item); err != nil {
				return err
			}
		}
		return nil
	}
	if err := insert("tea", "milk", "sugar"); err != nil {
		return err
	}
	time.Sleep(50 * time.Millisecond)
	since := time.Now()
	time.Sleep(50 * time.Millisecond)
	if err := insert("bread", "butter", "jam"); err != nil {
		return err
	}

	// The orders of a time are a range of the primary key.
	first, err := firn.Default.First(since)
	if err != nil {
		return err
	}
	last, err := firn.Default.Last(time.Now())
	if err != nil {
		return err
	}
	recent, err := query(ctx, db, `SELECT id, item FROM orders WHERE id BETWEEN $1 AND $2 ORDER BY id`, first, last)
	if err != nil {
		return err
	}
	show("since", recent)

	// The next page begins after the last order of this one.
	for after := firn.ID(0); ; {
		page, err := query(ctx, db, `SELECT id, item FROM orders WHERE id > $1 ORDER BY id LIMIT 2`, after)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		show("page", page)
		after = page[len(page)-1].ID
	}

	// Out to a browser, and back.
	out, err := json.Marshal(recent[0])
	if err != nil {
		return err
	}
	fmt.Println("json:", string(out))
	var back Order
	if err := json.Unmarshal(out, &back); err != nil {
		return err
	}
	found, err := query(ctx, db, `SELECT id, item FROM orders WHERE id = $1`, back.ID)
	show("back", found)
	return err
}

func query(ctx context.Context, db *sql.DB, text string, args ...any) (orders []Order, err error) {
	rows, err := db.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var o Order
		if err := rows.Scan(&o.ID, &o.Item); err != nil {
			return nil, err
		}
		orders = append(orders, o)
	}
	return orders, rows.Err()
}

func show(what string, orders []Order) {
	fmt.Print(what, ":")
	for _, o := range orders {
		fmt.Print(" ", o.Item)
	}
	fmt.Println()
}
