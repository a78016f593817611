package deploy

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/floor"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/test/dbtest"
	"github.com/firn-id/firn/internal/test/testenv"
	"github.com/firn-id/firn/store"
)

func TestNext(t *testing.T) {
	testenv.Slow(t)
	t.Cleanup(dbtest.RemoveTemplates)
	for name, test := range map[string]func(*testing.T){
		"has a node ID of its own":                     nextHasANodeIDOfItsOwn,
		"begins above a horizon that it does not know": nextBeginsAboveAHorizonThatItDoesNotKnow,
		"after the sequencer was created again":        nextAfterTheSequencerWasCreatedAgain,
		"when its node ID is reserved":                 nextWhenItsNodeIDIsReserved,
		"in a transaction":                             nextInATransaction,
		"needs no rights":                              nextNeedsNoRights,
		"uses no connection of the session":            nextUsesNoConnectionOfTheSession,
		"waits for no locks":                           nextWaitsForNoLocks,
		"in a copy with the same name":                 nextInACopyWithTheSameName,
		"computes":                                     nextComputes,
		"on a promoted replica":                        nextOnAPromotedReplica,
		"refuses its clock":                            nextRefusesItsClock,
		"before a node has made IDs":                   nextBeforeANodeHasMadeIDs,
		"after a crash":                                nextAfterACrash,
		"members decline its node ID":                  membersDecline,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

// Functions in two schemas, and in two databases, have node IDs of their own, as has a copy of a database.
func nextHasANodeIDOfItsOwn(t *testing.T) {
	c := claims(t, nil)
	c.install(t)
	c.run(t, "CREATE SCHEMA shop; SET search_path = shop, public;\n"+c.next(t, nil)+orders)
	c.run(t, "CREATE DATABASE shop;\n")
	elsewhere := "\\c shop\n" + c.next(t, func(s *SQLNext) { s.Database = "postgres" }) + orders
	all := numbersOf(t, c.run(t, oneOrder+"SELECT shop.firn_next();\n"+elsewhere+oneOrder))
	nodes := map[int64]bool{}
	for _, id := range all {
		node, err := c.layout.NodeID(id)
		if err != nil || nodes[node] {
			t.Errorf("the IDs %d have node IDs %v, %v; want different ones", all, nodes, err)
		}
		nodes[node] = true
	}
	if len(c.owners(t, owner)) != 1 || len(c.owners(t, "postgresql:postgres/shop.firn_next")) != 1 ||
		len(c.owners(t, "postgresql:shop/public.firn_next")) != 1 {
		t.Errorf("the owners are %+v", c.owners(t, ""))
	}

	c.run(t, "SELECT firn_next_release(); SELECT shop.firn_next_release();\n")
	if left := c.owners(t, "postgresql:postgres/"); len(left) > 0 {
		t.Errorf("after a release there are owners: %+v", left)
	}
	c.run(t, "CREATE DATABASE copy TEMPLATE shop;\n")
	copies := numbersOf(t, c.run(t, "\\c shop\n"+oneOrder+"\\c copy\n"+oneOrder+"\\c shop\n"+oneOrder))
	distinct(t, append(copies, all[2]))
	if len(c.owners(t, "postgresql:copy/public.firn_next")) != 1 {
		t.Errorf("the owners are %+v", c.owners(t, ""))
	}
}

// What a function has not written itself, it takes for the use of another: a copy, or one that died.
func nextBeginsAboveAHorizonThatItDoesNotKnow(t *testing.T) {
	c := claims(t, nil)
	c.install(t)
	c.order(t, 1)
	for _, forget := range []string{"firn_next_version", "firn_next_mark"} {
		before := c.held(t)
		c.run(t, "SELECT FROM setval('"+forget+"', 1) a, setval('firn_next_due', 0) b;\n")
		c.order(t, 1) // it asks for more
		if id := c.order(t, 1)[0]; c.at(t, id).Before(before.Horizon) {
			t.Errorf("without %s comes an ID of %v, below the horizon %v", forget, c.at(t, id), before.Horizon)
		}
		if now := c.held(t); now.Node != before.Node {
			t.Errorf("it has node ID %d; it had %d", now.Node, before.Node)
		}
	}
	// The clock is a minute behind a horizon that is not its own.
	node := c.held(t).Node
	c.run(t, fmt.Sprintf("UPDATE firn.keys SET version = version + 1, value = convert_to(replace("+
		"convert_from(value, 'UTF8'), split_part(convert_from(value, 'UTF8'), ' ', 1), '%d'), 'UTF8') "+
		"WHERE key = '%slast_reported_time/%d';\n",
		time.Now().Add(time.Minute).UnixMilli(), workers, node)+"SELECT FROM setval('firn_next_mark', 0);\n")
	c.refuses(t, oneOrder, "ahead of the clock")
}

// A later sequencer of the name has other IDs, and the functions refuse another definition.
func nextAfterTheSequencerWasCreatedAgain(t *testing.T) {
	c := claims(t, nil)
	c.install(t)
	first := c.order(t, 1)
	if err := c.member.Destroy(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	c.refuses(t, oneOrder, "is destroyed")
	c.create(t, c.of)
	if second := c.order(t, 1); second[0] <= first[0] {
		t.Errorf("after %d comes %d", first[0], second[0])
	}
	if err := c.member.Destroy(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	other := c.of
	other.Nodes = 8
	c.create(t, other)
	c.refuses(t, oneOrder, "another definition")
	before := c.layout
	c.of, c.layout = other, other.IDLayout()
	c.refuses(t, c.next(t, nil), "want the same, or another --name")
	c.run(t, "DROP TABLE orders;\n"+c.next(t, func(s *SQLNext) { s.Name = "more" })+
		strings.Replace(orders, "firn_", "more_", 1))
	if at, _ := before.Time(first[0]); !c.at(t, c.order(t, 1)[0]).After(at) {
		t.Error("IDs of the third sequencer begin before those of the first")
	}
}

// An operator reserves the node ID: the database uses up its time, and gets another one.
func nextWhenItsNodeIDIsReserved(t *testing.T) {
	c := claims(t, nil)
	c.install(t)
	c.order(t, 1)
	before := c.held(t)
	_, from, err := c.member.Reserve(t.Context(), "orders", cluster.Reserving{For: "test", Nodes: []int64{before.Node}})
	if err != nil {
		t.Fatal(err)
	}
	if from.Before(before.Horizon) {
		t.Errorf("the reservation begins at %v, below the horizon %v", from, before.Horizon)
	}
	c.eventually(t, "another node ID", func() error {
		id := c.order(t, 1)[0]
		if node, _ := c.layout.NodeID(id); node == before.Node {
			if !c.at(t, id).Before(from) {
				t.Fatalf("an ID of %v, from which on it is reserved", c.at(t, id))
			}
			return fmt.Errorf("it is still %d", node)
		}
		return nil
	})
}

// A transaction of the caller's locks nothing in the store, and sees what others have reserved. While somebody else
// locks the store, IDs are made up to the horizon.
func nextInATransaction(t *testing.T) {
	c := claims(t, nil)
	c.install(t)
	other := fmt.Sprintf("\\! PGOPTIONS='-c lock_timeout=5s' %s '%s' "+
		"-c 'SELECT setval(''firn_next_due'', 0) * 0 + firn_next()'\n",
		strings.Join(c.client[:len(c.client)-1], " "), c.client[len(c.client)-1])
	other = strings.ReplaceAll(other, "''", "'\\''")
	for _, begin := range []string{
		"BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN ISOLATION LEVEL SERIALIZABLE",
	} {
		ascending(t, numbersOf(t, c.run(t, begin+"; SELECT FROM orders;\n"+oneOrder+other+oneOrder+other+
			"SAVEPOINT a;\n"+oneOrder+"ROLLBACK TO a;\n"+other+oneOrder+other+oneOrder+"COMMIT;\n")))
	}
	c.refuses(t, "BEGIN READ ONLY; SELECT firn_next();\n", "read-only transaction")

	held := c.server.SQL(t, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")
	if strings.TrimSpace(held) != "0" {
		t.Errorf("%s locks are left", held)
	}
	c.refuses(t, "BEGIN; SELECT FROM firn.head FOR UPDATE; SELECT setval('firn_next_due', 0) * 0;\n"+
		"SELECT firn_next() * 0; SELECT firn_next() * 0;\nSELECT setval('firn_next_mark', 0); SELECT firn_next();\n",
		"there is no time left that is reserved in firn's store, and more can't be had: "+
			"canceling statement due to lock timeout")
	c.order(t, 1)
	if got := c.run(t, "BEGIN; SELECT FROM firn.head FOR UPDATE; SELECT setval('firn_next_due', 0) * 0;\n"+
		"SELECT firn_next() * 0;\n"); got != "0\n0\n" {
		t.Errorf("while the store is locked it prints %q", got)
	}
}

// A role needs the right to the table only, has no other, and can't change what the functions know.
func nextNeedsNoRights(t *testing.T) {
	c := claims(t, nil)
	c.install(t)
	c.run(t, "CREATE ROLE shop; GRANT INSERT, SELECT ON orders TO shop;\n")
	const role = "SET ROLE shop; SET search_path = pg_temp;\n"
	fake := "CREATE TEMP SEQUENCE firn_next_place MINVALUE 0 MAXVALUE 1;\nCREATE TEMP SEQUENCE firn_next_bound;\n" +
		"CREATE FUNCTION pg_temp.dblink(text, text) RETURNS SETOF record LANGUAGE sql\n" +
		"  AS 'SELECT ''{0,0,0,0,0}''::text';\n"
	public := strings.Replace(oneOrder, "orders", "public.orders", 1)
	ascending(t, numbersOf(t, c.run(t, role+fake+strings.Repeat(public, 3))))
	for statement, want := range map[string]string{
		"SELECT public.firn_next_extend(false)":                                  "permission denied",
		"SELECT public.firn_next_store(0, -1, 5000)":                             "permission denied",
		"SELECT public.firn_next_release()":                                      "permission denied",
		"SELECT setval('public.firn_next_bound', 1)":                             "permission denied",
		"SELECT * FROM firn.keys":                                                "permission denied",
		"SELECT * FROM public.dblink('firn_store', 'SELECT 1') AS (one integer)": "user mapping not found",
	} {
		c.refuses(t, role+statement+";\n", want)
	}
}

// A connection that the session has opened could lead anywhere, or be in a transaction.
func nextUsesNoConnectionOfTheSession(t *testing.T) {
	c := claims(t, nil)
	c.install(t)
	c.refuses(t, "SELECT FROM dblink_connect('firn_store', 'firn_store'), dblink_exec('firn_store', 'BEGIN');\n"+
		"SELECT firn_next();\n", "a connection of dblink with the name firn_store")
	c.run(t, "SELECT FROM dblink_connect('another', 'firn_store');\n"+oneOrder)
}

// Layouts of all kinds.
func nextComputes(t *testing.T) {
	for name, l := range map[string]firn.Layout{
		"node ID lowest": {
			Epoch: time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC), Tick: 10 * time.Millisecond, TimeBits: 39, NodeBits: 16,
			SequenceBits: 8, NodeLowest: true,
		},
		"odd": {
			Epoch: time.Date(2020, 1, 1, 0, 0, 0, 123_456_789, time.UTC), Tick: 1_234_567,
			TimeBits: 41, DatacenterBits: 3, NodeBits: 4, SequenceBits: 2,
		},
		"few IDs in a second": tiny,
	} {
		t.Run(name, func(t *testing.T) {
			c := claims(t, func(d *cluster.Definition) {
				*d = cluster.Define(l)
				d.RandomStart = l.NodeLowest
			})
			c.install(t)
			before := time.Now()
			ids := c.order(t, 7)
			held := c.held(t)
			ofNode(t, c.layout, held.Node, ids)
			for _, id := range ids {
				at := c.at(t, id)
				if at.Before(before.Add(-l.Tick)) || !at.Add(l.Tick).Before(held.Horizon.Add(time.Millisecond)) {
					t.Errorf("an ID of %v, made at %v with the horizon %v", at, before, held.Horizon)
				}
			}
			c.run(t, "SELECT firn_next_release();\n")
			kv, err := c.store.Get(t.Context(), fmt.Sprintf("%slast_reported_time/%d", workers, held.Node))
			if err != nil {
				t.Fatal(err)
			}
			var end int64
			fmt.Sscan(string(kv.Value), &end)
			if used := c.at(t, ids[6]).Add(l.Tick); time.UnixMilli(end).Before(used) ||
				time.UnixMilli(end).After(used.Add(2*time.Millisecond)) {
				t.Errorf("it was released at %v, used until %v", time.UnixMilli(end), used)
			}
			if next := c.order(t, 3); next[0] <= ids[6] {
				t.Errorf("after %d and a release comes %d", ids[6], next[0])
			}
		})
	}
}

// What the server forgets in a crash was reserved, and IDs begin above that.
func nextAfterACrash(t *testing.T) {
	c := claims(t, nil)
	c.install(t)
	for name, crash := range map[string]func(){
		"a session is killed": func() {
			pid := strings.TrimSpace(c.run(t, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' "+
				"AND pid <> pg_backend_pid() LIMIT 1;\n"))
			c.exec(t, "kill", "-9", pid)
		},
		"the server is killed": func() {
			c.server.Kill(t)
			c.server.Start(t)
		},
	} {
		c.order(t, 1)
		before := c.held(t)
		crash()
		c.eventually(t, "the recovery", func() error {
			return c.try("SELECT 1 / (last_value = 0)::int FROM firn_next_place")
		})
		if id := c.order(t, 1)[0]; c.at(t, id).Before(before.Horizon) {
			t.Errorf("after that %s comes an ID of %v, below the horizon %v", name, c.at(t, id), before.Horizon)
		}
	}
}

// A replica that is promoted does not know the last IDs: no ID is made before the members say from when on.
func nextOnAPromotedReplica(t *testing.T) {
	c := claims(t, nil)
	c.install(t)
	c.order(t, 1)
	r := c.server.Replica(t, "max_connections=200")
	replica := on(t, r)
	r.Part(t)
	c.run(t, "SELECT setval('firn_next_due', 0);\n")
	lost := c.order(t, 10)
	horizon := c.held(t).Horizon
	c.server.Kill(t)
	r.Promote(t)
	replica.refuses(t, oneOrder, "could not establish connection")
	_, port, _ := net.SplitHostPort(r.Address())
	replica.run(t, "ALTER SERVER firn_store OPTIONS (SET host '127.0.0.1', SET port '"+port+"');\n")
	replica.refuses(t, oneOrder, "no node of firn has found that yet")
	c.join(t, c.open(t, r), peer.Options{Owner: "node-2"})
	c.database = replica
	var f floor.Floor
	s := c.open(t, r)
	c.eventually(t, "the floor", func() error {
		kv, err := s.Get(t.Context(), floor.Key)
		if err != nil {
			return err
		}
		if f, err = floor.Parse(kv.Value); err == nil && (f.Open || f.From.IsZero()) {
			err = fmt.Errorf("it is %+v", f)
		}
		return err
	})
	if time.Until(f.From) > time.Second {
		replica.refuses(t, oneOrder, "no IDs are made before")
	}
	c.eventually(t, "an ID", func() error { return c.try("SELECT firn_next()") })
	next := c.order(t, 1)[0]
	if at := c.at(t, next); next <= lost[9] || at.Before(f.From) || at.Before(horizon) {
		t.Errorf("after %d, the horizon %v and the floor %v comes %d, of %v", lost[9], horizon, f.From, next, at)
	}
}

// The clock of the server is another than those of most nodes.
func nextRefusesItsClock(t *testing.T) {
	c := claims(t, nil)
	c.install(t)
	c.order(t, 1)
	put := func(name string, at time.Time) {
		t.Helper()
		session, err := c.store.OpenSession(t.Context(), time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		value := fmt.Sprintf(`{"clock": %q, "every_ns": 1000000000}`, at.Format(time.RFC3339Nano))
		txn := store.Txn{Then: []store.Op{store.PutEphemeral("peers/"+name, []byte(value), session)}}
		if _, err := c.store.Commit(t.Context(), txn); err != nil {
			t.Fatal(err)
		}
	}
	const ask = "SELECT FROM setval('firn_next_mark', 0);\nSELECT firn_next();\n"
	put("a", time.Now().Add(time.Hour))
	put("b", time.Now().Add(-time.Hour))
	c.run(t, ask) // two of four
	put("c", time.Now().Add(time.Hour))
	c.refuses(t, ask, "differs by more than 10 s from those of 3 of 4 nodes")
}

// The functions say what is missing.
func nextBeforeANodeHasMadeIDs(t *testing.T) {
	c := claims(t, nil)
	c.run(t, "CREATE EXTENSION dblink;\n"+c.next(t, func(s *SQLNext) { s.Name, s.Sequencer = "other", "others" }))
	c.refuses(t, "SELECT other_next();\n", "take an ID from a node first")
	c.run(t, c.next(t, func(s *SQLNext) { s.Name, s.Schema = "elsewhere", "none" }))
	c.refuses(t, "SELECT elsewhere_next();\n", "the database postgres has no schema none with firn's store")
	c.run(t, c.next(t, nil)+c.next(t, nil)) // it is safe to run this again
	c.run(t, "SELECT FROM setval('firn_next_version', 4000000000000000), firn_next_extend(false);\n"+
		"SELECT FROM setval('firn_next_version', 9000000000000000) a, setval('firn_next_due', 0) b;\n")
	c.refuses(t, "SELECT firn_next_extend(false);\n", "firn's store has lost data")
}
