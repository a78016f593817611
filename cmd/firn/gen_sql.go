package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/ops/deploy"
	"github.com/firn-id/firn/internal/ops/setting"
	"github.com/firn-id/firn/store/pgstore"
)

const genSQLHelp = `SQL prints functions for a database and one layout: the time, node ID and
sequence of an ID, and the smallest and greatest ID of a time, to find rows of a
time by their primary key.

For SQLite, which has no stored functions, gen sql prints a view of a table that
shows the parts of each ID, and expressions for the smallest and greatest ID of
a time, to copy.

Name the layout, or with --sequencer the sequencer, whose layout gen sql gets
from a server. Functions for several layouts need different names: see --name.

With --generator gen sql prints functions that make IDs in the database instead,
where a call to firn is not possible. They need a node ID that nobody else has;
in a cluster reserve one:

  firn sequencer reserve orders --nodes 900 --for "warehouse database"

In PostgreSQL firn_next() serves as the DEFAULT of a column. No ID comes twice,
also if a transaction is rolled back, and sessions wait for each other only
while an ID is made.

In MySQL and MariaDB a DEFAULT can't call stored functions: call firn_next() in
INSERT, or have a trigger of --table call it. It locks its row until the
transaction ends, and a rollback gives its IDs back. Called before the
transaction it does neither.

In SQLite no trigger can set the ID of a new row: INSERT reads the next ID from
the view firn_next, and triggers of --table note it. One INSERT makes one row.

IDs ascend, whatever the clock does: if it is behind the last ID, IDs continue
from there, and so they do in the next tick when a tick has no more. A copy of
the database that accepts writes needs another --node; so does a promoted
replica while the old primary may still make IDs.

With --next gen sql prints such functions for PostgreSQL that claim a node ID by
themselves, in firn's store in the same server, as a node of firn does. Nothing
is reserved; give the sequencer. They need the extension dblink: how far IDs may
go is written over a connection of its own, whatever the caller's transaction
does.

With --store gen sql prints the tables of a store in PostgreSQL instead. An
owner of the database runs them if firn serve --store postgres://... may not
create them.`

const genSQLExamples = `  firn gen sql --dialect postgres | psql shop
  firn gen sql --dialect mysql --layout twitter --name tweet | mariadb shop
  firn gen sql --dialect sqlite --table orders | sqlite3 shop.db
  firn gen sql --dialect postgres --sequencer orders --name orders
  firn gen sql --generator --node 900 --dialect postgres | psql shop
  firn gen sql --next --sequencer orders --dialect postgres | psql shop
  firn gen sql --store --role ids | psql app`

func (p *program) genSQL() *cobra.Command {
	g := deploy.NewSQLGenerator()
	s, generator := &g.SQL, false
	next, claims := deploy.SQLNext{Enter: pgstore.EnterSQL, Count: pgstore.CountSQL}, false
	var layout layoutFlags
	var sequencer string
	var ask serverFlags
	tables, store := deploy.StoreTables{SQL: pgstore.SQL, Schema: pgstore.DefaultSchema}, false
	var c *cobra.Command
	flags := func(made *cobra.Command) {
		c = made
		fs := c.Flags()
		setting.Text(fs, &s.Dialect, "dialect", "dialect", "which SQL: "+words(deploy.Dialects))
		completes(c, "dialect", deploy.Dialects)
		layout.add(c, fs)
		setting.Text(fs, &s.Name, "name", "name", "what the names of functions and views begin with")
		setting.Text(fs, &s.Table, "table", "table", "for SQLite: the table with the IDs; with\n"+
			"--generator also for a trigger in MySQL and MariaDB")
		setting.Text(fs, &s.Column, "column", "column", "with --table: the column with the IDs")
		addSequencer(fs, &sequencer, "the sequencer that makes the IDs, instead of --layout and --epoch")
		ask.addPublic(fs)
		setting.Bool(fs, &generator, "generator", "print functions that make IDs")
		setting.Number(fs, &g.Node, "node", "", 0,
			"with --generator: the node ID of the IDs, which nobody else may have")
		setting.Bool(fs, &claims, "next", "print functions that make IDs with a node ID that they claim")
		setting.Text(fs, &next.Database, "database", "name",
			"with --next: the database that has firn's store, in the same server\n(default: the one that runs the SQL)")
		setting.Bool(fs, &store, "store", "print the tables of a store in PostgreSQL, instead of functions")
		setting.Text(fs, &tables.Schema, "postgres-schema", "name",
			"with --store and --next: the schema for the tables, see firn serve")
		setting.Text(fs, &tables.Role, "role", "name",
			"with --store: the role that firn logs in as; the statements grant\n"+
				"it what it needs (default: comments explain the grants)")
	}
	return p.genKind("sql", "Print functions of a database, for the time and node of an ID", genSQLHelp,
		genSQLExamples, flags,
		func(o deploy.Origin) (string, error) {
			if err := checkSQLFlags(c, store, generator, claims); err != nil {
				return "", err
			}
			if store {
				return tables.Text(o)
			}
			d := decoder{program: p}
			if err := d.setSequencer(c, sequencer, &ask, &layout); err != nil {
				return "", err
			}
			if claims {
				next.SQL, next.Sequencer, next.Schema = *s, sequencer, tables.Schema
				next.Definition, next.Region = d.status.Definition, d.status.Region
				return next.Text(o)
			}
			if d.sequencer.Kind == cluster.Counter {
				return "", fmt.Errorf("sequencer %s is a counter: its numbers have no time and no node ID for "+
					"functions to return; want another one", sequencer)
			}
			if d.sequencer.Scattered {
				return "", fmt.Errorf("sequencer %s is scattered: its IDs do not lie in the order of their time, and "+
					"a database can neither gather nor make them; want another one", sequencer)
			}
			s.Layout = d.sequencer.Layout
			if generator {
				return g.Text(o)
			}
			return s.Text(o)
		})
}

// checkSQLFlags returns an error for flags that have no effect.
func checkSQLFlags(c *cobra.Command, store, generator, claims bool) error {
	check := func(without string, names ...string) error {
		for _, name := range names {
			if c.Flags().Changed(name) {
				return usagef("--%s has no effect with%s", name, without)
			}
		}
		return nil
	}
	switch {
	case store:
		return check(" --store", "dialect", "layout", "epoch", "name", "table", "column", "sequencer", "server",
			"generator", "node", "next", "database")
	case claims && !c.Flags().Changed("sequencer"):
		return usagef("--next claims a node ID of a sequencer; give --sequencer")
	case claims:
		return check(" --next", "generator", "node", "role", "table", "column")
	}
	if err := check("out --store", "role"); err != nil {
		return err
	}
	if err := check("out --store or --next", "postgres-schema"); err != nil {
		return err
	}
	if err := check("out --next", "database"); err != nil {
		return err
	}
	if !generator {
		return check("out --generator", "node")
	}
	return nil
}
