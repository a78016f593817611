package main

import (
	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/ops/deploy"
	"github.com/firn-id/firn/internal/ops/setting"
)

const genPrometheusHelp = `Prometheus prints prometheus.yml, with a job that scrapes the nodes; with
--rules alert rules; with --alertmanager alertmanager.yml, whose inhibition
rules mute alerts that follow from others.`

const genPrometheusExamples = `  firn gen prometheus --nodes 10.0.0.1:8080,10.0.0.2:8080 > prometheus.yml
  firn gen prometheus --rules > firn.rules.yaml
  firn gen prometheus --alertmanager > alertmanager.yml`

func (p *program) genPrometheus() *cobra.Command {
	m := deploy.NewPrometheus()
	var rules, alertmanager bool
	flags := func(c *cobra.Command) {
		fs := c.Flags()
		setting.List(fs, &m.Nodes, "nodes", "the nodes' addresses with /metrics: host:port, separated by commas")
		setting.Duration(fs, &m.Interval, "interval", m.Interval.String(), 0, "how often to scrape them")
		setting.Text(fs, &m.TokenFile, "token-file", "file",
			"a file on the machine of Prometheus, with the token to show")
		setting.Bool(fs, &rules, "rules", "print the alert rules")
		setting.Bool(fs, &alertmanager, "alertmanager", "print a configuration of Alertmanager")
		c.MarkFlagsMutuallyExclusive("rules", "alertmanager", "nodes")
	}
	return p.genKind("prometheus", "Print a Prometheus configuration, alert rules, or inhibition rules",
		genPrometheusHelp, genPrometheusExamples, flags,
		func(o deploy.Origin) (string, error) {
			switch {
			case rules:
				return deploy.Rules, nil
			case alertmanager:
				return deploy.Alertmanager, nil
			}
			return m.Text(o)
		})
}
