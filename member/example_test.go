package member_test

import (
	"context"
	"fmt"
	"log"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/member"
	"github.com/firn-id/firn/sequencer"
	"github.com/firn-id/firn/store/memstore"
)

// An application that makes its IDs itself, as a member of the cluster. In production the store is one of
// package etcdstore.
func ExampleJoin() {
	ctx := context.Background()
	store := memstore.NewService().Client("example")
	m, err := member.Join(ctx, store, member.Options{Owner: "example"})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Leave()

	orders, err := m.EnsureSequencer(ctx, "orders", sequencer.Define(firn.Default))
	if err != nil {
		log.Fatal(err)
	}
	first, err := orders.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	second, err := orders.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(orders.State().Phase)
	fmt.Println("ascending:", first < second)
	// Output:
	// attached
	// ascending: true
}

// Invoices have numbers without gaps, as long as nothing crashes.
func ExampleMember_EnsureCounter() {
	ctx := context.Background()
	store := memstore.NewService().Client("example")
	m, err := member.Join(ctx, store, member.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Leave()

	invoices, err := m.EnsureCounter(ctx, "invoices", sequencer.Definition{Kind: sequencer.Counter, After: 1000})
	if err != nil {
		log.Fatal(err)
	}
	first, err := invoices.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	last, err := invoices.Take(ctx, 10)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(first, last)
	// Output:
	// 1001 1011
}
