package main

import (
	"context"
	"io"

	"github.com/firn-id/firn/internal/ops/console"
	"github.com/spf13/cobra"
)

const rootHelp = `firn generates unique, time-ordered 64-bit IDs (snowflakes).

Nodes generate IDs in memory. Each node claims a node ID in a store, and
records there how far ahead in time it may use it: no ID is given twice, even if
clocks jump, processes crash or networks fail. The store is firn's own (on one
node, or on a quorum of 3 or 5), or your etcd, PostgreSQL or ZooKeeper.

To begin:

  firn serve                # run one node, on port 8080
  firn id                   # take an ID, in another terminal
  firn decode $(firn id)    # show when, and under which node ID, it was made

Exit statuses: 0 success; 1 failure; 2 a crash; 3 no node ID is free, or the
clock is wrong; 4 an operator expelled the node; 78 a flag, an argument, a
variable, the config file or a data directory is wrong; 130 a signal interrupted
the command.`

// commandGroups are the groups that the help of firn lists its commands in.
var commandGroups = []*cobra.Group{
	{ID: "run", Title: "Run nodes:"},
	{ID: "use", Title: "Take and read IDs:"},
	{ID: "manage", Title: "Manage a cluster:"},
	{ID: "check", Title: "Find out what is wrong:"},
	{ID: "other", Title: "Other commands:"},
}

// run is the whole program: it runs the command that args name, and returns the exit status.
func run(ctx context.Context, args, env []string, stdin io.Reader, stdout, stderr io.Writer) int {
	stderr = console.Plain(stderr)
	if console.IsTerminal(stdout) { // else programs may read it
		stdout = console.Plain(stdout)
	}
	p := &program{env: environment(env), stdin: stdin, stdout: stdout, stderr: stderr}
	p.completing = len(args) > 0 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd)
	began := false
	root := p.root(&began)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err != nil && !began {
		err = usageError{err} // cobra did not find a command that takes this
	}
	p.report(err)
	return status(err)
}

func (p *program) root(began *bool) *cobra.Command {
	root := &cobra.Command{
		Use:           "firn",
		Short:         "Unique, time-ordered 64-bit IDs",
		Long:          rootHelp,
		Version:       readVersion().Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noArguments,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
		PersistentPreRun: func(*cobra.Command, []string) {
			*began = true
		},
	}
	root.SetVersionTemplate("firn {{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.AddGroup(commandGroups...)
	for group, all := range map[string][]*cobra.Command{
		"run":    {p.serveCommand(), p.demoCommand(), p.genCommand()},
		"use":    {p.idCommand(), p.importCommand(), p.decodeCommand(), p.layoutCommand(), p.benchCommand()},
		"manage": {p.clusterCommand(), p.sequencerCommand(), p.quorumCommand(), p.tokenCommand(), p.sealKeyCommand()},
		"check":  {p.doctorCommand(), p.healthCommand(), p.journalCommand()},
		"other":  {p.completionCommand(), p.versionCommand()},
	} {
		for _, c := range all {
			c.GroupID = group
		}
		root.AddCommand(all...)
	}
	root.SetHelpCommand(helpCommand())
	root.SetHelpCommandGroupID("other")
	keepOrder(root)
	p.completeKinds(root)
	return root
}

func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "help [command]",
		Short:   "Explain a command",
		Example: "  firn help cluster status",
		RunE: func(c *cobra.Command, args []string) error {
			about, rest, err := c.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return noArguments(about, rest)
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}
