package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn/internal/remote"
	"github.com/firn-id/firn/internal/setting"
)

const clusterHelp = `Cluster shows the state of a cluster.

The members of a cluster write commands to one log, and each of them replays the log
to the same state: which members there are, which member watches which, who is joining,
and which member has which node ID of which sequencer.

All commands but replay ask a running server, at its address for administrators. Only
resume changes anything.`

const clusterExamples = `  firn cluster status
  firn cluster dashboard
  firn cluster log --follow
  firn cluster value --at 57
  firn cluster replay entries.jsonl`

func (p *program) clusterCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "cluster",
		Short:   "Show the state of a cluster",
		Long:    clusterHelp,
		Example: clusterExamples,
		Args:    noArguments,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(p.dashboardCommand(), p.statusCommand(), p.valueCommand(), p.logCommand(), p.replayCommand(), p.resumeCommand())
	return c
}

// lookOptions are the flags of what looks at a cluster.
type lookOptions struct {
	server serverFlags
	json   bool
}

func (o *lookOptions) add(fs *pflag.FlagSet, json string) {
	o.server.addAdmin(fs)
	setting.Bool(fs, &o.json, "json", json)
}

// look asks the server of the flags, until the command is interrupted.
func (p *program) look(c *cobra.Command, o *lookOptions, ask func(context.Context, remote.Client) error) error {
	if err := p.fromEnvironment(c.Flags(), o.server.names()...); err != nil {
		return err
	}
	client, err := o.server.client()
	if err != nil {
		return err
	}
	ctx := untilSignal(c.Context())
	return interrupted(ctx, ask(ctx, client))
}
