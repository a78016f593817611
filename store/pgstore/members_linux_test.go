package pgstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/floor"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/test/dbtest"
	"github.com/firn-id/firn/internal/test/testenv"
	"github.com/firn-id/firn/store/pgstore"
)

var (
	members = flag.Int("members", 16, "how many members join in TestMembersJoin")
	rest    = flag.Duration("rest", 0, "for how long TestMembersJoin measures what they cost at rest")
)

// Members join from cold, each with a connection of its own. What it prints is what it is for:
//
//	go test -v -run MembersJoin ./store/pgstore -members 256 -rest 60s
func TestMembersJoin(t *testing.T) {
	testenv.Slow(t)
	server := dbtest.StartPostgres(t, "max_connections=1100")
	began := time.Now()
	var all sync.WaitGroup
	for i := range *members {
		s := open(t, pgstore.Config{URL: server.URL("postgres")})
		all.Go(func() {
			m, err := peer.Join(t.Context(), s, peer.Options{Owner: fmt.Sprint("peer ", i)})
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(m.Leave)
		})
	}
	all.Wait()
	t.Logf("%d members joined in %v", *members, time.Since(began).Round(time.Millisecond))
	if *rest == 0 {
		return
	}
	time.Sleep(10 * time.Second)
	count := func() (writes, all int) {
		writes, _ = strconv.Atoi(server.SQL(t, "SELECT revision FROM firn.latest"))
		all, _ = strconv.Atoi(server.SQL(t, "SELECT xact_commit FROM pg_stat_database WHERE datname = 'postgres'"))
		return writes, all
	}
	writes, transactions := count()
	time.Sleep(*rest)
	writes2, transactions2 := count()
	per := func(n int) float64 { return float64(n) / float64(*members) / rest.Seconds() }
	t.Logf("at rest, for each member and second: %.3f transactions that write, %.2f in all", per(writes2-writes),
		per(transactions2-transactions))
}

// Members make IDs while a replica is promoted that does not know of node IDs that were claimed and extended last. No
// ID comes twice, and in the end all make IDs again.
func TestNoIDComesTwiceFromAReplicaThatWasBehind(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	const window = 2 * time.Second
	primary := dbtest.StartPostgres(t)
	open(t, pgstore.Config{URL: primary.URL("postgres")})
	eventually(t, "the schema", func() error {
		if primary.SQL(t, "SELECT count(*) FROM pg_tables WHERE schemaname = 'firn'") != "6" {
			return errors.New("not yet")
		}
		return nil
	})
	replica := primary.Replica(t)
	url := fmt.Sprintf("postgres://postgres@%s,%s/postgres?sslmode=disable", primary.Address(), replica.Address())

	var given sync.Map // every ID
	ctx, cancel := context.WithCancel(t.Context())
	var working sync.WaitGroup
	defer working.Wait()
	defer cancel()
	var latest [4]atomic.Int64 // by member: the latest ID, in milliseconds of its time
	join := func(i int) {
		s := open(t, pgstore.Config{URL: url})
		m, err := peer.Join(ctx, s, peer.Options{Window: window, TTL: 2 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(m.Leave)
		d := cluster.Define(firn.Default)
		d.Nodes = 4 // so that a node ID that nobody seems to have is soon another's
		q, err := m.EnsureSequencer(ctx, "orders", d)
		if err != nil {
			t.Fatal(err)
		}
		working.Go(func() {
			for ctx.Err() == nil {
				id, err := q.Next(ctx)
				if err != nil {
					time.Sleep(time.Millisecond)
					continue
				}
				if before, twice := given.LoadOrStore(id, i); twice {
					t.Errorf("member %d has made %v, as member %v has before", i, id, before)
				}
				if at, err := q.Layout().Time(id); err == nil {
					latest[i].Store(at.UnixMilli())
				}
				time.Sleep(100 * time.Microsecond)
			}
		})
		makes(t, &latest[i], time.Now())
	}
	for i := range 2 {
		join(i)
	}
	replica.Part(t)
	for i := range 2 { // whom the replica never hears of
		join(2 + i)
	}
	before, _ := strconv.Atoi(primary.SQL(t, "SELECT revision FROM firn.latest"))
	eventually(t, "further extensions", func() error {
		if now, _ := strconv.Atoi(primary.SQL(t, "SELECT revision FROM firn.latest")); now < before+10 {
			return errors.New("not yet")
		}
		return nil
	})
	primary.Kill(t)
	replica.Promote(t)
	var f floor.Floor
	eventually(t, "the floor", func() error {
		f = floor.Floor{} // what is not there now was read before
		err := json.Unmarshal([]byte(replica.SQL(t,
			"SELECT convert_from(value, 'UTF8') FROM firn.keys WHERE key = 'floor'")), &f)
		if err == nil && (f.Open || f.From.IsZero()) {
			err = errors.New("nobody has said from when on IDs may be made")
		}
		return err
	})
	for i := range latest {
		makes(t, &latest[i], f.From)
	}
}

// makes waits until a member has made an ID from an instant on.
func makes(t *testing.T, latest *atomic.Int64, from time.Time) {
	t.Helper()
	eventually(t, "an ID", func() error {
		if at := time.UnixMilli(latest.Load()); at.Before(from) {
			return fmt.Errorf("the latest is of %v; want one from %v on", at, from)
		}
		return nil
	})
}
