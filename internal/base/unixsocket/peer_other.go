//go:build unix && !linux

package unixsocket

import "net"

// WithPeer returns c.
func WithPeer(c net.Conn) net.Conn { return c }
