// Package unixsocket listens on Unix sockets, and connects to them. Their addresses begin with "unix:", and go on with
// an absolute path: unix:/run/firn/firn.sock. The mode of a socket's file decides which users of the machine can
// connect.
package unixsocket

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"time"
	"unicode"
)

// Scheme begins every address of a Unix socket.
const Scheme = "unix:"

// maxPath is the most bytes of a path that the system takes, with its closing zero byte: 107 on Linux, 103 on macOS.
const maxPath = len(syscall.RawSockaddrUnix{}.Path) - 1

// Is reports whether an address is that of a Unix socket.
func Is(address string) bool { return strings.HasPrefix(address, Scheme) }

// Parse returns the path in an address. An error is returned when the address is of another kind, or the path is
// relative, longer than the system takes (107 bytes on Linux, 103 on macOS), or has spaces or characters that can't be
// printed.
func Parse(address string) (path string, err error) {
	path, ok := strings.CutPrefix(address, Scheme)
	switch {
	case !ok || !filepath.IsAbs(path):
		return "", fmt.Errorf("%.120q is not the address of a Unix socket; want one with an absolute path, such as "+
			"unix:/run/firn/firn.sock", address)
	case strings.ContainsFunc(path, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }):
		return "", fmt.Errorf("the path %q has a space or a character that can't be printed; want a path without", path)
	}
	if path = filepath.Clean(path); len(path) > maxPath {
		return "", fmt.Errorf("the path %s has %d bytes; a Unix socket's can have at most %d", path, len(path), maxPath)
	}
	return path, nil
}

// Network returns the network and the address for [net.Dial]: "unix" with a path, or "tcp" with what is no Unix socket.
func Network(address string) (network, at string) {
	if path, err := Parse(address); err == nil {
		return "unix", path
	}
	return "tcp", address
}

// AddressOf returns the address of a listener as settings have it.
func AddressOf(a net.Addr) string {
	if a.Network() == "unix" {
		return Scheme + a.String()
	}
	return a.String()
}

// URL returns the URL for requests over HTTP to a Unix socket: their transport must connect to the socket itself.
const URL = "http://localhost"

// Transport returns a copy of a transport that connects to a Unix socket instead of the hosts in URLs, and uses no
// proxy.
func Transport(t *http.Transport, path string) *http.Transport {
	t = t.Clone()
	t.Proxy = nil
	t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{Timeout: dialWithin}).DialContext(ctx, "unix", path)
	}
	return t
}

const dialWithin = 5 * time.Second

// ParseURL reads an address or a URL of a server. A Unix socket becomes a URL with the scheme unix, no host, and its
// path.
func ParseURL(text string) (*url.URL, error) {
	if !Is(text) {
		return url.Parse(text)
	}
	path, err := Parse(text)
	if err != nil {
		return nil, err
	}
	return &url.URL{Scheme: "unix", Path: path, OmitHost: true}, nil
}
