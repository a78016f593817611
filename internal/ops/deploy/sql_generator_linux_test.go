package deploy

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/test/dbtest"
	"github.com/firn-id/firn/internal/test/testenv"
)

// tiny has four IDs in a tick, and some time.
var tiny = firn.Layout{
	Epoch: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Tick: time.Second, TimeBits: 40, NodeBits: 10, SequenceBits: 2,
}

// generated is what firn gen sql --generator prints, for the table orders where tables need something.
func (d database) generated(t *testing.T, name string, l firn.Layout, node int64) string {
	t.Helper()
	g := NewSQLGenerator()
	g.Dialect, g.Name, g.Layout, g.Node = d.dialect, name, l, node
	if d.dialect != "postgres" {
		g.Table = "orders"
	}
	text, err := g.Text(origin)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// orders is a statement that makes a table whose IDs come from firn_next.
func (d database) orders() string {
	switch d.dialect {
	case "postgres":
		return "CREATE TABLE IF NOT EXISTS orders (id bigint PRIMARY KEY DEFAULT firn_next(), item text);\n"
	case "mysql":
		return "CREATE TABLE IF NOT EXISTS orders (id BIGINT NOT NULL DEFAULT 0 PRIMARY KEY, item TEXT);\n"
	}
	return "CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, item TEXT);\n"
}

// generator makes the generator firn for the table orders.
func (d database) generator(t *testing.T, l firn.Layout, node int64) {
	t.Helper()
	made := d.generated(t, "firn", l, node)
	if d.dialect == "postgres" {
		d.run(t, "SET client_min_messages = warning;\n"+made+d.orders())
	} else {
		d.run(t, d.orders()+made)
	}
}

// forget removes the generator.
func (d database) forget(t *testing.T) {
	t.Helper()
	d.run(t, map[string]string{
		"postgres": "DROP TABLE orders; DROP FUNCTION firn_next; DROP FUNCTION firn_floor; " +
			"DROP SEQUENCE firn_generator_place, firn_generator_start;\n",
		"mysql":  "DROP TABLE orders, firn_generator;\n",
		"sqlite": "DROP TABLE orders; DROP VIEW firn_next; DROP TABLE firn_generator;\n",
	}[d.dialect])
}

// insert is a statement that inserts a row and prints its ID.
func (d database) insert() string {
	if d.dialect == "sqlite" {
		return "INSERT INTO orders (id, item) SELECT id, 'tea' FROM firn_next RETURNING id;\n"
	}
	return "INSERT INTO orders (item) VALUES ('tea') RETURNING id;\n"
}

// floor is a statement for the IDs to begin at a time.
func (d database) floor(made string, at time.Time) string {
	text := quoted(at.UTC().Format(d.format))
	switch d.dialect {
	case "postgres":
		return "SELECT FROM public.firn_floor(" + text + ");\n"
	case "mysql":
		return "CALL firn_floor(" + text + ");\n"
	}
	_, update, _ := strings.Cut(made, "at least:\n--\n")
	update, _, _ = strings.Cut(update, "\n\n")
	return strings.NewReplacer("--", "", "'now', '+1 minute'", text).Replace(update) + "\n"
}

func numbersOf(t *testing.T, printed string) (ids []firn.ID) {
	t.Helper()
	for line := range strings.Lines(printed) {
		id, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		if err != nil {
			t.Fatalf("%q is not an ID", line)
		}
		ids = append(ids, firn.ID(id))
	}
	return ids
}

// takes takes IDs one after the other, in one session, and tests that they are of a layout and node.
func (d database) takes(t *testing.T, l firn.Layout, node int64, n int) (ids []firn.ID) {
	t.Helper()
	ids = numbersOf(t, d.run(t, strings.Repeat(d.insert(), n)))
	if len(ids) != n {
		t.Fatalf("%d IDs, want %d", len(ids), n)
	}
	ofNode(t, l, node, ids)
	return ids
}

func ofNode(t *testing.T, l firn.Layout, node int64, ids []firn.ID) {
	t.Helper()
	for _, id := range ids {
		if got, err := l.NodeID(id); err != nil || got != node {
			t.Fatalf("the ID %d has the node ID %d, %v; want %d", id, got, err, node)
		}
	}
}

// distinct tests that no ID is there twice.
func distinct(t *testing.T, ids []firn.ID) {
	t.Helper()
	sorted := slices.Sorted(slices.Values(ids))
	for i, id := range sorted {
		if i > 0 && id == sorted[i-1] {
			t.Fatalf("the ID %d is there twice", id)
		}
	}
}

func ascending(t *testing.T, ids []firn.ID) {
	t.Helper()
	for i := 1; i < len(ids); i++ {
		if ids[i] <= ids[i-1] {
			t.Fatalf("the ID %d comes after %d", ids[i], ids[i-1])
		}
	}
}

func TestGenerators(t *testing.T) {
	testenv.Slow(t)
	databases(t, func(t *testing.T, d database) {
		for name, test := range map[string]func(*testing.T){
			"make no ID twice for 64 sessions": d.serves64,
			"go on from a later time":          d.clockBehind,
			"end with the layout":              d.ends,
			"give no committed ID again":       d.rollsBack,
			"compute as the library does":      d.computes,
			"keep their layout":                d.keepsLayout,
		} {
			t.Run(name, func(t *testing.T) {
				defer d.forget(t)
				test(t)
			})
		}
	})
}

// sessions runs a script in sessions at once, and returns the IDs that each prints.
func (d database) sessions(t *testing.T, n int, script string) (all []firn.ID) {
	t.Helper()
	var running sync.WaitGroup
	printed := make([]string, n)
	for i := range printed {
		running.Go(func() { printed[i] = d.run(t, script) })
	}
	running.Wait()
	for _, text := range printed {
		ids := numbersOf(t, text)
		ascending(t, ids)
		all = append(all, ids...)
	}
	return all
}

func (d database) serves64(t *testing.T) {
	d.generator(t, firn.Default, 900)
	settings := map[string]string{"sqlite": ".timeout 60000\nPRAGMA synchronous = OFF;\n"}[d.dialect]
	const sessions, each = 64, 20
	before := time.Now()
	ids := d.sessions(t, sessions, settings+strings.Repeat(d.insert(), each))
	if len(ids) != sessions*each {
		t.Fatalf("%d IDs, want %d", len(ids), sessions*each)
	}
	ofNode(t, firn.Default, 900, ids)
	distinct(t, ids)
	for _, id := range ids {
		at, err := firn.Default.Time(id)
		if err != nil || at.Before(before.Add(-time.Millisecond)) || at.After(time.Now().Add(10*time.Second)) {
			t.Fatalf("an ID made after %v is of %v, %v", before, at, err)
		}
	}
	last := slices.Max(ids)
	for range 3 { // in sessions of their own
		next := d.takes(t, firn.Default, 900, 2)
		ascending(t, append([]firn.ID{last}, next...))
		last = next[1]
	}
}

// clockBehind tests that IDs go on where the last ID is later than the clock, and in the next tick when one has no
// more.
func (d database) clockBehind(t *testing.T) {
	d.generator(t, tiny, 1023)
	made := d.generated(t, "firn", tiny, 1023)
	later := time.Now().Add(24 * time.Hour).Truncate(time.Second).UTC()
	d.run(t, d.floor(made, later))
	d.run(t, d.floor(made, later.Add(-time.Hour))) // changes nothing
	first, err := tiny.TickAt(later)
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range append(d.takes(t, tiny, 1023, 7), d.takes(t, tiny, 1023, 7)...) {
		want, _ := tiny.Compose(firn.Parts{Tick: first + int64(i)/4, Node: 1023, Sequence: int64(i) % 4})
		if id != want {
			t.Fatalf("the ID %d is %d, want %d", i, id, want)
		}
	}
}

// ends tests that there are no IDs beyond the layout, and none outside of its time.
func (d database) ends(t *testing.T) {
	l := tiny
	l.TimeBits = 36 - 5 // until 2094
	d.generator(t, l, 5)
	made := d.generated(t, "firn", l, 5)
	d.run(t, d.floor(made, l.Lifetime().Add(-2*time.Second)))
	ids := d.takes(t, l, 5, 8)
	if last, _ := l.Compose(firn.Parts{Tick: 1<<l.TimeBits - 1, Node: 5, Sequence: 3}); ids[7] != last {
		t.Errorf("the last ID is %d, want %d", ids[7], last)
	}
	for range 2 {
		d.refuses(t, d.insert(), "the last ")
	}
	if d.dialect != "sqlite" {
		d.refuses(t, d.floor(made, l.Lifetime()), "outside of the time")
		d.refuses(t, d.floor(made, l.Epoch.Add(-time.Second)), "outside of the time")
	}
	d.forget(t)
	for _, epoch := range []time.Time{time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(0, 0)} {
		outside := firn.Layout{Epoch: epoch, Tick: time.Second, TimeBits: 30, NodeBits: 4, SequenceBits: 2}
		d.generator(t, outside, 5)
		d.refuses(t, d.insert(), "outside of the time")
		d.forget(t)
	}
	d.generator(t, l, 5)
}

// rollsBack tests what a rollback does with the IDs of its transaction.
func (d database) rollsBack(t *testing.T) {
	d.generator(t, firn.Default, 900)
	rolledBack := "BEGIN;\n" + strings.Repeat(d.insert(), 5) + "ROLLBACK;\n"
	if d.dialect == "mysql" { // here they don't come again if they are taken before the transaction
		rolledBack = strings.Repeat("SET @id = firn_next(); SELECT @id;\n"+
			"BEGIN; INSERT INTO orders VALUES (@id, 'tea'); ROLLBACK;\n", 5)
	}
	script := strings.Repeat(rolledBack+d.insert(), 10)
	printed := numbersOf(t, d.run(t, script))
	if d.dialect != "sqlite" {
		ascending(t, printed)
	}
	ids := numbersOf(t, d.run(t, "SELECT id FROM orders ORDER BY id;\n"))
	var want []firn.ID
	for i := 5; i < len(printed); i += 6 {
		want = append(want, printed[i])
	}
	if !slices.Equal(ids, want) {
		t.Errorf("the table has %d, want %d", ids, want)
	}
}

// computes tests layouts of all kinds.
func (d database) computes(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	now := time.Now()
	tested := 0
	for _, l := range layouts(r) {
		if l.NodeIDs() == 0 || !l.Epoch.Before(now) {
			l.Epoch = time.Unix(0, r.Int64N(now.UnixNano()))
		}
		end := l.Lifetime()
		if end.After(d.end) {
			end = d.end
		}
		if end.Sub(now) < time.Hour {
			continue
		}
		tested++
		node := r.Int64N(l.NodeIDs())
		d.generator(t, l, node)
		made := d.generated(t, "firn", l, node)
		later := now.Add(time.Minute + time.Duration(r.Int64N(min(int64(end.Sub(now)-time.Minute), 1<<58)))).
			UTC().Truncate(d.finest)
		d.run(t, d.floor(made, later))
		tick, err := l.TickAt(later)
		if err != nil {
			t.Fatalf("%v in %v, seed %d: %v", later, l, seed, err)
		}
		for i, id := range d.takes(t, l, node, 3) {
			place := tick<<l.SequenceBits + int64(i)
			p, err := l.Decompose(id)
			if got := p.Tick<<l.SequenceBits + p.Sequence; err != nil || got != place {
				t.Fatalf("ID %d at %v in %v, seed %d, is %d, with the place %d, %v; want %d", i, later, l, seed, id,
					got, err, place)
			}
		}
		d.forget(t)
	}
	if tested < 10 {
		t.Errorf("only %d layouts were tested, seed %d", tested, seed)
	}
	d.generator(t, firn.Default, 1)
}

// keepsLayout tests that the same layout may be made again, with another node ID, but no other one.
func (d database) keepsLayout(t *testing.T) {
	d.generator(t, firn.Default, 900)
	before := d.takes(t, firn.Default, 900, 1)
	d.generator(t, firn.Default, 0)
	ids := d.takes(t, firn.Default, 0, 1)
	if place := func(id firn.ID) firn.ID { return id &^ (1023 << 12) }; place(ids[0]) <= place(before[0]) {
		t.Errorf("after %d and with another node ID comes %d", before[0], ids[0])
	}
	l := firn.Default
	l.Epoch = l.Epoch.AddDate(-1, 0, 0)
	other := d.generated(t, "firn", l, 0)
	if d.dialect == "postgres" {
		d.refuses(t, other, "want the same layout")
		d.takes(t, firn.Default, 0, 1)
		return
	}
	d.run(t, other)
	d.refuses(t, d.insert(), "another layout")
}

// on is what d is on a server that can be ended.
func on(t *testing.T, s *dbtest.PostgresServer) database {
	t.Helper()
	d := database{dialect: "postgres", format: sqlTime + "Z"}
	d.client = []string{
		testenv.Program(t, "psql", "postgresql-client"), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1",
		s.URL("postgres"),
	}
	return d
}

func TestGeneratorAfterACrash(t *testing.T) {
	testenv.Slow(t)
	t.Cleanup(dbtest.RemoveTemplates)
	s := dbtest.StartPostgres(t)
	d := on(t, s)
	d.generator(t, firn.Default, 900)

	// Sessions that commit each row.
	var running sync.WaitGroup
	const sessions, atLeast = 8, 20
	seen, enough := make([][]firn.ID, sessions), make(chan struct{}, sessions)
	for i := range seen {
		running.Go(func() { seen[i] = d.untilItEnds(t, strings.Repeat(d.insert(), 100_000), atLeast, enough) })
	}
	for range seen {
		<-enough
	}
	s.Kill(t)
	running.Wait()
	all := slices.Concat(seen...)
	s.Start(t)
	all = append(all, d.takes(t, firn.Default, 900, 10)...)
	distinct(t, all)

	// One that has not committed, and whose last ID the server forgets; the clock was 8 s ahead, or is 8 s behind now.
	running.Go(func() {
		seen[0] = d.untilItEnds(t, "BEGIN;\n"+d.floor("", time.Now().Add(8*time.Second))+
			strings.Repeat(d.insert(), atLeast)+"SELECT pg_sleep(600);\n", atLeast, enough)
	})
	<-enough
	s.Kill(t)
	running.Wait()
	s.Start(t)
	ascending(t, append(seen[0], d.takes(t, firn.Default, 900, 10)...))
}

// untilItEnds runs a script until the server ends, and says when it has printed enough IDs, or failed.
func (d database) untilItEnds(t *testing.T, script string, atLeast int, enough chan<- struct{}) (ids []firn.ID) {
	var once sync.Once
	say := func() { once.Do(func() { enough <- struct{}{} }) }
	defer say()
	c := exec.Command(d.client[0], d.client[1:]...)
	c.Stdin = strings.NewReader(script)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Error(err)
		return nil
	}
	if err := c.Start(); err != nil {
		t.Error(err)
		return nil
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if id, err := strconv.ParseInt(lines.Text(), 10, 64); err == nil {
			ids = append(ids, firn.ID(id))
		}
		if len(ids) == atLeast {
			say()
		}
	}
	if len(ids) < atLeast {
		t.Errorf("%d IDs before the server ended, want %d", len(ids), atLeast)
	}
	if err := c.Wait(); !errors.As(err, new(*exec.ExitError)) {
		t.Errorf("the session ends with %v, want it ended by the server", err)
	}
	return ids
}

func TestGeneratorOnAPromotedReplica(t *testing.T) {
	testenv.Slow(t)
	t.Cleanup(dbtest.RemoveTemplates)
	s := dbtest.StartPostgres(t)
	primary := on(t, s)
	primary.generator(t, firn.Default, 900)
	primary.takes(t, firn.Default, 900, 1)
	r := s.Replica(t)
	replica := on(t, r)
	r.Part(t)
	// What the replica does not get, from a clock that is 8 s ahead of its own.
	primary.run(t, primary.floor("", time.Now().Add(8*time.Second)))
	lost := primary.takes(t, firn.Default, 900, 10)
	s.Kill(t)
	r.Promote(t)
	ascending(t, append(lost, replica.takes(t, firn.Default, 900, 10)...))

	// A later floor is the operator's.
	replica.run(t, replica.floor("", time.Now().Add(time.Hour)))
	if at, _ := firn.Default.Time(replica.takes(t, firn.Default, 900, 1)[0]); time.Until(at) < 50*time.Minute {
		t.Errorf("an ID above a floor in an hour is of %v", at)
	}
}

func TestGeneratorOfPostgres(t *testing.T) {
	testenv.Slow(t)
	d := postgres(t)
	d.generator(t, firn.Default, 900)

	// A transaction that goes on keeps nobody from making IDs.
	other := fmt.Sprintf("PGOPTIONS='-c lock_timeout=5s' psql -X -q -A -t -h %s -U postgres -c 'SELECT firn_next()'",
		d.client[slices.Index(d.client, "-h")+1])
	ascending(t, numbersOf(t, d.run(t, "BEGIN;\n"+d.insert()+"\\! "+other+"\n"+d.insert()+"\\! "+other+"\nCOMMIT;\n")))

	// A role needs no rights but on the table, and can't change what the generator knows.
	const role = "SET ROLE shop; SET search_path = pg_temp;\n"
	d.run(t, "CREATE ROLE shop; GRANT INSERT, SELECT ON orders TO shop;\n")
	const fake = "CREATE TEMP SEQUENCE firn_generator_place MINVALUE 0 MAXVALUE 1;\n" +
		"CREATE TEMP SEQUENCE firn_generator_start;\n"
	ascending(t, numbersOf(t, d.run(t, d.insert()+role+fake+strings.Replace(d.insert(), "orders", "public.orders", 1))))
	d.refuses(t, role+"SELECT public.firn_floor(now() + interval '1 hour');\n", "permission denied")
	d.refuses(t, role+"SELECT setval('public.firn_generator_place', 1);\n", "permission denied")

	// Transactions of all kinds see the last ID.
	ascending(t, numbersOf(t, d.run(t, "BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT count(*) FROM orders;\n\\! "+other+
		"\n"+d.insert()+"COMMIT;\n")))
	d.refuses(t, "BEGIN READ ONLY; SELECT firn_next();\n", "read-only transaction")
}

func TestGeneratorOfMariaDB(t *testing.T) {
	testenv.Slow(t)
	d := mariadb(t)
	d.generator(t, firn.Default, 900)
	ascending(t, numbersOf(t, d.run(t, "INSERT INTO orders (item) VALUES ('tea'), ('milk') RETURNING id;\n"+
		"INSERT INTO orders (id, item) SELECT firn_next(), item FROM orders RETURNING id;\n"+
		"INSERT INTO orders VALUES (firn_next(), 'tea'), (firn_next(), 'milk') RETURNING id;\n")))
	d.expect(t, "INSERT INTO orders VALUES (7, 'of another node') RETURNING id;", "7")

	// Another server has it.
	d.run(t, "SET GLOBAL server_id = 77;\n")
	asked := time.Now()
	if at, _ := firn.Default.Time(d.takes(t, firn.Default, 900, 1)[0]); at.Sub(asked) < 9*time.Second {
		t.Errorf("the first ID on another server is of %v, asked for at %v; want it 10 s later", at, asked)
	}
	d.expect(t, "SELECT server FROM firn_generator;", "77")
}

func TestGeneratorOfSQLite(t *testing.T) {
	testenv.Slow(t)
	d := sqlite(t)
	d.generator(t, firn.Default, 900)
	first := d.takes(t, firn.Default, 900, 1)[0]
	d.refuses(t, "INSERT INTO orders (item) VALUES ('tea');\n", "a row of orders has no ID")
	d.refuses(t, "INSERT INTO orders VALUES (NULL, 'tea');\n", "a row of orders has no ID")
	d.refuses(t, "INSERT INTO orders (id, item) SELECT firn_next.id, 'tea' FROM firn_next, (VALUES (1), (2));\n",
		"UNIQUE constraint failed")

	// IDs of other nodes are theirs.
	others, _ := firn.Default.Compose(firn.Parts{Tick: 1<<40 - 1, Node: 899})
	d.expect(t, fmt.Sprintf("INSERT INTO orders VALUES (%d, 'other') RETURNING id;", others), others.String())
	own, _ := firn.Default.Compose(firn.Parts{Tick: 1 << 40, Node: 900, Sequence: 4095})
	second := d.takes(t, firn.Default, 900, 1)[0]
	ascending(t, []firn.ID{first, second, others, own})
	// But one of its own is not the next one.
	d.expect(t, fmt.Sprintf("INSERT INTO orders VALUES (%d, 'restored') RETURNING id;", own), own.String())
	if got := d.takes(t, firn.Default, 900, 1)[0]; got>>22 != 1<<40+1 || got&4095 != 0 {
		t.Errorf("after the last ID of a tick comes %d", got)
	}

	// A program that asks for the ID afterwards gets it.
	printed := numbersOf(t, d.run(t, "INSERT INTO orders VALUES ((SELECT id FROM firn_next), 'tea');\n"+
		"SELECT last_insert_rowid();\nSELECT max(id) FROM orders;\n"))
	if printed[0] != printed[1] {
		t.Errorf("last_insert_rowid is %d, want %d", printed[0], printed[1])
	}
}
