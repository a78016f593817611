package deploy

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/test/dbtest"
	"github.com/firn-id/firn/internal/test/testenv"
)

// database runs SQL. It prints each row as a line, with tabs between the columns, and NULL as a word.
type database struct {
	dialect string
	client  []string      // a command that reads SQL
	end     time.Time     // after every time that it can express
	finest  time.Duration // of times that it can be asked about
	format  string        // of these
	hostile string        // settings of a session that must not matter
}

const sqlTime = "2006-01-02 15:04:05.000000"

var year10000 = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)

// databases tests those that are installed.
func databases(t *testing.T, test func(*testing.T, database)) {
	t.Run("postgres", func(t *testing.T) { test(t, postgres(t)) })
	t.Run("mysql", func(t *testing.T) { test(t, mariadb(t)) })
	t.Run("sqlite", func(t *testing.T) { test(t, sqlite(t)) })
}

func postgres(t *testing.T) database {
	return database{
		"postgres",
		[]string{
			"psql", "-X", "-q", "-h", dbtest.Postgres(t), "-U", "postgres", "-v", "ON_ERROR_STOP=1", "-A", "-t",
			"-F", "\t", "-P", "null=NULL",
		},
		time.UnixMicro(math.MaxInt64), time.Microsecond, sqlTime + "Z",
		"SET TimeZone = 'Asia/Kathmandu'; SET DateStyle = 'SQL, DMY'; SET search_path = '';\n",
	}
}

func mariadb(t *testing.T) database {
	return database{
		"mysql",
		[]string{"mariadb", "--no-defaults", "--socket=" + dbtest.MariaDB(t), "-u", "root", "-N", "-B", "test"},
		year10000, time.Microsecond, sqlTime, "SET time_zone = '-05:30', sql_mode = 'ANSI,TRADITIONAL';\n",
	}
}

func sqlite(t *testing.T) database {
	program := testenv.Program(t, "sqlite3", "sqlite3")
	return database{
		"sqlite",
		[]string{
			program, "-batch", "-bail", "-init", "/dev/null", "-list", "-separator", "\t", "-nullvalue", "NULL",
			filepath.Join(t.TempDir(), "test.db"),
		},
		year10000, time.Millisecond, strings.TrimSuffix(sqlTime, "000"), "",
	}
}

// run returns what a script prints.
func (d database) run(t *testing.T, script string) string {
	t.Helper()
	c := exec.Command(d.client[0], d.client[1:]...)
	c.Stdin = strings.NewReader(script)
	var failed strings.Builder
	c.Stderr = &failed
	out, err := c.Output()
	if err != nil || failed.Len() > 0 {
		t.Fatalf("%s: %v\n%s", d.dialect, err, failed.String())
	}
	return string(out)
}

// made is what firn gen sql prints, for a table ids.
func (d database) made(t *testing.T, name string, l firn.Layout) string {
	t.Helper()
	s := NewSQL()
	s.Dialect, s.Name, s.Layout = d.dialect, name, l
	if d.dialect == "sqlite" {
		s.Table = "ids"
	}
	text, err := s.Text(origin)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// decode are statements that show what IDs say.
func (d database) decode(name string, l firn.Layout, ids []string) string {
	fields := []string{"time", "node_id", "sequence"}
	if l.DatacenterBits > 0 {
		fields = []string{"time", "node_id", "datacenter", "node", "sequence"}
	}
	if d.dialect == "sqlite" {
		return fmt.Sprintf("DELETE FROM ids; INSERT INTO ids VALUES (%s);\nSELECT %s_%s FROM %s_ids ORDER BY rowid;\n",
			strings.Join(ids, "), ("), name, strings.Join(fields, ", "+name+"_"), name)
	}
	var script strings.Builder
	for _, id := range ids {
		comma := "SELECT "
		for _, f := range fields {
			script.WriteString(comma)
			comma = ", "
			switch {
			case d.dialect == "mysql":
				fmt.Fprintf(&script, "%s_%s(%s)", name, f, id)
			case f == "time":
				fmt.Fprintf(&script, "to_char(public.%s_time(%s) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')",
					name, quoted(id))
			default:
				fmt.Fprintf(&script, "public.%s_%s(%s)", name, f, quoted(id))
			}
		}
		script.WriteString(";\n")
	}
	return script.String()
}

// bounds is a statement that asks for the smallest and the greatest ID of a time.
func (d database) bounds(made, name, at string) string {
	switch d.dialect {
	case "postgres":
		return fmt.Sprintf("SELECT public.%[1]s_first(%[2]s), public.%[1]s_last(%[2]s);\n", name, quoted(at))
	case "mysql":
		return fmt.Sprintf("SELECT %[1]s_first(%[2]s), %[1]s_last(%[2]s);\n", name, quoted(at))
	}
	smallest, greatest := expressions(made, quoted(at), quoted(at))
	return "SELECT " + smallest + ", " + greatest + ";\n"
}

var commented = regexp.MustCompile(`(?s)-- smallest:\n(.*)-- greatest:\n(.*?)\n\n`)

// expressions are those for SQLite that are to be copied, with times in the place of their parameters.
func expressions(made, from, to string) (smallest, greatest string) {
	m := commented.FindStringSubmatch(made)
	r := strings.NewReplacer("--", "", ":from", from, ":to", to)
	return r.Replace(m[1]), r.Replace(m[2])
}

func quoted(text string) string {
	if text == "NULL" {
		return text
	}
	return "'" + text + "'"
}

// decoded is what a database is to print for an ID.
func (d database) decoded(l firn.Layout, text string) string {
	columns := make([]string, 3, 5)
	if l.DatacenterBits > 0 {
		columns = columns[:5]
	}
	for i := range columns {
		columns[i] = "NULL"
	}
	number, err := strconv.ParseInt(text, 10, 64)
	id := firn.ID(number)
	if p, wrong := l.Decompose(id); err == nil && wrong == nil {
		if at := l.TickStart(p.Tick); at.Before(d.end) {
			columns[0] = at.Format(sqlTime)
			if d.dialect == "sqlite" && l.Tick%time.Millisecond == 0 && l.Epoch.Nanosecond()%1e6 == 0 {
				columns[0] = at.Format(d.format)
			}
		}
		node, _ := l.NodeID(id)
		columns[1] = fmt.Sprint(node)
		if l.DatacenterBits > 0 {
			columns[2], columns[3] = fmt.Sprint(p.Datacenter), fmt.Sprint(p.Node)
		}
		columns[len(columns)-1] = fmt.Sprint(p.Sequence)
	}
	return strings.Join(columns, "\t")
}

// bounded is what a database is to print for a time.
func bounded(l firn.Layout, at time.Time) string {
	if at.Before(l.Epoch) {
		return "0\tNULL"
	}
	first, err := l.First(at)
	if err != nil { // after the lifetime
		last, _ := l.Last(l.TickStart(1<<l.TimeBits - 1))
		return "NULL\t" + last.String()
	}
	last, _ := l.Last(at)
	return first.String() + "\t" + last.String()
}

// layouts are of all kinds.
func layouts(r *rand.Rand) (all []firn.Layout) {
	for _, p := range firn.Presets() {
		all = append(all, p.Layout)
	}
	latest := time.Unix(0, math.MaxInt64)
	all = append(all,
		firn.Layout{Epoch: time.Unix(0, 0), Tick: time.Nanosecond, TimeBits: 62},
		firn.Layout{Epoch: time.Unix(0, 1), Tick: time.Nanosecond, TimeBits: 1}, // less than a microsecond
		firn.Layout{Epoch: time.Unix(0, 999), Tick: 999, TimeBits: 62, SequenceBits: 1},
		// longer than any database can tell
		firn.Layout{Epoch: time.Unix(0, 1), Tick: time.Second, TimeBits: 62, NodeBits: 1},
		firn.Layout{Epoch: latest, Tick: time.Second, TimeBits: 62, DatacenterBits: 1},
		firn.Layout{Epoch: latest, Tick: 1500, TimeBits: 1, NodeBits: 30, SequenceBits: 32, NodeLowest: true},
		firn.Layout{Epoch: time.Unix(7, 0), Tick: time.Millisecond, TimeBits: 1, DatacenterBits: 62},
		firn.Layout{Epoch: time.Unix(7, 0), Tick: time.Millisecond, TimeBits: 1, SequenceBits: 62},
	)
	units := []int64{1, 1000, 1e6, 1e9}
	for range 60 {
		l := firn.Layout{TimeBits: 1 + r.IntN(62), NodeLowest: r.IntN(3) == 0}
		left := 63 - l.TimeBits
		for _, bits := range []*int{&l.DatacenterBits, &l.NodeBits, &l.SequenceBits} {
			*bits = r.IntN(left + 1)
			left -= *bits
		}
		unit := units[r.IntN(len(units))]
		l.Tick = time.Duration((1 + r.Int64N(1e9/unit)) * unit)
		unit = units[r.IntN(len(units))]
		l.Epoch = time.Unix(0, r.Int64()/unit*unit)
		all = append(all, l)
	}
	return all
}

func TestDatabases(t *testing.T) {
	testenv.Slow(t)
	databases(t, func(t *testing.T, d database) {
		t.Run("agree with the library", d.agrees)
		t.Run("index what IDs say", d.indexes)
	})
}

// agrees tests that what the database says about an ID or a time is what the library says.
func (d database) agrees(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	var create, ask strings.Builder
	if d.dialect == "sqlite" {
		create.WriteString("CREATE TABLE ids (id INTEGER);\n")
	}
	var about, want []string
	for i, l := range layouts(r) {
		name := fmt.Sprint("f", i)
		made := d.made(t, name, l)
		create.WriteString(made)
		expect := func(subject, row string) {
			about, want = append(about, fmt.Sprintf("%s in %v, seed %d", subject, l, seed)), append(want, row)
		}

		greatest := int64(math.MaxInt64) >> (63 - l.TimeBits - l.DatacenterBits - l.NodeBits - l.SequenceBits)
		ids := []string{"NULL"}
		for _, id := range []int64{
			0, 1, -1, math.MinInt64, math.MaxInt64, greatest, greatest - 1, greatest/2 + 1,
			max(greatest, greatest+1),
		} {
			ids = append(ids, fmt.Sprint(id))
		}
		// from the next one on the database has no name for the time
		if last, err := l.Last(d.end.Add(-1)); err == nil {
			ids = append(ids, last.String(), fmt.Sprint(max(last, last+1)))
		}
		for range 15 {
			ids = append(ids, fmt.Sprint(r.Int64()>>r.IntN(63)), fmt.Sprint(r.Int64()&greatest))
		}
		if d.dialect == "sqlite" { // where a column takes anything
			ids = append(ids, "'abc'", "1.5", "x'00'")
		}
		ask.WriteString(d.decode(name, l, ids))
		for _, id := range ids {
			expect(id, d.decoded(l, id))
		}

		end := l.Lifetime()
		if end.After(d.end) {
			end = d.end
		}
		times := []time.Time{time.Unix(0, 0), time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC), d.end.Add(-1)}
		for near := -2 * d.finest; near <= 2*d.finest; near += d.finest {
			times = append(times, l.Epoch.Add(near), end.Add(near))
		}
		for range 15 {
			times = append(times,
				time.Unix(l.Epoch.Unix()+r.Int64N(end.Unix()-l.Epoch.Unix()+1), r.Int64N(1e9)),
				l.Epoch.Add(time.Duration(r.Int64())>>r.IntN(63)))
		}
		ask.WriteString(d.bounds(made, name, "NULL"))
		expect("NULL", "NULL\tNULL")
		for _, at := range times {
			if at = at.UTC().Truncate(d.finest); at.Before(d.end) {
				text := at.Format(d.format)
				ask.WriteString(d.bounds(made, name, text))
				expect(text, bounded(l, at))
			}
		}
	}
	d.run(t, create.String())
	got := strings.Split(strings.TrimSuffix(d.run(t, d.hostile+ask.String()), "\n"), "\n")
	if len(got) != len(want) {
		t.Fatalf("%d rows, want %d", len(got), len(want))
	}
	failed := 0
	for i := range want {
		if got[i] != want[i] {
			if failed++; failed <= 20 {
				t.Errorf("%s: %q, want %q", about[i], got[i], want[i])
			}
		}
	}
	t.Logf("%d rows, %d wrong", len(got), failed)
}

// indexes tests that a range of time is a range of the primary key, and that what an ID says can be in an index.
func (d database) indexes(t *testing.T) {
	made := d.made(t, "firn", firn.Default)
	again := made + d.made(t, "_", firn.Default) + d.made(t, strings.Repeat("a", 40), firn.Default)
	var ids []string
	for i := range 3000 {
		id, _ := firn.Default.First(firn.Default.Epoch.Add(time.Duration(i) * time.Hour))
		ids = append(ids, id.String())
	}
	create := "CREATE TABLE ids (id BIGINT NOT NULL PRIMARY KEY);\n"
	if d.dialect == "sqlite" {
		create = "DROP TABLE IF EXISTS ids; " + strings.Replace(create, "BIGINT", "INTEGER", 1)
	}
	d.run(t, create+made+again+"INSERT INTO ids VALUES ("+strings.Join(ids, "), (")+");\n")

	var explain, plan, index string
	const count = "SELECT count(*) FROM ids WHERE id BETWEEN "
	switch d.dialect {
	case "postgres":
		explain, plan = "ANALYZE ids; EXPLAIN "+count+"firn_first('2026-02-01Z') AND firn_last('2026-02-01 03:00Z')",
			"Index Cond"
		index = "CREATE INDEX ON ids (firn_time(id)); ANALYZE ids; EXPLAIN SELECT * FROM ids WHERE firn_time(id) = " +
			"'2026-02-01Z'"
	case "mysql":
		explain, plan = "EXPLAIN "+count+"firn_first('2026-02-01') AND firn_last('2026-02-01 03:00')", "\trange\t"
		expression := regexp.MustCompile(`(?s)firn_time\(id BIGINT\).*?RETURN (.*?);`).FindStringSubmatch(made)[1]
		index = "ALTER TABLE ids ADD at DATETIME(6) AS (" + expression + ") PERSISTENT, ADD INDEX (at);" +
			"EXPLAIN SELECT * FROM ids WHERE at BETWEEN '2026-02-01' AND '2026-02-01 03:00'"
	case "sqlite":
		smallest, greatest := expressions(made, "'2026-02-01'", "'2026-02-01 03:00'")
		explain = "EXPLAIN QUERY PLAN " + count + smallest + " AND " + greatest
		plan = "SEARCH ids USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"
		expression := regexp.MustCompile(`(?s)made\.\n(.*) AS firn_time`).FindStringSubmatch(made)[1]
		index = "CREATE INDEX at ON ids (" + expression +
			"); EXPLAIN QUERY PLAN SELECT * FROM firn_ids WHERE firn_time = '2026-02-01 00:00:00.000'"
	}
	if got := d.run(t, explain+";\n"); !strings.Contains(got, plan) {
		t.Errorf("a range of time is not one of the primary key:\n%s", got)
	}
	query := explain[strings.Index(explain, count):]
	if got := d.run(t, query+";\n"); got != "4\n" {
		t.Errorf("%s rows are of four hours", got)
	}
	if got := d.run(t, index+";\n"); !strings.Contains(got, "Index Cond") && !strings.Contains(got, "\tat\t") &&
		!strings.Contains(got, " INDEX at ") {
		t.Errorf("the time can't be found by an index:\n%s", got)
	}
}

// SQLite's dates are made of doubles; every millisecond is exact nevertheless, and what is finer is that of the
// nearest.
func TestSQLiteReadsEveryMillisecond(t *testing.T) {
	d := sqlite(t)
	made := d.made(t, "firn", firn.Default)
	script, want := "", ""
	at := time.Date(2026, 12, 31, 23, 59, 59, 0, time.UTC)
	for range 1000 {
		script += d.bounds(made, "firn", at.Format(d.format))
		want += bounded(firn.Default, at) + "\n"
		for _, finer := range []time.Duration{400 * time.Microsecond, 600 * time.Microsecond, 999 * time.Microsecond} {
			script += d.bounds(made, "firn", at.Add(finer).Format(sqlTime))
			want += bounded(firn.Default, at.Add(finer).Round(time.Millisecond)) + "\n"
		}
		at = at.Add(time.Millisecond)
	}
	if got := d.run(t, script); got != want {
		t.Errorf("SQLite reads a millisecond as another one:\n%s", got)
	}
}
