package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/ops/load"
	"github.com/firn-id/firn/internal/test/dbtest"
	"github.com/firn-id/firn/internal/test/etcdtest"
	"github.com/firn-id/firn/internal/test/proxytest"
	"github.com/firn-id/firn/store/etcdstore"
)

// away is how far away the servers of strict order are: a round trip.
const away = time.Millisecond

// runStrict measures strict order beside what else gives ascending numbers to callers of several machines.
func runStrict(ctx context.Context, s settings, c *contest) ([]table, error) {
	t := table{
		Title: "strict: one number per call, in strict order, from servers " + away.String() + " away",
		Note: "firn is one node, asked over one gRPC connection on loopback; its store is that etcd. A proxy holds " +
			"what goes\nto etcd and PostgreSQL, and what comes back, for half of that time each. Medians over the " +
			"rounds.",
		columns: []column{
			{"per_s", "numbers/s", "%.0f"},
			{"p50_us", "p50 µs", "%.0f"},
			{"p99_us", "p99 µs", "%.0f"},
			{"p999_us", "p99.9 µs", "%.0f"},
		},
	}
	skipped, err := guarded(ctx, func(on *starter) error { return compareStrict(ctx, s, on, c, &t) })
	if skipped != "" {
		t.Note = "Skipped: " + skipped
	}
	return []table{t}, err
}

func compareStrict(ctx context.Context, s settings, on *starter, c *contest, t *table) error {
	s.tell("strict: starting the servers")
	etcd := on.etcdAway()
	postgres := dbtest.StartPostgres(on, "max_connections=600", "fsync=on", "synchronous_commit=on")
	on.Cleanup(dbtest.RemoveTemplates)
	url := strings.Replace(postgres.URL("postgres"), postgres.Address(), on.farAway(postgres.Address()), 1)
	on.must(on.query(ctx, url, "CREATE SEQUENCE events"))
	on.must(on.createStrict(ctx, etcd))
	if err := c.add(ctx, "firn, snowflakes", "grpc", nil, func(address string) (*process, error) {
		return c.start(ctx, c.firn, "serve", "--http-addr", "127.0.0.1:0", "--admin-addr", "none",
			"--grpc-addr", address, "--drain-delay", "0s", "--etcd", etcd)
	}); err != nil {
		return err
	}
	node := c.rivals[0]
	for _, r := range []rival{
		{name: "firn, strict", address: node.address},
		{name: "etcd, revision of a put", address: etcd},
		{name: "PostgreSQL, nextval", address: url},
	} {
		r.process = node.process
		c.rivals = append(c.rivals, &r)
	}
	for _, callers := range []int{1, 64, 512} {
		for i, connect := range []func(string, int) (load.Connection, error){ // the last round closed its own
			dialShared(""), dialShared("events"), shared(puts), asking("SELECT nextval('events')"),
		} {
			c.rivals[i].ask = overLoad(1, connect)
		}
		if err := c.askInTurn(ctx, s, callers); err != nil {
			return err
		}
		for _, r := range c.rivals {
			t.add(fmt.Sprintf("%s, %s", counted(callers, "caller"), r.name), r.median(perSecond),
				r.median(func(r round) float64 { return r.p50 }), r.median(func(r round) float64 { return r.p99 }),
				r.median(func(r round) float64 { return r.p999 }))
		}
	}
	return nil
}

// puts connects callers that take the revision of a put as their number.
func puts(address string) (load.Connection, error) {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{address}})
	if err != nil {
		return nil, err
	}
	return numbers{
		next: func(ctx context.Context) (firn.ID, error) {
			answer, err := c.Put(ctx, "events", "")
			if err != nil {
				return 0, err
			}
			return firn.ID(answer.Header.GetRevision()), nil
		},
		close: func() { _ = c.Close() },
	}, nil
}

// etcdAway starts an etcd, and returns where it is far away.
func (on *starter) etcdAway() string {
	on.must(os.Chdir("..")) // where the module is whose tool the server is
	defer func() { on.must(os.Chdir("bench")) }()
	return on.farAway(etcdtest.Start(on, etcdtest.Options{}).Address())
}

// farAway returns an address at which a server is far away.
func (on *starter) farAway(server string) string {
	p := proxytest.New(on, server)
	p.Delay(away / 2)
	return p.Address()
}

// createStrict creates a sequencer in strict order.
func (*starter) createStrict(ctx context.Context, etcd string) error {
	s, err := etcdstore.Open(etcdstore.Config{Endpoints: []string{etcd}})
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	m, err := peer.Join(ctx, s, peer.Options{Owner: "founder"})
	if err != nil {
		return err
	}
	defer m.Leave()
	_, err = m.Create(ctx, "events", cluster.Definition{Layout: firn.Default, Order: cluster.OrderStrict})
	return err
}
