//go:build unix

package quorum

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/store"
)

var writes = flag.Int64("writes", 0, "TestGrowth: how many writes to make, 1000000 takes minutes; 0 skips it")

// TestGrowth measures the data directory of a quorum of one while two keys
// are written over and over, as horizons are:
//
//	go test ./store/quorum -run TestGrowth -v -timeout 1h -writes 1000000
func TestGrowth(t *testing.T) {
	if *writes == 0 {
		t.Skip("only with -writes")
	}
	dir := filepath.Join(t.TempDir(), "data")
	config := Config{Dir: dir}
	server := openOne(t, config)
	start := time.Now()
	report := func(what string) {
		t.Logf("%5.0f s, %s: %s", time.Since(start).Seconds(), what, usage(t, dir))
	}
	report("started")
	written := int64(0)
	for n := int64(10_000); n <= *writes; n *= 10 {
		write(t, server, n-written)
		written = n
		report(fmt.Sprintf("%d writes", n))
	}
	// Old segments of the log go every half minute, old revisions every five.
	time.Sleep(330 * time.Second)
	report("after a compaction")
	write(t, server, *writes)
	report("as many writes again")
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	openOne(t, config)
	report("started again")
}

// write makes so many writes, many at a time.
func write(t *testing.T, s store.Store, n int64) {
	t.Helper()
	var left atomic.Int64
	left.Store(n)
	var writers sync.WaitGroup
	for range 64 {
		writers.Go(func() {
			for i := left.Add(-1); i >= 0 && !t.Failed(); i = left.Add(-1) {
				key := fmt.Sprintf("sequencers/default/workers/last_reported_time/%d", i%2)
				value := fmt.Appendf(nil, `{"horizon":%d,"op":"%016x"}`, time.Now().UnixMilli(), i)
				if _, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put(key, value)}}); err != nil {
					t.Errorf("write: %v", err)
				}
			}
		})
	}
	writers.Wait()
}

// usage is what the files take on the disk.
func usage(t *testing.T, dir string) string {
	t.Helper()
	sizes := make(map[string]int64)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // purged meanwhile
		}
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		var stat syscall.Stat_t
		if syscall.Stat(path, &stat) == nil {
			sizes[filepath.Base(filepath.Dir(path))+"/*"+filepath.Ext(path)] += stat.Blocks * 512
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var total int64
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(sizes)) {
		total += sizes[kind]
		parts = append(parts, fmt.Sprintf("%s %.1f", kind, float64(sizes[kind])/1e6))
	}
	return fmt.Sprintf("%.1f MB (%s)", float64(total)/1e6, strings.Join(parts, ", "))
}
