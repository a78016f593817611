package deploy

import (
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// SystemdSocket is a unit with a socket that systemd listens on and passes to the unit of a node.
type SystemdSocket struct {
	Name    string // of the address in firn serve that takes it: one of SocketNames
	Listen  string // host:port, with an IP address or no host, or the path of a Unix socket
	Service string // the unit of the node

	// User and Group own a Unix socket, and Mode are its permissions, in octal digits.
	User, Group, Mode string
}

// SocketNames are the addresses of firn serve that take a socket, without -addr.
var SocketNames = []string{"http", "admin", "grpc", "redis", "metrics"}

// NewSystemdSocket is the socket of HTTP, for the service of the packages.
func NewSystemdSocket() SystemdSocket {
	return SystemdSocket{
		Name: "http", Listen: ":8080", Service: "firn.service", User: "firn",
		Group: "firn", Mode: "0600",
	}
}

// IsPath tells whether it is a Unix socket.
func (s SystemdSocket) IsPath() bool { return strings.HasPrefix(s.Listen, "/") }

// Stream is what to listen on as systemd has it: a port alone is one of all addresses.
func (s SystemdSocket) Stream() string { return strings.TrimPrefix(s.Listen, ":") }

var (
	octal    = regexp.MustCompile(`^0[0-7]{3}$`)
	unitName = regexp.MustCompile(`^[A-Za-z0-9_.@-]{1,200}\.service$`)
)

// Text is the unit.
func (s SystemdSocket) Text(o Origin) (string, error) {
	var c checks
	c.that(slices.Contains(SocketNames, s.Name), "name", "%.40q is not an address of firn serve; want one of %s",
		s.Name, strings.Join(SocketNames, ", "))
	c.that(unitName.MatchString(s.Service), "service",
		"%.80q is not the name of a service; want one such as firn.service", s.Service)
	if s.IsPath() {
		const most = 107 // bytes in the path of a Unix socket
		c.path("listen", s.Listen)
		c.that(len(s.Listen) <= most, "listen", "%s has %d bytes; a Unix socket's path can have at most %d", s.Listen,
			len(s.Listen), most)
		c.named("user", s.User)
		c.named("group", s.Group)
		c.that(octal.MatchString(s.Mode), "mode", "%.40q is not a mode; want four octal digits such as 0660", s.Mode)
	} else {
		c.listen("listen", s.Listen)
		host, _, _ := net.SplitHostPort(s.Listen)
		_, err := netip.ParseAddr(host)
		c.that(host == "" || err == nil, "listen",
			"%.80q has a name; systemd wants an IP address, such as 10.0.0.1:8080, or none", s.Listen)
	}
	return c.text(o, "firn.socket", s)
}
