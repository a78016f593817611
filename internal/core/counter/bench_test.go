package counter

import (
	"context"
	"testing"
	"time"

	"github.com/firn-id/firn"
)

// BenchmarkNext is a number from a block, beside an ID from a generator.
func BenchmarkNext(b *testing.B) {
	b.Run("counter", func(b *testing.B) {
		blocks := newBlocks(nil, nil)
		blocks.Add(Block{1, 1 << 62})
		for b.Loop() {
			if _, err := blocks.Next(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("snowflake", func(b *testing.B) {
		l, err := firn.ParseLayout("41/1/21") // whose sequence does not end
		if err != nil {
			b.Fatal(err)
		}
		g, err := firn.NewGenerator(l, 1, firn.WithClock(firn.NewCoarseClock(wall{})))
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if _, err := g.Next(context.Background()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

type wall struct{}

func (wall) Now() int64 { return time.Now().UnixNano() }
