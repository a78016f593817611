package auth

import (
	"net"
	"net/netip"
	"strings"
)

// Loopback tells whether only this machine can reach an address of this host: an IP address or a name, without a port.
func Loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// LocalHost tells whether the host of a request, with or without a port, is an IP address or "localhost": a name that
// no page on the web can have sent a browser to by having it resolve to 127.0.0.1. A listener that trusts whoever is on
// this machine refuses others.
func LocalHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	} else {
		host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	_, err := netip.ParseAddr(host)
	return err == nil || strings.EqualFold(strings.TrimSuffix(host, "."), "localhost")
}
