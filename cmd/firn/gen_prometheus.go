package main

import (
	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/deploy"
	"github.com/firn-id/firn/internal/setting"
)

const genPrometheusHelp = `Prometheus prints prometheus.yml, with a job that scrapes the nodes, or, with --rules,
alert rules.`

const genPrometheusExamples = `  firn gen prometheus --nodes 10.0.0.1:8080,10.0.0.2:8080 > prometheus.yml
  firn gen prometheus --rules > firn.rules.yaml`

func (p *program) genPrometheus() *cobra.Command {
	m := deploy.NewPrometheus()
	var rules bool
	flags := func(c *cobra.Command) {
		fs := c.Flags()
		setting.List(fs, &m.Nodes, "nodes", "the nodes' addresses with /metrics: host:port, separated by commas")
		setting.Duration(fs, &m.Interval, "interval", m.Interval.String(), 0, "how often to scrape them")
		setting.Text(fs, &m.TokenFile, "token-file", "file", "a file on the machine of Prometheus, with the token to show")
		setting.Bool(fs, &rules, "rules", "print the alert rules")
		c.MarkFlagsMutuallyExclusive("rules", "nodes")
	}
	return p.genKind("prometheus", "Print a Prometheus configuration, or alert rules", genPrometheusHelp, genPrometheusExamples, flags,
		func(o deploy.Origin) (string, error) {
			if rules {
				return deploy.Rules, nil
			}
			return m.Text(o)
		})
}
