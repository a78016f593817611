package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

type serveGroup struct{ first, title string }

// serveGroups begin the parts of the help of firn serve: each at the flag that comes first in it.
var serveGroups = []serveGroup{
	{"http-addr", "Addresses"},
	{"tokens", "Callers"},
	{"store", "Where the data is"},
	{"quorum", "With --quorum, or --store quorum://"},
	{"etcd", "With --etcd, or --store etcd://"},
	{"postgres-password-file", "With --store postgres://"},
	{"zookeeper-user", "With --store zookeeper://"},
	{"layout", "IDs"},
	{"window", "The node"},
	{"log-format", "What it tells"},
	{"config", "Others"},
}

// serveUsage prints the flags of firn serve in groups.
func serveUsage(c *cobra.Command) error {
	w := c.OutOrStderr()
	fmt.Fprintf(w, "Usage:\n  %s\n\nExamples:\n%s\n", c.UseLine(), c.Example)
	var all []*pflag.Flag
	c.Flags().VisitAll(func(f *pflag.Flag) { all = append(all, f) })
	for i, g := range serveGroups {
		part := pflag.NewFlagSet(g.title, pflag.ContinueOnError)
		part.SortFlags = false
		for len(all) > 0 && (i+1 == len(serveGroups) || all[0].Name != serveGroups[i+1].first) {
			part.AddFlag(all[0])
			all = all[1:]
		}
		fmt.Fprintf(w, "\n%s:\n%s", g.title, part.FlagUsages())
	}
	return nil
}

// borrows adds the flags of firn serve to a command that reads its configuration. Its help does not repeat them, and
// shells complete them.
func (p *program) borrows(c *cobra.Command, flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) { f.Hidden = f.Name != "config" && !p.completing })
	c.Flags().AddFlagSet(flags)
}
