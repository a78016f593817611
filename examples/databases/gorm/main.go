// Command gorm shows IDs of firn as primary keys in PostgreSQL, with GORM.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"time"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/examples/databases"
)

// Order is a row, and an object in JSON, where its ID is a string: a browser's numbers would lose digits.
type Order struct {
	ID   firn.ID `gorm:"primaryKey;autoIncrement:false" json:"id"`
	Item string  `gorm:"not null" json:"item"`
}

var ids databases.IDs

// BeforeCreate gives each new order its ID.
func (o *Order) BeforeCreate(tx *gorm.DB) (err error) {
	o.ID, err = ids.Next(tx.Statement.Context)
	return err
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) (err error) {
	if ids, err = databases.Open(ctx); err != nil {
		return err
	}
	defer ids.Close()
	db, err := gorm.Open(postgres.Open("")) // where PGHOST, PGUSER and PGDATABASE say
	if err != nil {
		return err
	}
	db = db.WithContext(ctx)
	if err := db.AutoMigrate(&Order{}); err != nil {
		return err
	}

	if err := db.Create([]*Order{{Item: "tea"}, {Item: "milk"}, {Item: "sugar"}}).Error; err != nil {
		return err
	}
	time.Sleep(50 * time.Millisecond)
	since := time.Now()
	time.Sleep(50 * time.Millisecond)
	if err := db.Create([]*Order{{Item: "bread"}, {Item: "butter"}, {Item: "jam"}}).Error; err != nil {
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
	var recent []Order
	if err := db.Where("id BETWEEN ? AND ?", first, last).Order("id").Find(&recent).Error; err != nil {
		return err
	}
	show("since", recent)

	// The next page begins after the last order of this one.
	for after := firn.ID(0); ; {
		var page []Order
		if err := db.Where("id > ?", after).Order("id").Limit(2).Find(&page).Error; err != nil {
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
	var back, found Order
	if err := json.Unmarshal(out, &back); err != nil {
		return err
	}
	if err := db.First(&found, back.ID).Error; err != nil {
		return err
	}
	show("back", []Order{found})
	return nil
}

func show(what string, orders []Order) {
	fmt.Print(what, ":")
	for _, o := range orders {
		fmt.Print(" ", o.Item)
	}
	fmt.Println()
}
