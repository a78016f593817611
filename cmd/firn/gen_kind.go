package main

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/firn-id/firn/internal/ops/deploy"
	"github.com/firn-id/firn/internal/ops/setting"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// genKind is a command that prints one kind of file, which is written by text.
func (p *program) genKind(kind, short, long, examples string, flags func(*cobra.Command),
	text func(deploy.Origin) (string, error),
) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:     kind,
		Short:   short,
		Long:    long,
		Example: examples,
		Args:    noArguments,
	}
	flags(c)
	setting.Text(c.Flags(), &output, "output", "file", "the file to write (default: standard output)")
	must(c.MarkFlagFilename("output"))
	c.RunE = func(c *cobra.Command, _ []string) error {
		made, err := text(deploy.Origin{
			Version: readVersion().Version,
			Command: commandLine(c, "output", "etcd-password"),
		})
		switch {
		case err == nil && output == "":
			return p.printf("%s", made)
		case err == nil:
			err = deploy.WriteFile(output, made)
		}
		if wrong, ok := errors.AsType[*deploy.ParameterError](err); ok {
			return usagef("--%s: %w", wrong.Name, wrong.Err)
		}
		return err
	}
	return c
}

// commandLine is the command with the flags that were given, but for some, as a shell takes it.
func commandLine(c *cobra.Command, but ...string) string {
	line := c.CommandPath()
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if slices.Contains(but, f.Name) {
			return
		}
		switch {
		case !f.Changed:
		case f.Value.Type() == setting.KindBool && f.Value.String() == f.NoOptDefVal:
			line += " --" + f.Name
		case f.Value.Type() == setting.KindBool:
			line += " --" + f.Name + "=" + deploy.Quote(f.Value.String())
		default:
			line += " --" + f.Name + " " + deploy.Quote(f.Value.String())
		}
	})
	return line
}

// completes has shells offer these values of a flag.
func completes(c *cobra.Command, flag string, values []string) {
	must(c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)))
}

// words lists what there is to choose from.
func words(list []string) string { return strings.Join(list, ", ") }

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
