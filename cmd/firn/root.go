package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn/internal/console"
	"github.com/firn-id/firn/internal/setting"
)

const rootHelp = `Firn gives out unique, time-ordered 64-bit IDs.

Every node makes IDs on its own, at memory speed. What nodes share is an etcd
cluster in which each leases a node ID and writes down how far in time it may go;
so no ID is ever given twice, whatever clocks, crashes or networks do.

A first try, in two terminals:

  firn serve                # a service of one node, on port 8080
  firn id                   # ask it for an ID
  firn decode $(firn id)    # see what an ID says

There can be any number of ID spaces, each with a layout of its own:

  firn sequencer create orders --nodes 128
  firn id --sequencer orders

Exit statuses: 0 success; 1 failure; 2 a crash, as of every Go program; 3 no node
ID is free, or this machine's clock is too far behind; 78 a flag, an argument, a
variable or the config file is wrong; 130 a client command was interrupted.`

// program is what a command gets from outside.
type program struct {
	env            map[string]string
	stdin          io.Reader
	stdout, stderr io.Writer
}

// run is the whole program: it runs the command that args name, and returns the exit status.
func run(ctx context.Context, args, env []string, stdin io.Reader, stdout, stderr io.Writer) int {
	p := &program{env: environment(env), stdin: stdin, stdout: stdout, stderr: stderr}
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
		p.clusterCommand(), p.tokenCommand(), p.doctorCommand(), p.genCommand(), p.completionCommand(), p.versionCommand())
	root.SetHelpCommand(helpCommand())
	keepOrder(root)
	p.completeKinds(root)
	return root
}

// keepOrder lists the flags of a command, and of those below it, as they were added.
func keepOrder(c *cobra.Command) {
	c.Flags().SortFlags = false
	for _, sub := range c.Commands() {
		keepOrder(sub)
	}
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

// flagError says of a wrong flag what would be right.
func flagError(c *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		return usagef("--%s: %w", invalid.GetFlag().Name, invalid.Unwrap())
	}
	if args := c.Flags().Args(); len(args) > 0 && c.HasAvailableSubCommands() {
		return noArguments(c, args) // the flag is most likely that of another command
	}
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if meant := setting.Nearest(unknown.GetSpecifiedName(), names); meant != "" {
			return usagef("%w; did you mean --%s?", err, meant)
		}
	}
	return usagef("%w; %s --help lists the flags", err, c.CommandPath())
}

// noArguments refuses arguments of a command that takes none, or only the name of one below it.
func noArguments(c *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case !c.HasAvailableSubCommands():
		return usagef("%q: %s takes no arguments; %[2]s --help shows what it takes", args[0], c.CommandPath())
	}
	var names []string
	meant := ""
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() {
			continue
		}
		names = append(names, sub.Name())
		if slices.Contains(sub.SuggestFor, args[0]) {
			meant = sub.Name()
		}
	}
	if meant = cmp.Or(meant, setting.Nearest(args[0], names)); meant != "" {
		return usagef("there is no command %q; did you mean %q?", c.CommandPath()+" "+args[0], c.CommandPath()+" "+meant)
	}
	return usagef("there is no command %q; want one of %s", c.CommandPath()+" "+args[0], strings.Join(names, ", "))
}

// environment reads variables as "NAME=value".
func environment(list []string) map[string]string {
	env := make(map[string]string, len(list))
	for _, variable := range list {
		name, value, _ := strings.Cut(variable, "=")
		env[name] = value
	}
	return env
}

// report prints an error for people, on one line.
func (p *program) report(err error) { report(p.stderr, p.paint(p.stderr, console.Red, "firn:"), err) }

// warnf prints a warning for people, on one line.
func (p *program) warnf(format string, args ...any) {
	fmt.Fprintln(p.stderr, p.paint(p.stderr, console.Yellow, "firn: warning:"), fmt.Sprintf(format, args...))
}

// notef prints something for people to know, on one line.
func (p *program) notef(format string, args ...any) {
	fmt.Fprintf(p.stderr, "firn: note: "+format+"\n", args...)
}

// paint returns a text in a colour, where w shows colours.
func (p *program) paint(w io.Writer, c console.Colour, text string) string {
	if !console.Coloured(w, p.env) {
		return text
	}
	return c.Paint(text)
}

// colours gives a column of a table colours, where stdout shows them.
func (p *program) colours(of func(value string) console.Colour) func(string) console.Colour {
	if !console.Coloured(p.stdout, p.env) {
		return nil
	}
	return of
}

// printf prints to stdout. An error ends the command.
func (p *program) printf(format string, args ...any) error {
	_, err := fmt.Fprintf(p.stdout, format, args...)
	return err
}
