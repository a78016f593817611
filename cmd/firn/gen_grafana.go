package main

import (
	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/ops/deploy"
)

const genGrafanaHelp = `Grafana prints a dashboard as JSON, to import into Grafana. It shows what
Prometheus collects from the nodes.`

func (p *program) genGrafana() *cobra.Command {
	return p.genKind("grafana", "Print a dashboard for Grafana", genGrafanaHelp, "  firn gen grafana > firn.json",
		func(*cobra.Command) {},
		func(deploy.Origin) (string, error) { return deploy.Dashboard, nil })
}
