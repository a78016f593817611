// Command ent shows IDs of firn as primary keys in PostgreSQL, with ent.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"time"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/examples/databases"
	"github.com/firn-id/firn/examples/databases/ent/ent"
	"github.com/firn-id/firn/examples/databases/ent/ent/order"
)

//go:generate go tool ent generate ./ent/schema

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
	pool, err := entsql.Open("pgx", "") // where PGHOST, PGUSER and PGDATABASE say
	if err != nil {
		return err
	}
	db := ent.NewClient(ent.Driver(entsql.OpenDB(dialect.Postgres, pool.DB())))
	defer db.Close()
	if err := db.Schema.Create(ctx); err != nil {
		return err
	}

	insert := func(items ...string) error {
		for _, item := range items {
			id, err := ids.Next(ctx)
			if err != nil {
				return err
			}
			if err := db.Order.Create().SetID(id).SetItem(item).Exec(ctx); err != nil {
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
	recent, err := db.Order.Query().Where(order.IDGTE(first), order.IDLTE(last)).Order(order.ByID()).All(ctx)
	if err != nil {
		return err
	}
	show("since", recent)

	// The next page begins after the last order of this one.
	for after := firn.ID(0); ; {
		page, err := db.Order.Query().Where(order.IDGT(after)).Order(order.ByID()).Limit(2).All(ctx)
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
	var back ent.Order
	if err := json.Unmarshal(out, &back); err != nil {
		return err
	}
	found, err := db.Order.Get(ctx, back.ID)
	if err != nil {
		return err
	}
	show("back", []*ent.Order{found})
	return nil
}

func show(what string, orders []*ent.Order) {
	fmt.Print(what, ":")
	for _, o := range orders {
		fmt.Print(" ", o.Item)
	}
	fmt.Println()
}
