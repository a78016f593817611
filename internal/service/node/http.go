package node

import (
	"crypto/tls"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/firn-id/firn/internal/base/unixsocket"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/httpapi"
)

// Limits on clients.
const (
	readHeaderWithin = 5 * time.Second
	readWithin       = 15 * time.Second
	// an answer begins within 10 s; the handler sets later limits for long ones
	writeWithin = 10*time.Second + calls.TakeSlack
	idleFor     = 2 * time.Minute
	maxHeader   = 16 << 10
	maxStreams  = 100 // calls at a time over one HTTP/2 connection
)

func newHTTP(handler http.Handler, budget *httpapi.Budget, config *tls.Config, errors *log.Logger) *http.Server {
	return &http.Server{
		Handler:           budget.Handler(handler),
		TLSConfig:         config.Clone(), // http.Server changes it
		ReadHeaderTimeout: readHeaderWithin,
		ReadTimeout:       readWithin,
		WriteTimeout:      writeWithin,
		IdleTimeout:       idleFor,
		MaxHeaderBytes:    maxHeader,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams, WriteByteTimeout: calls.TakeSlack},
		ConnContext:       budget.ConnContext,
		ErrorLog:          errors,
	}
}

// URL returns the URL of an address on this machine for people: with localhost where it can. A Unix socket's is its
// address.
func URL(address string, secure bool) string {
	if unixsocket.Is(address) {
		return address
	}
	host, port, _ := net.SplitHostPort(address)
	if ip := net.ParseIP(host); host == "" || ip != nil && (ip.IsUnspecified() || ip.IsLoopback()) {
		host = "localhost"
	}
	scheme := "http://"
	if secure {
		scheme = "https://"
	}
	return scheme + net.JoinHostPort(host, port)
}

// URL returns the URL of the node for people on this machine.
func (n *Node) URL() string { return URL(n.Addr(Public), n.tls != nil) }

// AdminURL returns the URL for administrators, or the address of their Unix socket, and "" when the node does not
// listen for them. It has no host name: a process that listens at another address of that name could get the login.
func (n *Node) AdminURL() string {
	at := n.Addr(Admin)
	switch {
	case at == "" || unixsocket.Is(at):
		return at
	case n.tls != nil:
		return "https://" + Reachable(at)
	default:
		return "http://" + Reachable(at)
	}
}

// Reachable returns the address to connect to for an address to listen on.
func Reachable(address string) string {
	host, port, _ := net.SplitHostPort(address)
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}
