package peer

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/store/memstore"
)

// BenchmarkNext is about the way from a handle to its generator: the layout never runs out of sequence.
func BenchmarkNext(b *testing.B) { benchmarkNext(b, nil) }

// With a journal in a file each call writes a line.
func BenchmarkNextWithJournal(b *testing.B) {
	file, err := os.Create(filepath.Join(b.TempDir(), "journal"))
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	benchmarkNext(b, file)
}

func benchmarkNext(b *testing.B, journal io.Writer) {
	m, err := Join(b.Context(), memstore.NewService().Client("a"), Options{Journal: journal})
	if err != nil {
		b.Fatal(err)
	}
	defer m.Leave()
	wide := firn.Layout{Epoch: firn.Default.Epoch, Tick: firn.Default.Tick, TimeBits: 41, NodeBits: 1, SequenceBits: 21}
	s, err := m.EnsureSequencer(b.Context(), "orders", cluster.Define(wide))
	if err != nil {
		b.Fatal(err)
	}
	ctx := b.Context()
	b.Run("one", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Next(ctx); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("many", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := s.Next(ctx); err != nil {
					b.Fatal(err)
				}
			}
		})
	})
	b.Run("fill", func(b *testing.B) {
		ids := make([]firn.ID, 10)
		for b.Loop() {
			if err := s.Fill(ctx, ids); err != nil {
				b.Fatal(err)
			}
		}
	})
}
