package main

import (
	"github.com/spf13/cobra"
)

const genHelp = `Gen prints configurations for the programs around firn. The head of each says
which command made it, and what to adapt.

Gen installs nothing. It asks no server, except gen sql --sequencer.`

const genExamples = `  firn gen haproxy --nodes 10.0.0.1:8080,10.0.0.2:8080,10.0.0.3:8080
  firn gen keepalived --vip 10.0.0.100/24 --interface eth0
  firn gen systemd --output /etc/systemd/system/firn.service`

func (p *program) genCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "gen",
		Short:   "Print configurations for systemd, Kubernetes, HAProxy and others",
		Long:    genHelp,
		Example: genExamples,
		Args:    noArguments,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(p.genHAProxy(), p.genNginx(), p.genKeepalived(), p.genSystemd(), p.genSystemdSocket(),
		p.genKubernetes(), p.genDocker(), p.genCompose(), p.genPrometheus(), p.genGrafana(), p.genSQL(),
		p.genConfig(), p.genMan())
	return c
}
