package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/test/testenv"
)

// partitions are the blocks of SQL below a heading of the page on databases.
func partitions(t *testing.T, heading string, want int) (blocks []string, section string) {
	t.Helper()
	page, err := os.ReadFile("../../../docs/databases.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ = strings.Cut(string(page), "\n### "+heading+"\n")
	section = regexp.MustCompile("\n###? ").Split(section, 2)[0]
	for _, m := range regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(section, -1) {
		blocks = append(blocks, m[1])
	}
	if len(blocks) != want {
		t.Fatalf("below %q there are %d blocks of SQL, want %d", heading, len(blocks), want)
	}
	return blocks, section
}

// partitioned is a database with the functions of the default layout, and with settings for later sessions.
func partitioned(t *testing.T, d database, settings string) database {
	t.Helper()
	d.run(t, d.made(t, "firn", firn.Default)+settings)
	return d
}

// partitionedPostgres is one whose time zone must not matter.
func partitionedPostgres(t *testing.T) database {
	t.Helper()
	return partitioned(t, postgres(t),
		"ALTER DATABASE postgres SET TimeZone = 'Asia/Kathmandu'; ALTER DATABASE postgres SET client_min_messages = "+
			"warning;")
}

func (d database) expect(t *testing.T, script, want string) {
	t.Helper()
	if got := strings.TrimSpace(d.run(t, script)); got != want {
		t.Errorf("%s\nprints\n%s\nwant\n%s", script, got, want)
	}
}

func (d database) refuses(t *testing.T, script, why string) {
	t.Helper()
	c := exec.Command(d.client[0], d.client[1:]...)
	c.Stdin = strings.NewReader(script)
	if out, err := c.CombinedOutput(); err == nil || !strings.Contains(string(out), why) {
		t.Errorf("%s\nprints, %v,\n%s\nwant %q", script, err, out, why)
	}
}

// reads tests that a plan has the partitions that a comment behind the statement names, and no other ones.
func (d database) reads(t *testing.T, explain string) (plan string) {
	t.Helper()
	plan = d.run(t, explain)
	partition := regexp.MustCompile(`\b(orders_|p)20\d\d_\d\d`)
	_, comment, _ := strings.Cut(explain, "-- reads ")
	got, want := partition.FindAllString(plan, -1), partition.FindAllString(comment, -1)
	slices.Sort(got)
	if got = slices.Compact(got); !slices.Equal(got, want) || len(want) == 0 {
		t.Errorf("%s\nreads %q, want %q:\n%s", explain, got, want, plan)
	}
	return plan
}

// bounds is a statement that inserts the first and the last ID of each month.
func bounds(t *testing.T, months ...time.Month) string {
	t.Helper()
	var rows []string
	for _, month := range months {
		first, err := firn.Default.First(time.Date(2026, month, 1, 0, 0, 0, 0, time.UTC))
		if err != nil {
			t.Fatal(err)
		}
		last, err := firn.Default.Last(time.Date(2026, month+1, 1, 0, 0, 0, -1, time.UTC))
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, fmt.Sprintf("(%d, 'first'), (%d, 'last')", first, last))
	}
	return "INSERT INTO orders VALUES " + strings.Join(rows, ", ") + ";\n"
}

func TestPartitionsWithPostgres(t *testing.T) {
	testenv.Slow(t)
	page, _ := partitions(t, "PostgreSQL", 4)
	create, explain, ahead, drop := page[0], page[1], page[2], page[3]
	d := partitionedPostgres(t)
	const count = "SELECT tableoid::regclass, count(*) FROM orders WHERE item <> 'ahead' GROUP BY 1 ORDER BY 1;"

	d.run(t, create+bounds(t, time.October, time.November, time.December))
	d.expect(t, count, "orders_2026_10\t2\norders_2026_11\t2\norders_2026_12\t2")
	if plan := d.reads(t, explain); strings.Contains(plan, "Subplans Removed") {
		t.Errorf("the other partitions are planned for:\n%s", plan)
	}
	for _, later := range []string{
		"EXPLAIN SELECT * FROM orders WHERE id <= firn_first(greatest(now() - interval '200 years', '2026-10-01Z')); " +
			"-- reads orders_2026_10",
		"SET plan_cache_mode = force_generic_plan; PREPARE q AS SELECT * FROM orders WHERE id BETWEEN firn_first($1) " +
			"AND firn_last($1);" +
			"EXPLAIN EXECUTE q('2026-11-30T23:59:59.999Z'); -- reads orders_2026_11",
	} {
		if plan := d.reads(t, later); !strings.Contains(plan, "Subplans Removed: 2") {
			t.Errorf("the other partitions are not left out when the query starts:\n%s", plan)
		}
	}

	d.refuses(t, "INSERT INTO orders VALUES (firn_first('2090-06-15Z'), 'too early');", "no partition")
	d.run(t, "BEGIN;\n"+ahead+ahead+`INSERT INTO orders
		SELECT firn_first((now() AT TIME ZONE 'UTC' + m * interval '1 month') AT TIME ZONE 'UTC'), 'ahead'
		FROM generate_series(0, 3) AS m; COMMIT;`)
	d.expect(t, "SELECT count(*) FROM orders WHERE tableoid::regclass::text <> 'orders_' || to_char(firn_time(id) AT "+
		"TIME ZONE 'UTC', 'YYYY_MM');", "0")

	d.run(t, drop)
	d.expect(t, count, "orders_2026_11\t2\norders_2026_12\t2")

	d.run(t, "CREATE TABLE orders_default PARTITION OF orders DEFAULT; INSERT INTO orders VALUES "+
		"(firn_first('2090-06-15Z'), 'default');")
	d.refuses(t,
		"CREATE TABLE orders_2090_06 PARTITION OF orders FOR VALUES FROM (firn_first('2090-06-01Z')) TO "+
			"(firn_first('2090-07-01Z'));",
		"would be violated")
	d.refuses(t, "ALTER TABLE orders DETACH PARTITION orders_2026_11 CONCURRENTLY;", "default partition exists")
}

func TestPartitionsWithPartman(t *testing.T) {
	testenv.Slow(t)
	page, section := partitions(t, "pg_partman", 2)
	create, maintain := page[0], page[1]
	d := partitionedPostgres(t)
	if d.run(t, "SELECT name FROM pg_available_extensions WHERE name = 'pg_partman';") == "" {
		testenv.Missing(t, "pg_partman", "postgresql-15-partman")
	}
	const weeks = `SELECT min(at) || ' to ' || max(at) || ': ' || count(at) FROM (
		SELECT to_char(firn_time(substring(inhrelid::regclass::text, '_p(\d+)$')::bigint) AT TIME ZONE 'UTC',
			'YYYY-MM-DD HH24:MI:SS.US') AS at
		FROM pg_inherits WHERE inhparent = 'events'::regclass) AS partitions;`

	d.run(t, create)
	d.expect(t, weeks, "2026-11-26 00:00:00.000000 to 2027-01-21 00:00:00.000000: 9")
	d.run(t, "INSERT INTO events VALUES (firn_first('2026-12-31Z'), 'first'), (firn_last('2027-01-06T23:59:59.999Z'), "+
		"'last');"+maintain)
	d.expect(t, weeks, "2026-11-26 00:00:00.000000 to 2027-02-25 00:00:00.000000: 14")
	d.expect(t, "SELECT DISTINCT tableoid::regclass::text = 'events_p' || firn_first('2026-12-31Z') FROM events;", "t")

	// Nothing has been inserted for 13 weeks.
	d.run(t, "INSERT INTO events VALUES (firn_last('2027-04-07T23:59:59.999Z'), 'late');")
	d.expect(t, "SELECT item FROM events_default;", "late")
	d.refuses(t, maintain, "would be violated")
	d.run(t, regexp.MustCompile("`(CALL [^`]*)`").FindStringSubmatch(section)[1]+";\n"+maintain)
	d.expect(t, "SELECT count(*) FROM events_default;", "0")
	d.expect(t, weeks, "2026-12-31 00:00:00.000000 to 2027-05-27 00:00:00.000000: 18")
	d.expect(t, "SELECT count(*) FROM pg_class WHERE relname = 'events_p' || firn_first('2026-11-26Z');", "0")
	d.expect(t, "SELECT string_agg(item, ' ' ORDER BY id) FROM events;", "first last late")
}

func TestPartitionsWithMariaDB(t *testing.T) {
	testenv.Slow(t)
	page, _ := partitions(t, "MySQL and MariaDB", 3)
	create, next, explain := page[0], page[1], page[2]
	d := partitioned(t, mariadb(t), "")

	d.run(t, create+bounds(t, time.October, time.November, time.December))
	for _, partition := range []string{"p2026_10", "p2026_11", "p2026_12"} {
		d.expect(t, "SELECT item FROM orders PARTITION ("+partition+") ORDER BY id;", "first\nlast")
	}
	d.refuses(t, "INSERT INTO orders VALUES (firn_first('2027-01-01'), 'too early');", "no partition")
	d.reads(t, "EXPLAIN PARTITIONS SELECT * FROM orders WHERE id <= firn_first(utc_timestamp() - INTERVAL 200 YEAR); "+
		"-- reads p2026_10")
	d.run(t, next+
		"INSERT INTO orders VALUES (firn_first('2027-01-01'), 'first'), (firn_last('2027-01-31 23:59:59.999'), "+
		"'last');")
	d.expect(t, "SELECT DISTINCT partition_name FROM information_schema.partitions WHERE table_name = 'orders' "+
		"ORDER BY 1;", "p2026_11\np2026_12\np2027_01")
	d.expect(t, "SELECT count(*) FROM orders;", "6")
	d.reads(t, explain)

	d.refuses(t,
		"CREATE TABLE x (id BIGINT PRIMARY KEY) PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN "+
			"(firn_first('2026-11-01')));", "not allowed")
	d.refuses(t,
		"CREATE TABLE x (id BIGINT PRIMARY KEY) PARTITION BY RANGE (id) (PARTITION p VALUES LESS THAN (1 << 40));",
		"not allowed")
	d.refuses(t, "CREATE TABLE x (id BIGINT PRIMARY KEY, of BIGINT, FOREIGN KEY (of) REFERENCES orders (id));",
		"Foreign key")
}
