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

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn/internal/deploy"
	"github.com/firn-id/firn/internal/setting"
)

const genHelp = `Gen prints configurations of what stands around firn, for the addresses given, so
that none has to be copied and edited by hand. Each says at its top which command
made it, and what to adapt where.

It only prints: nothing is installed, and no server is asked.`

const genExamples = `  firn gen haproxy --nodes 10.0.0.1:8080,10.0.0.2:8080,10.0.0.3:8080
  firn gen keepalived --vip 10.0.0.100/24 --interface eth0
  firn gen systemd --output /etc/systemd/system/firn.service`

func (p *program) genCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "gen",
		Short:   "Print configurations of what stands around firn",
		Long:    genHelp,
		Example: genExamples,
		Args:    noArguments,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(p.genHAProxy(), p.genNginx(), p.genKeepalived(), p.genSystemd(), p.genKubernetes(), p.genDocker(), p.genPrometheus(), p.genGrafana(), p.genConfig(), p.genMan())
	return c
}

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
	setting.Text(c.Flags(), &output, "output", "file", "where to put it (default: standard output)")
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
