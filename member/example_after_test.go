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

// An ID space that others have begun is continued: every new ID exceeds the greatest there is.
func ExampleMember_Sequencer_after() {
	ctx := context.Background()
	m, err := member.Join(ctx, memstore.NewService().Client("example"), member.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Leave()

	d := sequencer.Define(firn.Twitter)
	d.After = 1541815603606036480
	orders, err := m.EnsureSequencer(ctx, "orders", d)
	if err != nil {
		log.Fatal(err)
	}
	id, err := orders.Next(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("greater:", id > d.After)

	d = sequencer.Define(firn.Default) // its epoch is 2026, so that its IDs are smaller for years
	d.After = 1541815603606036480
	_, err = m.EnsureSequencer(ctx, "invoices", d)
	fmt.Println(err)
	// Output:
	// greater: true
	// every ID must exceed 1541815603606036480, and those of this definition do from 2037-08-25T14:24:45Z on; want an earlier epoch, more bits below the time, or another name
}
