package deploy

import (
	"fmt"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn"
)

// SQL are functions of a database for the IDs of one layout: what an ID says, and which IDs a time has. SQLite has no
// stored functions; there it is a view of a table, and expressions to copy.
type SQL struct {
	Dialect string // one of Dialects
	Name    string // what the names of the functions, or of the view and its columns, begin with
	Layout  firn.Layout

	Table, Column string // for SQLite alone: where the IDs are
}

// Dialects are the kinds of SQL. MariaDB gets what MySQL gets.
var Dialects = []string{"postgres", "mysql", "mariadb", "sqlite"}

// NewSQL is for the default layout, and no dialect yet.
func NewSQL() SQL { return SQL{Name: "firn", Layout: firn.Default, Column: "id"} }

var (
	functionName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,39}$`)
	columnName   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)
	keywords     = []string{"current", "utc"} // before _time they are words of SQL
)

// Text is the SQL.
func (s SQL) Text(o Origin) (string, error) {
	var c checks
	s.check(&c, s.Dialect == "sqlite")
	if c.err != nil {
		return "", c.err
	}
	n := s.numbers()
	return c.text(o, n.Dialect+".sql", n)
}

// check refuses what is not right. With tables, the SQL is for one table.
func (s SQL) check(c *checks, tables bool) {
	c.that(slices.Contains(Dialects, s.Dialect), "dialect", "%.40q is not a dialect; want one of %s", s.Dialect,
		strings.Join(Dialects, ", "))
	c.that(functionName.MatchString(s.Name) && !slices.Contains(keywords, s.Name), "name",
		"%.40q can't begin the name of a function; want up to 40 of a-z, 0-9 and _, such as firn", s.Name)
	if tables {
		c.that(columnName.MatchString(s.Table), "table",
			"%.80q is not a table; want the one with the IDs, such as orders", s.Table)
		c.that(columnName.MatchString(s.Column), "column",
			"%.80q is not a column; want the one with the IDs, such as id", s.Column)
	} else {
		c.that(s.Table == "", "table", "%.80q: only SQLite needs a table; %s has functions for all tables",
			s.Table, s.Dialect)
		c.that(s.Column == "id", "column", "%.80q: only SQLite needs a column; %s has functions for all columns",
			s.Column, s.Dialect)
	}
	err := s.Layout.Validate()
	c.that(err == nil, "layout", "%w", err)
}

// sqlNumbers are the numbers of a layout that the templates fill in. All are whole and below 2^63, and so are those
// that a database comes by when it uses them. Times are Unix time in microseconds: no database that we write for has
// finer ones.
type sqlNumbers struct {
	SQL
	Fields []sqlField

	Shift int      // how many bits lie below the time
	Low   firn.ID  // the greatest number of these bits
	Max   firn.ID  // the greatest ID
	Timed firn.ID  // the greatest ID with a time that the database can express
	First int64    // the first microsecond in the layout's lifetime
	Last  int64    // the last one there that the database can express; before First if there is none
	div   string   // how the database divides whole numbers
	epoch [2]int64 // of the layout: whole microseconds, and nanoseconds beyond
}

// sqlField is a number in an ID.
type sqlField struct {
	Name, About string
	Shift       int
	Mask        int64
}

func (s SQL) numbers() sqlNumbers {
	l := s.Layout
	nodeBits := l.DatacenterBits + l.NodeBits
	nodeAt, sequenceAt := l.SequenceBits, 0
	if l.NodeLowest {
		nodeAt, sequenceAt = 0, nodeBits
	}
	most := func(bits int) int64 { return 1<<bits - 1 }
	if s.Dialect == "mariadb" {
		s.Dialect = "mysql"
	}
	n := sqlNumbers{SQL: s, div: "/", Shift: nodeBits + l.SequenceBits}
	if s.Dialect == "mysql" {
		n.div = "DIV"
	}
	n.Fields = []sqlField{{"node_id", "The node ID", nodeAt, most(nodeBits)}}
	if l.DatacenterBits > 0 {
		n.Fields = append(n.Fields,
			sqlField{"datacenter", "The upper part of the node ID", nodeAt + l.NodeBits, most(l.DatacenterBits)},
			sqlField{"node", "The lower part of the node ID", nodeAt, most(l.NodeBits)})
	}
	n.Fields = append(n.Fields, sqlField{"sequence", "The sequence", sequenceAt, most(l.SequenceBits)})

	// In a time of the database: PostgreSQL's end in the year 294276, but a bigint of microseconds 29 years before.
	end := big.NewInt(math.MaxInt64)
	if s.Dialect != "postgres" {
		end.SetInt64(time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC).UnixMicro())
	}
	thousand := big.NewInt(1000)
	epoch := new(big.Int).
		Add(new(big.Int).Mul(big.NewInt(l.Epoch.Unix()), big.NewInt(1e9)), big.NewInt(int64(l.Epoch.Nanosecond())))
	n.epoch = [2]int64{epoch.Int64() / 1000, epoch.Int64() % 1000}
	n.First = n.epoch[0]
	if n.epoch[1] > 0 {
		n.First++
	}
	// The first nanosecond after the lifetime, and the last microsecond before it.
	after := new(big.Int).Lsh(big.NewInt(l.Tick.Nanoseconds()), uint(l.TimeBits))
	after.Add(after, epoch)
	last := after.Div(after.Sub(after, big.NewInt(1)), thousand)
	if last.Cmp(end) > 0 {
		last = end
	}
	n.Last = last.Int64()
	// The greatest tick that begins before the database's next microsecond.
	tick := new(big.Int).Mul(new(big.Int).Add(end, big.NewInt(1)), thousand)
	tick.Sub(tick, big.NewInt(1)).Sub(tick, epoch).Div(tick, big.NewInt(l.Tick.Nanoseconds()))
	n.Low = firn.ID(most(n.Shift))
	n.Max = firn.ID(most(n.Shift + l.TimeBits))
	n.Timed = n.Max
	if greatest := big.NewInt(most(l.TimeBits)); tick.Cmp(greatest) < 0 {
		n.Timed = firn.ID(tick.Int64())<<n.Shift | n.Low
	}
	return n
}

// Micros is the expression for the time of an ID, rounded down, where the ID is at most Timed.
func (n sqlNumbers) Micros(id string) string {
	return n.TickMicros(fmt.Sprintf("(%s >> %d)", id, n.Shift))
}

// TickMicros is the expression for the time at which a tick begins, rounded down.
func (n sqlNumbers) TickMicros(tick string) string {
	each := n.Layout.Tick.Nanoseconds()
	if each%1000 == 0 {
		return fmt.Sprintf("(%s * %d + %d)", tick, each/1000, n.epoch[0])
	}
	// A thousand ticks at a time are whole microseconds; the rest can't overflow.
	return fmt.Sprintf("(%[1]s %[2]s 1000 * %[3]d + (%[1]s %% 1000 * %[3]d + %[4]d) %[2]s 1000 + %[5]d)", tick, n.div,
		each, n.epoch[1], n.epoch[0])
}

// FirstID is the expression for the smallest ID of a time from First to Last.
func (n sqlNumbers) FirstID(micros string) string { return n.tick(micros, n.Shift) }

// tick is the expression for the tick of a time from First to Last, above some bits.
func (n sqlNumbers) tick(micros string, shift int) string {
	since, each := fmt.Sprintf("(%s - %d)", micros, n.First), n.Layout.Tick.Nanoseconds()
	if each%1000 == 0 {
		return fmt.Sprintf("(%s %s %d << %d)", since, n.div, each/1000, shift)
	}
	return fmt.Sprintf("(%[1]s %[2]s %[3]d * 1000 + (%[1]s %% %[3]d * 1000 + %[4]d) %[2]s %[3]d << %[5]d)",
		since, n.div, each, n.First*1000-n.epoch[0]*1000-n.epoch[1], shift)
}

// Fraction are the digits of a second that a text of the time has: 3, or 6 where milliseconds are too coarse.
func (n sqlNumbers) Fraction() (digits int) {
	if n.Layout.Tick%time.Millisecond == 0 && n.Layout.Epoch.Nanosecond()%1e6 == 0 {
		return 3
	}
	return 6
}
