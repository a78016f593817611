// Stepped takes IDs of several libraries while the wall clock steps back, and prints how many come twice. It is built
// with the overlay of overlay.SteppableClock, and steps the clock itself, by the file that FAKE_WALL_FILE names.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/bwmarrin/snowflake"
	"github.com/firn-id/firn"
	"github.com/sony/sonyflake/v2"
	"github.com/yitter/idgenerator-go/idgen"
)

const (
	load = 500 * time.Millisecond // before the step, and after it
	back = load                   // so that the clock shows again what it showed under load
)

var began = time.Now() // while the clock is right

func main() {
	ours := must(firn.NewGenerator(firn.Default, 1))
	defer ours.Stop()
	node := must(snowflake.NewNode(1))
	sony := must(sonyflake.New(sonyflake.Settings{StartTime: firn.Default.Epoch, MachineID: func() (int, error) {
		return 1, nil
	}}))
	for _, library := range []struct {
		name string
		next func() int64
	}{
		{"firn", func() int64 { return int64(must(ours.Next(context.Background()))) }},
		{"bwmarrin/snowflake", func() int64 { return int64(node.Generate()) }},
		{"sony/sonyflake", func() int64 { return must(sony.NextID()) }},
		{"yitter/idgenerator method 1", yitter(1)},
		{"yitter/idgenerator method 2", yitter(2)},
	} {
		step(0)
		seen := map[int64]bool{}
		take(library.next, seen)
		step(-back)
		again, made := take(library.next, seen)
		fmt.Printf("%-28s %7d of %7d IDs come twice\n", library.name, again, made)
	}
}

// take takes IDs for a while. A library may wait for its clock meanwhile, and is then left alone.
func take(next func() int64, seen map[int64]bool) (again, made int) {
	ids := make(chan int64)
	end := time.After(load)
	go func() {
		for {
			ids <- next()
		}
	}()
	for {
		select {
		case id := <-ids:
			made++
			if seen[id] {
				again++
			}
			seen[id] = true
		case <-end:
			return again, made
		}
	}
}

// step sets how far the wall clock is off, and returns when it is.
func step(off time.Duration) {
	if err := os.WriteFile(os.Getenv("FAKE_WALL_FILE"), []byte(off.String()), 0o600); err != nil {
		panic(err)
	}
	for {
		right := began.Add(time.Since(began)).Round(0) // by the monotonic clock, which does not step
		if is := time.Now().Round(0).Sub(right); (is - off).Abs() < back/2 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func yitter(method uint16) func() int64 {
	o := idgen.NewIdGeneratorOptions(1)
	o.Method = method
	return idgen.NewDefaultIdGenerator(o).NewLong
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
