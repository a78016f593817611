package main

import (
	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/ops/deploy"
	"github.com/firn-id/firn/internal/ops/setting"
)

const genComposeHelp = `Compose prints compose.yaml for docker compose: nodes on one machine that form a
quorum, each with a volume and a health check. Use it to try a quorum: only
nodes on separate machines survive the loss of a machine. With --store the nodes
use an existing store instead, and need no volumes.`

const genComposeExamples = `  firn gen compose > compose.yaml
  firn gen compose --image registry.example.com/firn:1.0 --quorum 5 > compose.yaml
  firn gen compose --store etcd://etcd:2379/firn --quorum 2 > compose.yaml`

func (p *program) genCompose() *cobra.Command {
	d := deploy.NewCompose()
	flags := func(c *cobra.Command) {
		fs := c.Flags()
		setting.Text(fs, &d.Image, "image", "image", "the image, see firn gen docker")
		setting.Number(fs, &d.Quorum, "quorum", decimal(d.Quorum), 1,
			"how many nodes: 1, 3 or 5; with --store any number")
		addStore(fs, &d.Store)
		setting.Bool(fs, &d.StorePassword, "store-password",
			"the file ./store-password has the password of the user in --store")
		setting.Number(fs, &d.Port, "port", decimal(d.Port), 1,
			"this machine's port for the first node's HTTP; further nodes get\nthe next ports")
	}
	return p.genKind("compose", "Print a file for docker compose", genComposeHelp, genComposeExamples, flags,
		func(o deploy.Origin) (string, error) { return d.Text(o) })
}
