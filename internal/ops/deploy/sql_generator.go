package deploy

import (
	"fmt"

	"github.com/firn-id/firn"
)

// SQLGenerator are a table and functions that make IDs in a database, of a node ID that nobody else has. SQLite has no
// stored functions; there they are a view and triggers.
//
// What the database keeps is the place that was reached: the tick and the sequence, without the node ID between them.
// The next place is the next number, or the first of the present tick if that is greater. So a place comes once,
// whatever the clock does, and goes on in the next tick when a tick has no more.
type SQLGenerator struct {
	SQL  // MySQL and MariaDB may have a table, SQLite must
	Node int64
}

// NewSQLGenerator is for the default layout; no dialect and no node ID are chosen yet.
func NewSQLGenerator() SQLGenerator { return SQLGenerator{SQL: NewSQL(), Node: -1} }

// Text is the SQL.
func (g SQLGenerator) Text(o Origin) (string, error) {
	var c checks
	g.check(&c, g.Dialect == "sqlite" || g.Table != "" && g.Dialect != "postgres")
	if c.err == nil { // or else nobody knows how many node IDs there are
		nodes := g.Layout.NodeIDs()
		c.that(g.Node != -1, "node", "there is none; want a node ID that nobody else uses, from 0 to %d", nodes-1)
		c.that(0 <= g.Node && g.Node < nodes, "node", "the layout %v has node IDs 0 to %d, not %d", g.Layout, nodes-1,
			g.Node)
	}
	if c.err != nil {
		return "", c.err
	}
	n := sqlGenerator{sqlNumbers: g.numbers(), Node: g.Node}
	return c.text(o, n.Dialect+"_generator.sql", n)
}

// sqlGenerator are the numbers and expressions that the templates fill in.
type sqlGenerator struct {
	sqlNumbers
	Node int64
}

// Ahead is how many microseconds after the clock IDs begin on a server that may not know them all: as much as clocks
// of two servers may differ.
func (n sqlGenerator) Ahead() int64 { return 10_000_000 }

// LastPlace is the greatest place.
func (n sqlGenerator) LastPlace() int64 { return int64(n.Max >> n.nodeBits()) }

// Place is the expression for the first place of a time from First to Last.
func (n sqlGenerator) Place(micros string) string { return n.tick(micros, n.Layout.SequenceBits) }

// ID is the expression for the ID of a place.
func (n sqlGenerator) ID(place string) string {
	if n.Layout.NodeLowest {
		return fmt.Sprintf("((%s << %d) | %d)", place, n.nodeBits(), n.Node)
	}
	bits := n.Layout.SequenceBits
	return fmt.Sprintf("(((%[1]s >> %[2]d) << %[3]d) | %[4]d | (%[1]s & %[5]d))", place, bits, n.Shift,
		firn.ID(n.Node)<<bits, int64(1)<<bits-1)
}

// PlaceOf is the expression for the place of an ID.
func (n sqlGenerator) PlaceOf(id string) string {
	if n.Layout.NodeLowest {
		return fmt.Sprintf("(%s >> %d)", id, n.nodeBits())
	}
	bits := n.Layout.SequenceBits
	return fmt.Sprintf("(((%[1]s >> %[2]d) << %[3]d) | (%[1]s & %[4]d))", id, n.Shift, bits, int64(1)<<bits-1)
}

func (n sqlGenerator) nodeBits() int { return n.Shift - n.Layout.SequenceBits }
