package etcdstore_test

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/etcdstore"
)

var writes = flag.Int64("writes", 0, "TestGrowth: how many writes to make, 1000000 takes minutes; 0 skips it")

// TestGrowth measures the data directory of an embedded server while two keys
// are written over and over, as horizons are:
//
//	go test ./store/etcdstore -run TestGrowth -v -timeout 1h -writes 1000000
func TestGrowth(t *testing.T) {
	if *writes == 0 {
		t.Skip("only with -writes")
	}
	dir := filepath.Join(t.TempDir(), "data")
	server := embed(t, etcdstore.EmbedConfig{Dir: dir})
	start := time.Now()
	report := func(n int64) {
		t.Logf("%8d writes, %4.0f s: %s", n, time.Since(start).Seconds(), usage(t, dir))
	}
	report(0)
	var done atomic.Int64
	for step := int64(10_000); ; step *= 10 {
		upTo := min(step, *writes)
		var writers sync.WaitGroup
		for range 64 {
			writers.Go(func() {
				for n := done.Add(1); n <= upTo && !t.Failed(); n = done.Add(1) {
					key := fmt.Sprintf("sequencers/default/workers/last_reported_time/%d", n%2)
					value := fmt.Appendf(nil, `{"horizon":%d,"op":"%016x"}`, time.Now().UnixMilli(), n)
					if _, err := server.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put(key, value)}}); err != nil {
						t.Errorf("write %d: %v", n, err)
					}
				}
			})
		}
		writers.Wait()
		done.Store(upTo)
		report(upTo)
		if upTo == *writes {
			break
		}
	}
	// Old segments go every half minute, old revisions every five; see what is left then.
	settled := time.After(330 * time.Second)
	for range 12 {
		select {
		case <-time.After(30 * time.Second):
			report(*writes)
		case <-settled:
		}
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	start = time.Now()
	_ = embed(t, etcdstore.EmbedConfig{Dir: dir})
	t.Logf("started again in %v: %s", time.Since(start), usage(t, dir))
}

// usage is what the files take on the disk.
func usage(t *testing.T, dir string) string {
	t.Helper()
	var db, wal, snap, total int64
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := os.Stat(path)
		if err != nil {
			return nil // purged meanwhile
		}
		total += info.Size()
		switch filepath.Ext(path) {
		case ".wal", ".tmp":
			wal += info.Size()
		case ".snap":
			snap += info.Size()
		case "":
			if entry.Name() == "db" {
				db = info.Size()
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	mb := func(n int64) float64 { return float64(n) / 1e6 }
	return fmt.Sprintf("%.1f MB (db %.1f, wal %.1f, snap %.3f)", mb(total), mb(db), mb(wal), mb(snap))
}
