package node

import (
	"crypto/tls"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/firn-id/firn/internal/server"
	"github.com/firn-id/firn/internal/server/auth"
	"github.com/firn-id/firn/internal/server/conns"
	"github.com/firn-id/firn/internal/server/httpapi"
	"github.com/firn-id/firn/internal/server/ui"
)

// Limits on what clients may do to the server. An answer takes at most 10 s to begin.
const (
	readHeaderWithin = 5 * time.Second
	readWithin       = 15 * time.Second
	writeWithin      = 30 * time.Second
	idleFor          = 2 * time.Minute
	maxHeader        = 16 << 10
	maxStreams       = 100 // calls at a time over one connection of HTTP/2
)

// publicServer is for everybody, over HTTP.
func (n *Node) publicServer() (*protocolServer, error) {
	var options []httpapi.Option
	if n.config.MetricsAddr == "" {
		options = append(options, n.withMetrics())
	}
	return n.httpServer(Public, n.config.HTTPAddr, n.api(&auth.Policy{Tokens: n.tokens}, options...))
}

// metricsServer is for who watches the node, and needs no token: over HTTP, too.
func (n *Node) metricsServer() (*protocolServer, error) {
	if n.config.MetricsAddr == "" {
		return nil, nil
	}
	return n.httpServer(Metrics, n.config.MetricsAddr, httpapi.NewProbes(n.service, n.withMetrics()))
}

func (n *Node) withMetrics() httpapi.Option { return httpapi.WithMetrics(n.metrics.Handler(n.log)) }

// adminServer is for administrators, over HTTP.
func (n *Node) adminServer() (*protocolServer, error) {
	if n.config.AdminAddr == "" {
		return nil, nil
	}
	e := &auth.Policy{Tokens: n.tokens, Trusted: true, Secret: n.secret}
	mux := http.NewServeMux()
	mux.Handle("/", n.api(e, httpapi.WithProfiles(), n.withMetrics()))
	mux.Handle("GET /{$}", http.RedirectHandler(ui.Root, http.StatusSeeOther))
	mux.Handle(ui.Root, ui.New(n.service, e, ui.Options{Given: n.config.Given}))
	return n.httpServer(Admin, n.config.AdminAddr, mux)
}

// api is what is served for programs, over HTTP.
func (n *Node) api(e *auth.Policy, options ...httpapi.Option) http.Handler {
	return n.traces.web(httpapi.New(n.service, e, options...))
}

func (n *Node) httpServer(a Address, address string, handler http.Handler) (*protocolServer, error) {
	listener, err := n.listenOn(a, address)
	if err != nil {
		return nil, err
	}
	s := newHTTP(handler, n.tls, log.New(httpErrors{n, a}, "", 0))
	f := &protocolServer{
		Address: a, listener: listener, serve: s.Serve, shutdown: s.Shutdown,
		close: func() { _ = s.Close() }, // it listens no more
	}
	if n.tls != nil {
		f.serve = func(l net.Listener) error { return s.ServeTLS(l, "", "") }
	}
	return f, nil
}

func newHTTP(handler http.Handler, config *tls.Config, errors *log.Logger) *http.Server {
	return &http.Server{
		Handler:           handler,
		TLSConfig:         config.Clone(), // it is changed
		ReadHeaderTimeout: readHeaderWithin,
		ReadTimeout:       readWithin,
		WriteTimeout:      writeWithin,
		IdleTimeout:       idleFor,
		MaxHeaderBytes:    maxHeader,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams, WriteByteTimeout: server.TakeSlack},
		ConnState:         countCalls,
		ConnContext:       httpapi.ConnContext,
		ErrorLog:          errors,
	}
}

// countCalls tells which connections are idle.
func countCalls(c net.Conn, state http.ConnState) {
	switch state {
	case http.StateActive:
		conns.Begin(c)
	case http.StateIdle:
		conns.End(c)
	}
}

// URL is how a person gets to an address of this machine: by name, where it has one.
func URL(address string, secure bool) string {
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

// URL is how a person on this machine gets to the node.
func (n *Node) URL() string { return URL(n.Addr(Public), n.tls != nil) }

// AdminURL is how to get to where the node is administered, if it is; else empty. It is never by a name, or whoever listens at another
// address of that name could have the login.
func (n *Node) AdminURL() string {
	at := n.Addr(Admin)
	switch {
	case at == "":
		return ""
	case n.tls != nil:
		return "https://" + Reachable(at)
	default:
		return "http://" + Reachable(at)
	}
}

// Reachable is an address to connect to for one to listen on.
func Reachable(address string) string {
	host, port, _ := net.SplitHostPort(address)
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}
