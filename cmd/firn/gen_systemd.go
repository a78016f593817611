package main

import (
	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/deploy"
	"github.com/firn-id/firn/internal/setting"
)

const genSystemdHelp = `Systemd prints the unit firn.service, which runs firn serve with a config file. It
tells systemd when it is ready and that it is alive, is started again when it
fails, and can reach the network and its own directory, /var/lib/firn, alone.

The deb and rpm packages have it already.`

const genSystemdExamples = `  firn gen systemd > /etc/systemd/system/firn.service
  firn gen systemd --binary /usr/local/bin/firn --drain-delay 5s`

func (p *program) genSystemd() *cobra.Command {
	s := deploy.NewSystemd()
	flags := func(c *cobra.Command) {
		fs := c.Flags()
		setting.Text(fs, &s.Binary, "binary", "file", "where firn is installed")
		setting.Text(fs, &s.Config, "config", "file", "what firn serve reads")
		setting.Text(fs, &s.User, "user", "name", "whom it runs as; the group has the same name")
		setting.Duration(fs, &s.Watchdog, "watchdog", s.Watchdog.String(), 0, "how long it may be silent before it is killed and started anew; 0s is for ever")
		setting.Duration(fs, &s.DrainDelay, "drain-delay", s.DrainDelay.String(), 0, "that of firn serve")
		setting.Duration(fs, &s.ShutdownTimeout, "shutdown-timeout", s.ShutdownTimeout.String(), 0, "that of firn serve")
	}
	return p.genKind("systemd", "Print the unit firn.service", genSystemdHelp, genSystemdExamples, flags,
		func(o deploy.Origin) (string, error) { return s.Text(o) })
}
