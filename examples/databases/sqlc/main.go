// Command sqlc shows IDs of firn as primary keys in PostgreSQL, with sqlc and pgx.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"log"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/examples/databases"
	"github.com/firn-id/firn/examples/databases/sqlc/orders"
)

//go:generate go run github.com/sqlc-dev/sqlc/cmd/sqlc@v1.31.1 generate

//go:embed schema.sql
var schema string

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
	connection, err := pgx.Connect(ctx, "") // where PGHOST, PGUSER and PGDATABASE say
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close(ctx) }()
	if _, err := connection.Exec(ctx, schema); err != nil {
		return err
	}
	db := orders.New(connection)

	insert := func(items ...string) error {
		for _, item := range items {
			id, err := ids.Next(ctx)
			if err != nil {
				return err
			}
			if err := db.Insert(ctx, orders.InsertParams{ID: id, Item: item}); err != nil {
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
	recent, err := db.Between(ctx, orders.BetweenParams{First: first, Last: last})
	if err != nil {
		return err
	}
	show("since", recent)

	// The next page begins after the last order of this one.
	for after := firn.ID(0); ; {
		page, err := db.Page(ctx, orders.PageParams{After: after, Rows: 2})
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		show("page", page)
		after = page[len(page)-1].ID
	}

	// Out to a browser, and back. The ID is a string in JSON: a browser's numbers would lose digits.
	out, err := json.Marshal(recent[0])
	if err != nil {
		return err
	}
	fmt.Println("json:", string(out))
	var back orders.Order
	if err := json.Unmarshal(out, &back); err != nil {
		return err
	}
	found, err := db.Get(ctx, back.ID)
	if err != nil {
		return err
	}
	show("back", []orders.Order{found})
	return nil
}

func show(what string, all []orders.Order) {
	fmt.Print(what, ":")
	for _, o := range all {
		fmt.Print(" ", o.Item)
	}
	fmt.Println()
}
