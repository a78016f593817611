package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/firn-id/firn/internal/deploy"
	"github.com/firn-id/firn/internal/setting"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// genKind is a command that prints one kind of file, which is written by text.
func (p *program) genKind(kind, short, long, examples string, flags func(*cobra.Command), text func(deploy.Origin) (string, error)) *cobra.Command {
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
		made, err := text(deploy.Origin{Version: readVersion().Version, Command: commandLine(c, "output", "etcd-password")})
		var wrong *deploy.ParameterError
		switch {
		case errors.As(err, &wrong):
			return usagef("--%s: %w", wrong.Name, wrong.Err)
		case err != nil:
			return err
		case output == "":
			return p.printf("%s", made)
		}
		return replaceFile(output, made)
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
			line += " --" + f.Name + "=" + shellQuoted(f.Value.String())
		default:
			line += " --" + f.Name + " " + shellQuoted(f.Value.String())
		}
	})
	return line
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

func shellQuoted(text string) string {
	if plainWord.MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// replaceFile writes a file that readers see as it was or as it is to be, and nothing between.
func replaceFile(path, content string) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return usagef("--output: %s is no file", path)
	}
	made, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return usagef("--output: %w", err)
	}
	_, err = made.WriteString(content)
	err = errors.Join(err, made.Chmod(0o644), made.Close())
	if err == nil {
		err = os.Rename(made.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", path, err), os.Remove(made.Name()))
	}
	return nil
}

// completes has shells offer these values of a flag.
func completes(c *cobra.Command, flag string, values []string) {
	must(c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)))
}

// words lists what there is to choose from.
func words(list []string) string { return strings.Join(list, ", ") }

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
