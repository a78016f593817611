package node

import (
	"cmp"
	"net"
	"os"
	"strings"

	"github.com/firn-id/firn/internal/base/unixsocket"
	"github.com/firn-id/firn/internal/core/peer"
)

// vitals returns the vital signs that the member can't know.
func (n *Node) vitals() peer.Vitals {
	v := n.service.Vitals()
	v.Version, v.Addresses, v.Since = n.config.Build.Version, n.reached, n.began
	return v
}

// reachedAt returns where others reach a node that listens, by protocol: http and admin are URLs. A Unix socket's
// address is as in its setting: only users of the machine reach it.
func (n *Node) reachedAt() map[string]string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	scheme := "http://"
	if n.tls != nil {
		scheme = "https://"
	}
	c, all := n.config, map[string]string{}
	for _, one := range []struct {
		name      string
		at        Address
		listen    string
		forPeople string
	}{
		{"http", Public, c.HTTPAddr, scheme},
		{"admin", Admin, c.AdminAddr, scheme},
		{"grpc", GRPC, c.GRPCAddr, ""},
		{"redis", Redis, c.RedisAddr, ""},
	} {
		switch at := n.Addr(one.at); {
		case one.listen == "":
		case unixsocket.Is(at):
			all[one.name] = at
		default:
			all[one.name] = one.forPeople + reached(one.listen, at, host)
		}
	}
	return all
}

// reached returns host:port where others reach a listener, from the address in its setting and the one that it has. An
// address without a host, or of any, gets the host's name.
func reached(setting, listens, name string) string {
	if strings.HasPrefix(setting, FromSystemd) {
		setting = listens
	}
	host, _, _ := net.SplitHostPort(setting)
	_, port, _ := net.SplitHostPort(listens)
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = ""
	}
	return net.JoinHostPort(cmp.Or(host, name), port)
}
