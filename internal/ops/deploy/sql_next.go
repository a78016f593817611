package deploy

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/firn-id/firn/sequencer"
)

// SQLNext are functions of PostgreSQL that make IDs of a sequencer with a node ID that they claim in the cluster's
// store, which is in the same server.
//
// They keep the place that was reached, as those of SQLGenerator do, and besides how far they may go. That moves only
// after a transaction of its own has written it as the horizon of the node ID, see package fence. They hold the node
// ID by a key without a session, since a database that is idle renews none.
type SQLNext struct {
	SQL
	Sequencer  string
	Definition sequencer.Definition
	Region     sequencer.Region // whose node IDs they may claim

	Schema   string // of the store's tables
	Database string // that has the store; empty: the one with the functions

	Enter, Count func() string // statements of the store, see pgstore.EnterSQL and pgstore.CountSQL
}

// Text is the SQL.
func (s SQLNext) Text(o Origin) (string, error) {
	var c checks
	c.that(s.Dialect == "postgres", "dialect", "%.40q has no functions that claim a node ID; want postgres", s.Dialect)
	if s.Definition.Claimed() || s.Definition.Scattered {
		return "", fmt.Errorf("sequencer %s has no node IDs, or scatters its IDs; want another one", s.Sequencer)
	}
	s.Layout = s.Definition.IDLayout()
	s.check(&c, false)
	err := sequencer.CheckName(s.Sequencer)
	c.that(err == nil, "sequencer", "%w", err)
	c.that(sqlName.MatchString(s.Schema), "postgres-schema",
		"%.80q is not a name; want up to 63 of a-z, 0-9 and _, the first no digit, such as firn", s.Schema)
	c.that(s.Database == "" || databaseName.MatchString(s.Database), "database",
		"%.80q is not the name of a database; want up to 63 of letters, digits, _ and -", s.Database)
	if c.err != nil {
		return "", c.err
	}
	nodes, err := s.Region.Nodes(s.Definition)
	if err != nil {
		return "", err
	}
	definition, err := json.Marshal(s.Definition)
	if err != nil {
		return "", err
	}
	n := sqlNext{
		sqlGenerator: sqlGenerator{sqlNumbers: s.numbers()}, SQLNext: s, Nodes: nodes,
		DefinitionText: string(definition),
	}
	return c.text(o, "postgres_next.sql", n)
}

var databaseName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,63}$`)

// sqlNext are the numbers and expressions that the templates fill in.
type sqlNext struct {
	sqlGenerator
	SQLNext
	Nodes          sequencer.Range
	DefinitionText string
}

// Window is how far ahead of the clock IDs may go, in milliseconds: a third of that after it was reserved, the next
// call reserves more.
func (sqlNext) Window() int64 { return 10_000 }

// Patience is for how many microseconds a call waits for the clock, and Pause for how many seconds at a time.
func (n sqlNext) Patience() int64 { return (5*time.Second + 3*n.Layout.Tick).Microseconds() }

// LockTimeout is for how many milliseconds a call waits for another one that asks the store.
func (n sqlNext) LockTimeout() int64 { return n.Patience() / 1000 }

// Pause is how long a call waits at a time, in seconds.
func (n sqlNext) Pause() float64 { return max(20*time.Millisecond, n.Layout.Tick).Seconds() }

// Subject is what the IDs are of.
func (n sqlNext) Subject() string { return fmt.Sprintf("%s: %v", n.Sequencer, n.Layout) }

// Prefix begins the keys of the node IDs.
func (n sqlNext) Prefix() string { return "sequencers/" + n.Sequencer + "/workers/" }

// Generation is the key of the sequencer's generation.
func (n sqlNext) Generation() string { return "sequencers/" + n.Sequencer + "/generation" }

// Quoted is a literal.
func (sqlNext) Quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// LastSequence is the greatest sequence.
func (n sqlNext) LastSequence() int64 { return 1<<n.Layout.SequenceBits - 1 }

// Random is added to the first place of a tick.
func (n sqlNext) Random() string {
	if !n.Definition.RandomStart {
		return ""
	}
	return fmt.Sprintf(" + floor(random() * %d)::bigint", n.LastSequence()+1)
}

// TickAfter is the expression for the tick after that of a place.
func (n sqlNext) TickAfter(place string) string {
	return fmt.Sprintf("((%s >> %d) + 1)", place, n.Layout.SequenceBits)
}

// AboveMillis is the expression for the first millisecond after the tick of an ID; null for none.
func (n sqlNext) AboveMillis(id string) string {
	return fmt.Sprintf("CASE WHEN %[1]s > 0 THEN (%[2]s + 999) / 1000 END", id,
		n.TickMicros(fmt.Sprintf("((%s >> %d) + 1)", id, n.Shift)))
}

// AfterText is what every ID exceeds.
func (n sqlNext) AfterText() string {
	return fmt.Sprintf("%d::bigint", int64(n.Definition.After))
}

// BoundOf is the expression for the ID that says the tick of a time, and a node ID.
func (n sqlNext) BoundOf(micros, node string) string {
	return fmt.Sprintf("(%s | (%s << %d))", n.FirstID(micros), node, n.nodeAt())
}

// IDOf is the expression for the ID of a place, with the node ID of a bound.
func (n sqlNext) IDOf(place, bound string) string {
	node := fmt.Sprintf("(%s & %d)", bound, (int64(1)<<n.nodeBits()-1)<<n.nodeAt())
	if n.Layout.NodeLowest {
		return fmt.Sprintf("((%s << %d) | %s)", place, n.nodeBits(), node)
	}
	return fmt.Sprintf("(((%[1]s >> %[2]d) << %[3]d) | %[4]s | (%[1]s & %[5]d))", place, n.Layout.SequenceBits, n.Shift,
		node, n.LastSequence())
}

func (n sqlNext) nodeAt() int {
	if n.Layout.NodeLowest {
		return 0
	}
	return n.Layout.SequenceBits
}
