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

// LocalHost tells whether the host of a request, with or without a port, is an IP address or "localhost". Any other
// name may be one that a page on the web has made resolve to 127.0.0.1. A listener that trusts users of this machine
// refuses those.
func LocalHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	} else {
		host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	_, err := netip.ParseAddr(host)
	return err == nil || strings.EqualFold(strings.TrimSuffix(host, "."), "localhost")
}
