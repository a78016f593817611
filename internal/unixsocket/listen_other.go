//go:build !unix

package unixsocket

import (
	"errors"
	"io/fs"
	"net"
)

// Listen returns an error: this system has no modes for sockets.
func Listen(string, fs.FileMode) (net.Listener, error) { return nil, errors.ErrUnsupported }

// Living returns an error.
func Living(string) (bool, error) { return false, errors.ErrUnsupported }

// WithPeer returns c.
func WithPeer(c net.Conn) net.Conn { return c }
