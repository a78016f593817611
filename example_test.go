package firn_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/firn-id/firn"
)

// Make IDs. In a single process choose any node ID; in a cluster package member leases one.
func Example() {
	g, err := firn.NewGenerator(firn.Default, 1)
	if err != nil {
		panic(err)
	}
	a, err := g.Next(context.Background())
	if err != nil {
		panic(err)
	}
	b, err := g.Next(context.Background())
	if err != nil {
		panic(err)
	}
	fmt.Println(a < b)
	// Output: true
}

// Make IDs in several goroutines at full speed: each has a way of its own.
func ExampleGenerator_Local() {
	g, err := firn.NewGenerator(firn.Default, 1)
	if err != nil {
		panic(err)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			l := g.Local()
			var last firn.ID
			for range 1000 {
				id, err := l.Next(context.Background())
				if err != nil {
					panic(err)
				}
				if id <= last {
					fmt.Println(id, "after", last)
				}
				last = id
			}
		})
	}
	all.Wait()
	// Output:
}

// Make IDs that stay unique when the process starts again, even if the clock was set back meanwhile.
func ExampleWithHorizonFile() {
	dir, err := os.MkdirTemp("", "firn")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "orders.firn") // in production: on a disk that lasts

	var last firn.ID
	for range 3 {
		g, err := firn.NewGenerator(firn.Default, 1, firn.WithHorizonFile(path))
		if err != nil {
			panic(err)
		}
		id, err := g.Next(context.Background())
		if err != nil {
			panic(err)
		}
		g.Stop() // so that the next start need not wait
		fmt.Println(id > last)
		last = id
	}
	// Output:
	// true
	// true
	// true
}

// Read an ID from text: as decimal, or in a shorter encoding.
func ExampleParse() {
	id, err := firn.Parse("1541815603606036480")
	if err != nil {
		panic(err)
	}
	short := firn.Base62.Encode(id)
	back, err := firn.Base62.Parse(short)
	fmt.Println(id, short, back == id, err)

	_, err = firn.Parse("12x")
	fmt.Println(err)
	// Output:
	// 1541815603606036480 1ptWyK4WgZU true <nil>
	// "12x" is not a decimal ID: it has 'x' at byte 2; want only 0123456789
}

// Ask when an ID was made. This one is a post of June 2022.
func ExampleLayout_Time() {
	at, err := firn.Twitter.Time(1541815603606036480)
	fmt.Println(at, err)

	_, err = firn.JavaScript.Time(1541815603606036480)
	fmt.Println(err)
	// Output:
	// 2022-06-28 16:07:40.105 +0000 UTC <nil>
	// 1541815603606036480 is not an ID of the layout 41/5/7: its 53 bits hold 0 to 9007199254740991
}

// Ask which node made an ID.
func ExampleLayout_NodeID() {
	node, err := firn.Twitter.NodeID(1541815603606036480)
	fmt.Println(node, err)
	// Output: 378 <nil>
}

// Split an ID into all its fields.
func ExampleLayout_Decompose() {
	parts, err := firn.Twitter.Decompose(1541815603606036480)
	fmt.Printf("%+v %v\n", parts, err)
	// Output: {Tick:367597485448 Datacenter:11 Node:26 Sequence:0} <nil>
}

// Scan all IDs of a day: they are one range, so an index on the ID serves for the time too.
func ExampleLayout_First() {
	day := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	from, err := firn.Default.First(day)
	if err != nil {
		panic(err)
	}
	to, err := firn.Default.First(day.AddDate(0, 0, 1))
	if err != nil {
		panic(err)
	}
	fmt.Printf("SELECT * FROM orders WHERE id >= %d AND id < %d\n", from, to)
	// Output:
	// SELECT * FROM orders WHERE id >= 117413668454400000 AND id < 117776056320000000
}

// Use an ID as a primary key: it is stored as BIGINT, and shown to JavaScript as a string.
func ExampleID_Value() {
	type order struct {
		ID firn.ID `json:"id"`
	}
	save := func(db *sql.DB, o order) error {
		_, err := db.Exec("INSERT INTO orders (id) VALUES ($1)", o.ID)
		return err
	}
	load := func(db *sql.DB, id firn.ID) (o order, err error) {
		err = db.QueryRow("SELECT id FROM orders WHERE id = $1", id).Scan(&o.ID)
		return o, err
	}
	_, _ = save, load

	o := order{ID: 117413668454400000}
	column, err := o.ID.Value()
	fmt.Printf("%T %v %v\n", column, column, err)
	text, err := json.Marshal(o)
	fmt.Printf("%s %v\n", text, err)
	// Output:
	// int64 117413668454400000 <nil>
	// {"id":"117413668454400000"} <nil>
}

// Use IDs as keys of a store that is split into ranges: the new ones all go to one range, and scattered they go to all.
func ExampleScatter() {
	const ranges = 16
	rangeOf := func(key firn.ID) int { return int(key >> 59) } // 16 equal parts of the 63 bits
	var plain, scattered [ranges]int
	for i := range int64(100_000) { // one each millisecond, of four nodes in turn
		id, err := firn.Default.Compose(firn.Parts{Tick: 28_000_000_000 + i, Node: i % 4})
		if err != nil {
			panic(err)
		}
		plain[rangeOf(id)]++
		scattered[rangeOf(firn.Scatter(id))]++
	}
	fmt.Println("plain:    ", plain)
	fmt.Println("scattered:", scattered)
	// Output:
	// plain:     [100000 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0]
	// scattered: [6135 6298 6288 6290 6265 6254 6230 6239 6398 6154 6176 6260 6233 6407 6181 6192]
}

// Write an ID for a column that takes nothing but UUIDs, and get it back.
func ExampleLayout_UUID() {
	u, err := firn.Default.UUID(117465411174400005)
	fmt.Println(u, err)
	id, err := firn.Default.FromUUID(u)
	fmt.Println(id, err)

	_, err = firn.Default.FromUUID(firn.UUID{6: 0x70, 7: 0xff, 8: 0x80})
	fmt.Println(err)
	// Output:
	// 01a1fc23-5529-7000-81a1-522b4a720005 <nil>
	// 117465411174400005 <nil>
	// "00000000-0000-70ff-8000-000000000000" is not a UUID ID: another program or layout made it: its time is not that of its ID 4611686018427387904 in the layout 41/10/12, tick 1ms, epoch 2026-01-01T00:00:00Z; want 029b76da-a800-7001-8000-000000000000
}

// Give an ID to a stranger, who learns neither its time nor its order, and read it when it comes back. Under each tweak
// it has another seal.
func ExampleSealer() {
	s, err := firn.NewSealer([]byte("16 random bytes!")) // take 32 from crypto/rand, and keep them
	if err != nil {
		panic(err)
	}
	orders := s.WithTweak([]byte("orders"))
	for _, id := range []firn.ID{117465411174400005, 117465411174400006} {
		sealed := orders.Seal(id)
		fmt.Println(firn.Base62.Encode(sealed), orders.Open(sealed) == id)
	}
	// Output:
	// 0H42X8VzWdf true
	// 8KT5R97g5sL true
}
