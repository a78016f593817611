package main

import (
	"cmp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn/internal/ops/console"
	"github.com/firn-id/firn/internal/ops/setting"
	"github.com/firn-id/firn/internal/service/stores"
)

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
func (s *configured) inForce(flags *pflag.FlagSet) (all []inForce) {
	flags.VisitAll(func(f *pflag.Flag) {
		one := inForce{Name: f.Name, Value: f.Value.String(), Source: sourceDefault}
		switch where := s.from[f.Name]; {
		case where == setting.Variable(f.Name):
			one.Source, one.Where = sourceVariable, where
		case where != "":
			one.Source, one.Where = sourceFile, strings.TrimSuffix(where, ": "+f.Name)
		case f.Changed:
			one.Source = sourceFlag
		}
		switch f.Name {
		case "admin-addr":
			one.Value = cmp.Or(s.AdminAddr, noAddress)
		case "epoch":
			one.Value = s.Layout.Epoch.Format("2006-01-02T15:04:05.999Z07:00")
		case "data-dir":
			if one.Value = ""; s.Keeps() {
				one.Value = s.DataDir
			}
		case "store":
			one.Value = stores.Redact(one.Value)
		case "etcd-password":
			if one.Value != "" {
				one.Value = masked
			}
		}
		if f.Value.Type() == setting.KindBool && one.Value == "" {
			one.Value = "false"
		}
		all = append(all, one)
	})
	return all
}

// settingsTable lists settings, and where each comes from.
func settingsTable(all []inForce) string {
	columns := []console.Column{{Head: "SETTING"}, {Head: "VALUE"}, {Head: "FROM"}}
	var rows [][]string
	for _, s := range all {
		rows = append(rows,
			[]string{s.Name, console.ShownText(cmp.Or(s.Value, "-")), console.ShownText(cmp.Or(s.Where, s.Source))})
	}
	return console.Table(columns, rows)
}

// apart are the flags of firn serve for a command that has others too, which neither variables nor the file may give.
func (o *serveOptions) apart() *pflag.FlagSet {
	c := &cobra.Command{}
	keepOrder(c)
	o.add(c, c.Flags())
	return c.Flags()
}
