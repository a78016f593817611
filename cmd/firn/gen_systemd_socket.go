package main

import (
	"github.com/spf13/cobra"

	"github.com/firn-id/firn/internal/ops/deploy"
	"github.com/firn-id/firn/internal/ops/setting"
)

const genSystemdSocketHelp = `Systemd-socket prints a unit with a socket that systemd opens and passes to the
node. The socket stays open while the node restarts, so callers wait instead of
being refused; and systemd can listen where the node's user may not, such as on
port 80.

The node takes the socket by its name: with --name redis, by --redis-addr
systemd:redis. Use one unit for each address.`

const genSystemdSocketExamples = `  firn gen systemd-socket > /etc/systemd/system/firn-http.socket
  firn gen systemd-socket --listen /run/firn.sock --group web --mode 0660
  firn gen systemd-socket --name redis --listen 127.0.0.1:6379`

func (p *program) genSystemdSocket() *cobra.Command {
	s := deploy.NewSystemdSocket()
	flags := func(c *cobra.Command) {
		fs := c.Flags()
		for _, one := range []struct {
			into              *string
			name, kind, usage string
		}{
			{&s.Name, "name", "name", "the address of firn serve that takes the socket: " + words(deploy.SocketNames)},
			{&s.Listen, "listen", "address", "where to listen: host:port, or the path of a Unix socket"},
			{&s.Service, "service", "unit", "the unit of the node"},
			{&s.User, "user", "name", "the user who owns a Unix socket"},
			{&s.Group, "group", "name", "the group that owns it"},
			{
				&s.Mode, "mode", "mode",
				"its permissions: 0600 lets only its user connect, 0660 its group too,\n" +
					"0666 all users of this machine",
			},
		} {
			setting.Text(fs, one.into, one.name, one.kind, one.usage)
		}
		completes(c, "name", deploy.SocketNames)
	}
	return p.genKind("systemd-socket", "Print a systemd unit with a socket", genSystemdSocketHelp,
		genSystemdSocketExamples, flags,
		func(o deploy.Origin) (string, error) { return s.Text(o) })
}
