// Package host tells callers apart by where their connections come from.
package host

import (
	"net"
	"net/netip"
)

// Of returns the host of an address, an IPv6 address with the rest of its /64; the zero value: it has none.
func Of(a net.Addr) netip.Prefix {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	addr := tcp.AddrPort().Addr().Unmap().WithZone("")
	bits := 64
	if addr.Is4() {
		bits = 32
	}
	p, _ := addr.Prefix(bits) // they all have as many
	return p
}
