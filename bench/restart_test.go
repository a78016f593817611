package main

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bwmarrin/snowflake"
	"github.com/firn-id/firn"
	"github.com/sony/sonyflake/v2"
	"github.com/yitter/idgenerator-go/idgen"
)

// What docs/comparison.md says of a restart while the clock is 100 ms behind: who remembers nothing makes the IDs of
// that time again. Firn repeats them, too, without a file that remembers.
func TestRestartWhileTheClockIsBehind(t *testing.T) {
	remembered := firn.WithHorizonFile(filepath.Join(t.TempDir(), "horizon"))
	for name, of := range map[string]struct {
		open    func(*testing.T) func() int64
		repeats bool
	}{
		"bwmarrin/snowflake": {func(*testing.T) func() int64 {
			node := must(snowflake.NewNode(1))
			return func() int64 { return int64(node.Generate()) }
		}, true},
		"sony/sonyflake": {func(*testing.T) func() int64 {
			s := must(sonyflake.New(sonyflake.Settings{StartTime: firn.Default.Epoch, MachineID: func() (int, error) {
				return 1, nil
			}}))
			return func() int64 { return must(s.NextID()) }
		}, true},
		"yitter/idgenerator M1": {func(*testing.T) func() int64 { return yitterOf(1) }, true},
		"yitter/idgenerator M2": {func(*testing.T) func() int64 { return yitterOf(2) }, true},
		"firn":                  {func(t *testing.T) func() int64 { return firnOf(t) }, true},
		"firn, with a file":     {func(t *testing.T) func() int64 { return firnOf(t, remembered) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := lives(t, of.open), lives(t, of.open)
			again := 0
			for id := range after {
				if before[id] {
					again++
				}
			}
			t.Logf("%d of %d IDs a second time", again, len(after))
			if len(before) != 1000 || len(after) != 1000 || again > 0 != of.repeats {
				t.Errorf("%d and %d IDs, %d of them twice; want 1000 each, and some twice: %v", len(before), len(after),
					again, of.repeats)
			}
		})
	}
}

// lives returns the 1000 IDs of a process that begins at a certain time, and makes one each 100 µs.
func lives(t *testing.T, open func(*testing.T) func() int64) (ids map[int64]bool) {
	t.Helper()
	ids = map[int64]bool{}
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(firn.Default.Epoch.AddDate(0, 10, 0))) // a bubble begins in 2000
		next := open(t)
		for range 1000 {
			time.Sleep(100 * time.Microsecond)
			ids[next()] = true
		}
	})
	return ids
}

func yitterOf(method uint16) func() int64 {
	o := idgen.NewIdGeneratorOptions(1)
	o.Method = method
	return idgen.NewDefaultIdGenerator(o).NewLong
}

func firnOf(t *testing.T, options ...firn.Option) func() int64 {
	g := must(firn.NewGenerator(firn.Default, 1, options...))
	t.Cleanup(func() { g.Stop() })
	return func() int64 { return int64(must(g.Next(context.Background()))) }
}
