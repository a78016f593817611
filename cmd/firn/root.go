package main

import (
	"context"
	"io"

	"github.com/firn-id/firn/internal/ops/console"
	"github.com/spf13/cobra"
)

const rootHelp = `Firn gives out unique, time-ordered 64-bit IDs.

Each node makes IDs in its own memory. Nodes share a store (their own, or a PostgreSQL,
etcd or ZooKeeper), where each of them leases a node ID and records how far ahead in
time it may use it. So no ID is given twice, even if clocks jump, processes crash or
networks fail.

A first try, in two terminals:

  firn serve                # a service of one node, on port 8080
  firn id                   # take an ID
  firn decode $(firn id)    # see what an ID contains

A cluster can have many ID spaces, each with its own layout:

  firn sequencer create orders --nodes 128
  firn id --sequencer orders

Exit statuses: 0 success; 1 failure; 2 a crash, as of every Go program; 3 no node ID
is free, or this machine's clock is wrong; 4 an operator expelled the node;
78 a flag, an argument, a variable, the config file or a data directory is wrong;
130 a signal interrupted a client command.`

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
	root.AddCommand(p.serveCommand(), p.idCommand(), p.benchCommand(), p.demoCommand(), p.decodeCommand(), p.layoutCommand(), p.sequencerCommand(),
		p.clusterCommand(), p.quorumCommand(), p.tokenCommand(), p.sealKeyCommand(), p.doctorCommand(), p.journalCommand(), p.healthCommand(), p.genCommand(), p.completionCommand(), p.versionCommand())
	root.SetHelpCommand(helpCommand())
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
