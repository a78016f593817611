//go:build !unix

package unixsocket

import (
	"errors"
	"io/fs"
	"net"
)

// errNoModes is why nobody listens here: every user of the machine could connect.
var errNoModes = errors.New("on this system a socket's mode does not keep other users out; want host:port")

// Listen returns an error.
func Listen(string, fs.FileMode) (net.Listener, error) { return nil, errNoModes }

// Living returns an error.
func Living(string) (bool, error) { return false, errNoModes }

// WithPeer returns c.
func WithPeer(c net.Conn) net.Conn { return c }
