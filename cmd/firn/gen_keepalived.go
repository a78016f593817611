package main

import (
	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/deploy"
	"github.com/firn-id/firn/internal/setting"
)

const genKeepalivedHelp = `Keepalived prints /etc/keepalived/keepalived.conf for two balancers with HAProxy:
one of them holds the address that callers use, and the other one takes it over
when that machine or its HAProxy is gone.

By default they find each other by multicast; where a network has none, --source
and --peers say who they are.`

const genKeepalivedExamples = `  firn gen keepalived --vip 10.0.0.100/24 --interface eth0
  firn gen keepalived --vip 10.0.0.100/24 --source 10.0.0.8 --peers 10.0.0.9`

func (p *program) genKeepalived() *cobra.Command {
	k := deploy.NewKeepalived()
	flags := func(c *cobra.Command) {
		fs := c.Flags()
		setting.Text(fs, &k.VIP, "vip", "address", "the address that callers use, with its prefix: 10.0.0.100/24")
		setting.Text(fs, &k.Interface, "interface", "name", "the network interface that it is put on")
		setting.Number(fs, &k.Router, "router", decimal(k.Router), 0, "the number of the VRRP router, 1 to 255; each VIP of a network has its own")
		setting.Number(fs, &k.Priority, "priority", decimal(k.Priority), 0, "1 to 254; who has more is the first, when both start")
		setting.Duration(fs, &k.Advert, "advert", k.Advert.String(), 0, "how often the holder says that it is there; when three are missed, the other takes over")
		setting.Text(fs, &k.Check, "check", "address", "HAProxy's --status-listen")
		setting.Duration(fs, &k.CheckInterval, "check-interval", k.CheckInterval.String(), 0, "how often HAProxy is asked, in whole seconds")
		setting.Number(fs, &k.Fall, "fall", decimal(k.Fall), 0, "after so many times without an answer the other takes over")
		setting.Text(fs, &k.Source, "source", "address", "this balancer's address, for --peers")
		setting.List(fs, &k.Peers, "peers", "the other balancers' addresses, for networks without multicast")
	}
	return p.genKind("keepalived", "Print who holds a VIP: keepalived", genKeepalivedHelp, genKeepalivedExamples, flags,
		func(o deploy.Origin) (string, error) { return k.Text(o) })
}
