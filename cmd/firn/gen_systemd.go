package main

import (
	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/ops/deploy"
	"github.com/firn-id/firn/internal/ops/setting"
)

const genSystemdHelp = `Systemd prints the unit firn.service, which runs firn serve with a config file.
The node tells systemd when it is ready and that it is alive. Systemd restarts a
node that fails, and lets it reach only the network and its own directory,
/var/lib/firn.

The deb and rpm packages contain this unit.`

const genSystemdExamples = `  firn gen systemd > /etc/systemd/system/firn.service
  firn gen systemd --binary /usr/local/bin/firn --drain-delay 5s`

func (p *program) genSystemd() *cobra.Command {
	s := deploy.NewSystemd()
	flags := func(c *cobra.Command) {
		fs := c.Flags()
		setting.Text(fs, &s.Binary, "binary", "file", "the path of firn")
		setting.Text(fs, &s.Config, "config", "file", "the config file of firn serve")
		setting.Text(fs, &s.User, "user", "name", "the user and group that the node runs as")
		setting.Duration(fs, &s.Watchdog, "watchdog", s.Watchdog.String(), 0,
			"how long the node may be silent before systemd restarts it; 0s is no limit")
		setting.Duration(fs, &s.DrainDelay, "drain-delay", s.DrainDelay.String(), 0, "as for firn serve")
		setting.Duration(fs, &s.ShutdownTimeout, "shutdown-timeout", s.ShutdownTimeout.String(), 0, "as for firn serve")
	}
	return p.genKind("systemd", "Print a systemd unit", genSystemdHelp, genSystemdExamples, flags,
		func(o deploy.Origin) (string, error) { return s.Text(o) })
}
