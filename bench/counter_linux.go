package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/ops/load"
	"github.com/firn-id/firn/internal/test/dbtest"
	"github.com/firn-id/firn/store/pgstore"
)

// runCounter measures counters beside what else gives the numbers 1, 2, 3 and so on.
func runCounter(ctx context.Context, s settings) ([]table, error) {
	versus := table{
		Title: "counter: one number per call",
		Note: "All servers run on this machine. The counters are those of members in this process, whose store is " +
			"the same\n" +
			"PostgreSQL, which writes each commit to the disk. Percentiles are medians over the rounds.",
		columns: []column{
			{"per_s", "numbers/s", "%.0f"},
			{"p50_us", "p50 µs", "%.1f"},
			{"p99_us", "p99 µs", "%.1f"},
			{"p999_us", "p99.9 µs", "%.1f"},
		},
	}
	skipped, err := guarded(ctx, func(on *starter) error { return compareCounters(ctx, s, on, &versus) })
	if skipped != "" {
		versus.Note = "Skipped: " + skipped
	}
	return []table{versus}, err
}

// numbers is a caller's connection to what gives numbers.
type numbers struct {
	next  func(ctx context.Context) (firn.ID, error)
	close func()
}

func (n numbers) Take(ctx context.Context, ids []firn.ID) (err error) {
	ids[0], err = n.next(ctx)
	return err
}

func (n numbers) Close() {
	if n.close != nil {
		n.close()
	}
}

// compareCounters asks all that gives numbers, in turn, by 1, 16 and 64 callers.
func compareCounters(ctx context.Context, s settings, on *starter, t *table) error {
	s.tell("counter: starting the servers")
	server := dbtest.StartPostgres(on, "max_connections=300", "fsync=on", "synchronous_commit=on")
	on.Cleanup(dbtest.RemoveTemplates)
	url := server.URL("postgres")
	c := &contest{dir: on.TempDir()}
	on.Cleanup(func() {
		for _, p := range c.all {
			p.stop()
		}
	})
	self := &process{command: &exec.Cmd{Process: &os.Process{Pid: os.Getpid()}}}
	add := func(name, address string, connect func(string, int) (load.Connection, error)) {
		c.rivals = append(c.rivals, &rival{process: self, name: name, address: address, ask: overLoad(1, connect)})
	}
	for _, order := range []cluster.Order{cluster.OrderNode, cluster.OrderStrict} {
		name := map[cluster.Order]string{cluster.OrderNode: "blocks", cluster.OrderStrict: "strict"}[order]
		give := on.counters(ctx, url, name, cluster.Definition{Kind: cluster.Counter, Order: order}, 2)
		add("firn, "+name, "", give[:1].connect)
		add("firn, "+name+", two nodes", "", give.connect)
	}
	on.must(on.query(ctx, url, "CREATE TABLE counters (name text PRIMARY KEY, n bigint NOT NULL)",
		"INSERT INTO counters VALUES ('invoices', 0)", "CREATE SEQUENCE invoices"))
	add("PostgreSQL, nextval", url, asking("SELECT nextval('invoices')"))
	add("PostgreSQL, UPDATE ... RETURNING", url,
		asking("UPDATE counters SET n = n + 1 WHERE name = 'invoices' RETURNING n"))
	for _, fsync := range []string{"no", "always"} {
		address, err := on.redis(ctx, c, fsync)
		if errors.Is(err, exec.ErrNotFound) {
			t.Note += "\nRedis is not here; Debian has redis-server."
			break
		}
		if err != nil {
			return err
		}
		add("Redis, INCR, fsync "+fsync, address, func(address string, _ int) (load.Connection, error) {
			return dial("redis", address, load.Access{Sequencer: "invoices"})
		})
	}
	for _, callers := range []int{1, 16, 64} {
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

// members are handles of one counter.
type members []*peer.Counter

// connect gives each caller the next member.
func (m members) connect(_ string, i int) (load.Connection, error) {
	return numbers{next: m[i%len(m)].Next}, nil
}

// counters has members create a counter.
func (on *starter) counters(ctx context.Context, url, name string, d cluster.Definition, many int) (all members) {
	for i := range many {
		s, err := pgstore.Open(pgstore.Config{URL: url})
		on.must(err)
		on.Cleanup(func() { _ = s.Close() })
		m, err := peer.Join(ctx, s, peer.Options{Owner: fmt.Sprint(name, i)})
		on.must(err)
		on.Cleanup(m.Leave)
		if i == 0 {
			_, err = m.Create(ctx, name, d)
			on.must(err)
		}
		c, err := m.EnsureCounter(ctx, name, d)
		on.must(err)
		all = append(all, c)
	}
	return all
}

// query runs statements.
func (*starter) query(ctx context.Context, url string, statements ...string) error {
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close(ctx) }()
	for _, statement := range statements {
		if _, err := c.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// asking connects callers that run a statement for each number, which the server has prepared.
func asking(statement string) func(url string, i int) (load.Connection, error) {
	return func(url string, _ int) (load.Connection, error) {
		c, err := pgx.Connect(context.Background(), url)
		if err != nil {
			return nil, err
		}
		return numbers{
			next: func(ctx context.Context) (id firn.ID, err error) {
				err = c.QueryRow(ctx, statement).Scan((*int64)(&id))
				return id, err
			},
			close: func() { _ = c.Close(context.Background()) },
		}, nil
	}
}

// redis starts a Redis that writes each command to the disk, or none.
func (on *starter) redis(ctx context.Context, c *contest, fsync string) (address string, err error) {
	server, err := exec.LookPath("redis-server")
	if err != nil {
		return "", err
	}
	if address, err = freeAddress(ctx); err != nil {
		return "", err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	keeps := map[bool]string{true: "yes", false: "no"}[fsync != "no"]
	p, err := c.start(ctx, server, "--bind", host, "--port", port, "--save", "", "--dir", on.TempDir(),
		"--appendonly", keeps, "--appendfsync", fsync)
	if err == nil {
		_, err = p.awaitID(ctx, "redis", address)
	}
	return address, err
}
