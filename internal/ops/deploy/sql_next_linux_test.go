package deploy

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/fence"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/test/dbtest"
	"github.com/firn-id/firn/internal/test/testenv"
	"github.com/firn-id/firn/store/pgstore"
)

// claiming is a server with a cluster in it, whose sequencer orders has functions that claim a node ID.
type claiming struct {
	database
	server *dbtest.PostgresServer
	store  *pgstore.Store
	member *peer.Member
	ids    *peer.Sequencer
	of     cluster.Definition
	layout firn.Layout
}

const (
	nextWindow = 3 * time.Second // of the members, and so of the functions
	workers    = "sequencers/orders/workers/"
	orders     = "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT firn_next(), item text);\n"
	oneOrder   = "INSERT INTO orders (item) VALUES ('tea') RETURNING id;\n"
	owner      = "postgresql:postgres/public.firn_next"
)

// claims starts a server, and a member that has made an ID.
func claims(t *testing.T, change func(*cluster.Definition)) *claiming {
	t.Helper()
	c := &claiming{server: dbtest.StartPostgres(t, "max_connections=200")}
	c.database = on(t, c.server)
	c.of = cluster.Define(firn.Default)
	c.of.Nodes = 4
	if change != nil {
		change(&c.of)
	}
	c.layout = c.of.IDLayout()
	c.store = c.open(t, c.server)
	c.member = c.join(t, c.store, peer.Options{Owner: "node-1"})
	c.create(t, c.of)
	return c
}

// create creates the sequencer, and has the member make an ID.
func (c *claiming) create(t *testing.T, of cluster.Definition) {
	t.Helper()
	q, err := c.member.EnsureSequencer(t.Context(), "orders", of)
	if err == nil {
		_, err = q.Next(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	c.ids = q
}

func (c *claiming) open(t *testing.T, server *dbtest.PostgresServer) *pgstore.Store {
	t.Helper()
	s, err := pgstore.Open(pgstore.Config{URL: server.URL("postgres")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func (c *claiming) join(t *testing.T, s *pgstore.Store, o peer.Options) *peer.Member {
	t.Helper()
	o.TTL, o.Window = 2*time.Second, nextWindow
	m, err := peer.Join(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Leave)
	return m
}

// next is what firn gen sql --next prints.
func (c *claiming) next(t *testing.T, change func(*SQLNext)) string {
	t.Helper()
	s := nextSample()
	s.Definition = c.of
	if change != nil {
		change(&s)
	}
	text, err := s.Text(origin)
	if err != nil {
		t.Fatal(err)
	}
	return "SET client_min_messages = warning;\n" + text
}

// install makes the functions, and the table orders.
func (c *claiming) install(t *testing.T) {
	t.Helper()
	c.run(t, c.next(t, nil)+orders)
}

// order inserts rows one after the other, and returns their IDs.
func (c *claiming) order(t *testing.T, n int) []firn.ID {
	t.Helper()
	ids := numbersOf(t, c.run(t, strings.Repeat(oneOrder, n)))
	ascending(t, ids)
	return ids
}

// at is the time of an ID.
func (c *claiming) at(t *testing.T, id firn.ID) time.Time {
	t.Helper()
	at, err := c.layout.Time(id)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// owners are those whose names begin so.
func (c *claiming) owners(t *testing.T, prefix string) (found []fence.Owner) {
	t.Helper()
	all, err := fence.Owners(t.Context(), c.store, workers)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(o fence.Owner) bool { return !o.Live || !strings.HasPrefix(o.Name, prefix) })
}

// held is the one node ID of the functions.
func (c *claiming) held(t *testing.T) fence.Owner {
	t.Helper()
	all := c.owners(t, owner)
	if len(all) != 1 {
		t.Fatalf("the owners that are databases: %+v; want one", all)
	}
	return all[0]
}

// The member finds a node ID held, and takes another one; IDs of both are all different, through crashes of the
// server, rollbacks, and sessions that are cancelled or killed.
func TestNextBesideAMember(t *testing.T) {
	testenv.Slow(t)
	t.Cleanup(dbtest.RemoveTemplates)
	c := claims(t, func(d *cluster.Definition) { d.Nodes = 2 })
	c.install(t)
	var mu sync.Mutex
	given := map[firn.ID]string{}
	note := func(by string, ids ...firn.ID) {
		mu.Lock()
		defer mu.Unlock()
		for _, id := range ids {
			if other, twice := given[id]; twice {
				t.Errorf("%s has %d, which %s has had", by, id, other)
			}
			given[id] = by
		}
	}
	note("a session", c.order(t, 1)...)
	ctx, cancel := context.WithCancel(t.Context())
	var making sync.WaitGroup
	defer making.Wait()
	defer cancel()
	making.Go(func() {
		for ctx.Err() == nil {
			if id, err := c.ids.Next(ctx); err == nil {
				note("the member", id)
			}
			time.Sleep(100 * time.Microsecond)
		}
	})
	script := strings.Repeat(oneOrder+"BEGIN;\n"+oneOrder+"ROLLBACK;\nSELECT firn_next();\n", 2000)
	for crash := range 3 {
		const sessions, atLeast = 64, 5
		seen, enough := make([][]firn.ID, sessions), make(chan struct{}, sessions)
		var running sync.WaitGroup
		for i := range seen {
			running.Go(func() { seen[i] = c.untilItEnds(t, script, atLeast, enough) })
		}
		for range seen {
			<-enough
		}
		switch crash {
		case 0: // one session crashes: the server restarts all of them
			c.exec(t, "kill", "-9", strings.TrimSpace(c.run(t,
				"SELECT pid FROM pg_stat_activity WHERE query LIKE '%orders%' AND pid <> pg_backend_pid() LIMIT 1")))
		case 1:
			c.run(t, "SELECT FROM pg_stat_activity, pg_terminate_backend(pid) WHERE application_name = 'psql' "+
				"AND pid <> pg_backend_pid()")
		default:
			c.server.Kill(t)
		}
		running.Wait()
		if crash == 2 {
			c.server.Start(t)
		}
		c.eventually(t, "the server", func() error { return c.try("SELECT") })
		last := firn.ID(0)
		for _, ids := range seen {
			ascending(t, ids)
			last = max(last, slices.Max(ids))
			note("a session", ids...)
		}
		next := c.order(t, 5)
		note("a session", next...)
		if next[0] <= last {
			t.Errorf("after %d comes %d", last, next[0])
		}
	}
	database := c.held(t).Node
	c.eventually(t, "the member's node ID", func() error {
		if all := c.owners(t, "node-1"); len(all) != 1 || all[0].Node == database {
			return fmt.Errorf("it owns %+v, and the database %d", all, database)
		}
		return nil
	})
}

// try runs a statement, and returns what it prints as an error.
func (c *claiming) try(statement string) error {
	out, err := exec.Command(c.client[0], append(c.client[1:], "-c", statement)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

func (c *claiming) exec(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

func (c *claiming) eventually(t *testing.T, what string, is func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	for {
		err := is()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// A member that the log grants the node ID of a database asks for another one.
func membersDecline(t *testing.T) {
	c := claims(t, func(d *cluster.Definition) { d.Nodes = 2 })
	c.install(t)
	c.order(t, 1)
	database := c.held(t).Node
	if err := c.member.Drain(t.Context(), "orders", c.member.ID()); err != nil {
		t.Fatal(err)
	}
	for range 6 { // the log begins with either
		m := c.join(t, c.open(t, c.server), peer.Options{Owner: "node-2"})
		q, err := m.EnsureSequencer(t.Context(), "orders", c.of)
		if err != nil {
			t.Fatal(err)
		}
		id, err := q.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ofNode(t, c.layout, 1-database, []firn.ID{id})
		m.Leave()
	}
	c.order(t, 1)
	if now := c.held(t).Node; now != database {
		t.Errorf("the database has node ID %d; it had %d", now, database)
	}
}

// Locks that a session keeps stop no other one for long.
func nextWaitsForNoLocks(t *testing.T) {
	c := claims(t, nil)
	c.install(t)
	c.order(t, 1)
	other := fmt.Sprintf("\\! PGOPTIONS='-c statement_timeout=60s' %s '%s' -c 'SELECT firn_next()' 2>&1\n",
		strings.Join(c.client[:len(c.client)-1], " "), c.client[len(c.client)-1])
	if ids := numbersOf(t, c.run(t, "BEGIN; SELECT FROM firn_next_release();\n"+other)); len(ids) != 1 {
		t.Errorf("while a transaction that has released the node ID is open come the IDs %d; want one", ids)
	}
	got := c.run(t, "BEGIN; SELECT FROM pg_advisory_xact_lock(1718186607, 'firn_next_place'::regclass::oid::int), "+
		"setval('firn_next_mark', 0);\n"+other)
	if want := "can't be had: canceling statement due to lock timeout"; !strings.Contains(got, want) {
		t.Errorf("while a session asks the store, another one prints %q; want %q", got, want)
	}
}

// A copy that takes the name of its original knows what it had: not what the original has used since.
func nextInACopyWithTheSameName(t *testing.T) {
	c := claims(t, nil)
	c.run(t, "CREATE DATABASE shop;\n\\c shop\n"+c.next(t, func(s *SQLNext) { s.Database = "postgres" })+orders)
	ahead := fmt.Sprintf("SELECT FROM firn_next_place, setval('firn_next_place', last_value + %d);\n",
		1000<<c.layout.SequenceBits) // a second
	ids := numbersOf(t, c.run(t, "\\c shop\n"+oneOrder+"SELECT FROM setval('firn_next_due', 9000000000000000);\n"+
		"\\c postgres\nCREATE DATABASE copy TEMPLATE shop;\n\\c shop\n"+ahead+oneOrder+
		"\\c postgres\nALTER DATABASE shop RENAME TO old; ALTER DATABASE copy RENAME TO shop;\n\\c shop\n"+oneOrder))
	ascending(t, ids)
}
