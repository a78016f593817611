package main

import (
	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/ops/deploy"
	"github.com/firn-id/firn/internal/ops/setting"
)

const genKeepalivedHelp = `Keepalived prints /etc/keepalived/keepalived.conf for two HAProxy machines. One
of them holds the address that callers use (a virtual IP); the other takes it
over if that machine or its HAProxy fails.

The machines find each other by multicast, or with --source and --peers.`

const genKeepalivedExamples = `  firn gen keepalived --vip 10.0.0.100/24 --interface eth0
  firn gen keepalived --vip 10.0.0.100/24 --source 10.0.0.8 --peers 10.0.0.9`

func (p *program) genKeepalived() *cobra.Command {
	k := deploy.NewKeepalived()
	flags := func(c *cobra.Command) {
		fs := c.Flags()
		setting.Text(fs, &k.VIP, "vip", "address", "the address that callers use, with its prefix: 10.0.0.100/24")
		setting.Text(fs, &k.Interface, "interface", "name", "the network interface for that address")
		setting.Number(fs, &k.Router, "router", decimal(k.Router), 0,
			"the number of the VRRP router, 1 to 255, unique in its network")
		setting.Number(fs, &k.Priority, "priority", decimal(k.Priority), 0,
			"1 to 254; the machine with the higher priority holds the address\nfirst")
		setting.Duration(fs, &k.Advert, "advert", k.Advert.String(), 0,
			"how often the holder announces itself; the other takes over after\nthree missed announcements")
		setting.Text(fs, &k.Check, "check", "address", "HAProxy's --status-listen")
		setting.Duration(fs, &k.CheckInterval, "check-interval", k.CheckInterval.String(), 0,
			"how often to check HAProxy, in whole seconds")
		setting.Number(fs, &k.Fall, "fall", decimal(k.Fall), 0,
			"the other machine takes over after this many failed checks")
		setting.Text(fs, &k.Source, "source", "address", "this balancer's address, for --peers")
		setting.List(fs, &k.Peers, "peers", "the other balancers' addresses, for networks without multicast")
	}
	return p.genKind("keepalived", "Print a keepalived configuration (moves a virtual IP between two balancers)",
		genKeepalivedHelp, genKeepalivedExamples, flags,
		func(o deploy.Origin) (string, error) { return k.Text(o) })
}
