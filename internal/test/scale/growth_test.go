//go:build unix

package scale

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/test/testenv"
	"github.com/firn-id/firn/store"
)

var (
	horizons = flag.Int64("writes", 70_000, "how often TestGrowth writes a horizon")
	padding  = flag.Int("padding", 1000,
		"how many bytes TestGrowth adds to each horizon, so that few writes need as much room as many; 0 for a true "+
			"measurement")
	pace = flag.Int64("pace", 4000,
		"how many horizons TestGrowth writes per second at most, since all is tidied up every few seconds; 0: as many "+
			"as it can")
	changes = flag.Int64("changes", 100, "how often members join and leave in TestGrowth")
)

// largest is how many bytes the log and the database of a machine may each have.
const largest = 64 << 20

// The log and the database of each machine of a quorum stay small, however often horizons are written and members join
// and leave, and also where a machine is down meanwhile:
//
//	go test -v -run Growth ./internal/test/scale -writes 1000000 -padding 0 -pace 0 -changes 10000 -timeout 2h
func TestGrowth(t *testing.T) {
	testenv.Slow(t)
	q := newQuorum(t, 3)
	stores := q.open()
	began := time.Now()
	g := &growth{t: t, machines: q}
	report := func(what string) { t.Logf("%5.0f s, %s: %s", time.Since(began).Seconds(), what, g.sizes()) }
	report("started")
	measured := g.measure()
	write(t, stores, *horizons/2)
	report(fmt.Sprintf("%d horizons written", *horizons/2))

	down := q.addresses[0]
	q.stop(down)
	write(t, stores[1:], *horizons-*horizons/2)
	report(fmt.Sprintf("%d horizons written, a machine down meanwhile", *horizons-*horizons/2))
	since := time.Now()
	q.start(down)
	stores[0] = q.openAt(q.live[down])
	q.caughtUp()
	report(fmt.Sprintf("it has caught up, in %v", round(time.Since(since))))

	for i, s := range stores { // who stays shortens the members' log
		m, err := peer.Join(t.Context(), s, peer.Options{Owner: fmt.Sprint("stays ", i)})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Leave()
	}
	for done := int64(0); done < *changes; {
		some := min(1000, *changes-done)
		change(t, stores, some)
		done += some
		report(fmt.Sprintf("%d members have joined and left", done))
	}
	measured()
	t.Logf("at most, at any time, log %.1f MB, database %.1f MB", mb(g.log), mb(g.database))
	if g.database > largest {
		t.Errorf("a database had %.1f MB; want at most %.1f", mb(g.database), mb(largest))
	}
	// etcd drops old files every half minute
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		g.log = 0
		all := g.sizes()
		if g.log <= largest {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("a log has %.1f MB; want at most %.1f: %s", mb(g.log), mb(largest), all)
		}
	}
}

// growth watches how large the data of the machines becomes.
type growth struct {
	t        *testing.T
	machines *machines

	mu            sync.Mutex // guards what follows
	log, database int64      // bytes, the most that any machine had at any time
}

// measure measures all the time, until the function that it returns is called.
func (g *growth) measure() (stop func()) {
	ctx, cancel := context.WithCancel(g.t.Context())
	var ended sync.WaitGroup
	ended.Go(func() {
		for tick := time.NewTicker(200 * time.Millisecond); ; {
			g.sizes()
			select {
			case <-tick.C:
			case <-ctx.Done():
				tick.Stop()
				return
			}
		}
	})
	return func() {
		cancel()
		ended.Wait()
	}
}

// sizes says how large log and database are now on each machine.
func (g *growth) sizes() (all string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, address := range g.machines.addresses {
		dir := filepath.Join(g.machines.data(address), "member")
		// Beside the database is its copy while that is rewritten, or received by a machine that catches up.
		log, database := sizeOf(filepath.Join(dir, "wal")), sizeOf(filepath.Join(dir, "snap", "db"))
		g.log, g.database = max(g.log, log), max(g.database, database)
		if i > 0 {
			all += "; "
		}
		all += fmt.Sprintf("log %.1f MB, database %.1f MB", mb(log), mb(database))
	}
	return all
}

func mb(bytes int64) float64 { return float64(bytes) / 1e6 }

// sizeOf is how many bytes a file has, or the files in a directory.
func sizeOf(path string) (bytes int64) {
	_ = filepath.WalkDir(path, func(_ string, entry fs.DirEntry, err error) error { // files come and go
		if err == nil && entry.Type().IsRegular() {
			if info, err := entry.Info(); err == nil {
				bytes += info.Size()
			}
		}
		return nil
	})
	return bytes
}

// write writes so many horizons, many at a time, of one node ID for each store.
func write(t *testing.T, stores []store.Store, count int64) {
	t.Helper()
	const writersEach = 20
	var left atomic.Int64
	left.Store(count)
	padding, began := make([]byte, *padding), time.Now()
	var writers sync.WaitGroup
	for i := range writersEach * len(stores) {
		s, key := stores[i%len(stores)], fmt.Sprint("sequencers/default/workers/last_reported_time/", i%len(stores))
		writers.Go(func() {
			for n := left.Add(-1); n >= 0 && !t.Failed(); n = left.Add(-1) {
				if *pace > 0 {
					time.Sleep(time.Until(began.Add(time.Duration(count-n) * time.Second / time.Duration(*pace))))
				}
				value := fmt.Appendf(nil, `{"horizon":%d,"op":"%016x"}%s`, time.Now().UnixMilli(), n, padding)
				_, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put(key, value)}})
				switch {
				case errors.Is(err, store.ErrAmbiguous) || errors.Is(err, store.ErrUnavailable):
					// the machine is busy with this
					left.Add(1)
				case err != nil:
					t.Errorf("write: %v", err)
				}
			}
		})
	}
	writers.Wait()
}

// change has so many members join and leave, some at a time.
func change(t *testing.T, stores []store.Store, count int64) {
	t.Helper()
	var left atomic.Int64
	left.Store(count)
	var all sync.WaitGroup
	for i := range 4 * len(stores) {
		s := stores[i%len(stores)]
		all.Go(func() {
			for n := left.Add(-1); n >= 0 && !t.Failed(); n = left.Add(-1) {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				m, err := peer.Join(ctx, s, peer.Options{Owner: fmt.Sprint("member ", n)})
				cancel()
				if err != nil {
					t.Error(err)
					return
				}
				m.Leave()
			}
		})
	}
	all.Wait()
}
