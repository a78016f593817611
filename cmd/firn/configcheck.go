package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const configHelp = `Config deals with the configuration of firn serve: flags, variables and a file.`

func (p *program) configCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "config",
		Short:   "Check the configuration of firn serve",
		Long:    configHelp,
		Example: configExamples,
		Args:    noArguments,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(p.configCheckCommand())
	return c
}

const configCheckHelp = `Check reads the configuration as firn serve would, with the same flags, the same
variables and the same file, and prints each value that would be in force and
where it comes from. Files that it names are read too: tokens, certificates, a
password. Nothing is started, opened or asked: firn doctor does that.

What firn serve would refuse is refused with the same error and the same exit
status, 78. Secrets are not shown. Variables that begin with FIRN_ and are no flags are
listed at the end: they have no effect.`

const configExamples = `  firn config check --config /etc/firn/firn.yaml
  firn config check --layout twitter --datacenter 11
  FIRN_TTL=15s firn config check --json`

func (p *program) configCheckCommand() *cobra.Command {
	var o serveOptions
	var asJSON bool
	c := &cobra.Command{
		Use:     "check",
		Short:   "Check the configuration, and show what is in force",
		Long:    configCheckHelp,
		Example: configExamples,
		Args:    noArguments,
	}
	flags := o.apart()
	addBool(c.Flags(), &asJSON, "json", "print a JSON object")
	c.Flags().AddFlagSet(flags)
	c.RunE = func(*cobra.Command, []string) error {
		s, from, err := o.configured(flags, p.env)
		if err != nil {
			return err
		}
		n, err := newNode(s, p.stderr)
		if err != nil {
			return err
		}
		warnings, err := n.safe()
		if err != nil {
			return err
		}
		checked := checkedConfig{Settings: s.inForce(flags, from), Ignored: ignored(flags, p.env), Warnings: []string{}}
		for _, w := range warnings {
			checked.Warnings = append(checked.Warnings, w.About+": "+w.Found+"; "+w.Do)
		}
		if asJSON {
			return json.NewEncoder(p.stdout).Encode(checked)
		}
		return p.printf("%s", checked)
	}
	return c
}

// apart are the flags of firn serve for a command that has others too, which neither variables nor the file may give.
func (o *serveOptions) apart() *pflag.FlagSet {
	c := &cobra.Command{}
	keepOrder(c)
	o.add(c, c.Flags())
	return c.Flags()
}

// checkedConfig is a configuration that was found to be right, as JSON has it.
type checkedConfig struct {
	Settings []inForce `json:"settings"`
	Ignored  []string  `json:"ignored"`  // variables
	Warnings []string  `json:"warnings"` // each with what to do
}

// inForce is a setting as it is in force.
type inForce struct {
	Name   string `json:"name"`
	Value  string `json:"value"` // empty: there is none; a secret is not shown
	Source string `json:"source"`
	Where  string `json:"where,omitempty"` // the variable, or the file and the line
}

// Sources of settings.
const (
	sourceDefault  = "default"
	sourceFlag     = "flag"
	sourceVariable = "variable"
	sourceFile     = "file"
)

// masked stands for a secret.
const masked = "(not shown)"

// inForce are all settings with where they come from, in the order of the flags.
func (s *settings) inForce(flags *pflag.FlagSet, from sources) (all []inForce) {
	flags.VisitAll(func(f *pflag.Flag) {
		one := inForce{Name: f.Name, Value: f.Value.String(), Source: sourceDefault}
		switch where := from[f.Name]; {
		case where == variable(f.Name):
			one.Source, one.Where = sourceVariable, where
		case where != "":
			one.Source, one.Where = sourceFile, strings.TrimSuffix(where, ": "+f.Name)
		case f.Changed:
			one.Source = sourceFlag
		}
		switch f.Name {
		case "admin-addr":
			one.Value = s.adminAddr
		case "epoch":
			one.Value = s.layout.Epoch.Format("2006-01-02T15:04:05.999Z07:00")
		case "data-dir":
			if len(s.etcd.Endpoints) > 0 {
				one.Value = ""
			}
		case "etcd-password":
			if one.Value != "" {
				one.Value = masked
			}
		}
		if f.Value.Type() == kindBool && one.Value == "" {
			one.Value = "false"
		}
		all = append(all, one)
	})
	return all
}

// ignored are variables that look like ours, and are none.
func ignored(flags *pflag.FlagSet, env map[string]string) []string {
	known := map[string]bool{}
	for _, name := range clientFlags {
		known[variable(name)] = true
	}
	flags.VisitAll(func(f *pflag.Flag) { known[variable(f.Name)] = true })
	names := []string{}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if strings.HasPrefix(name, "FIRN_") && !known[name] {
			names = append(names, name)
		}
	}
	return names
}

// clientFlags can be variables too, of commands that ask a server.
var clientFlags = []string{"server", "admin", "token-file", "ca", "cert", "key"}

func (c checkedConfig) String() string {
	columns := []column{{"SETTING", 0, false}, {"VALUE", 0, false}, {"FROM", 0, false}}
	var rows [][]string
	for _, s := range c.Settings {
		value, source := s.Value, s.Source
		if value == "" {
			value = "-"
		}
		if s.Where != "" {
			source = s.Where
		}
		rows = append(rows, []string{s.Name, shownText(value), shownText(source)})
	}
	var text strings.Builder
	text.WriteString(table(columns, rows))
	if len(c.Ignored) > 0 {
		text.WriteString("\nno flags of firn serve, and ignored: " + strings.Join(c.Ignored, ", ") + "\n")
	}
	for _, w := range c.Warnings {
		text.WriteString("\nwarning: " + w + "\n")
	}
	return text.String() + "\nThe configuration is right.\n"
}
