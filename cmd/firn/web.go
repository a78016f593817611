package main

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

// publicFront is for everybody, over HTTP.
func (n *node) publicFront() (*front, error) {
	var options []httpapi.Option
	if n.metricsAddr == noAddress {
		options = append(options, n.withMetrics())
	}
	return n.webFront(publicDoor, "http-addr", n.httpAddr, n.api(&auth.Policy{Tokens: n.tokens}, options...))
}

// metricsFront is for who watches the node, and needs no token: over HTTP, too.
func (n *node) metricsFront() (*front, error) {
	if n.metricsAddr == noAddress {
		return nil, nil
	}
	return n.webFront(metricsDoor, "metrics-addr", n.metricsAddr, httpapi.NewProbes(n.service, n.withMetrics()))
}

func (n *node) withMetrics() httpapi.Option { return httpapi.WithMetrics(n.metrics.Handler(n.log)) }

// adminFront is for administrators, over HTTP.
func (n *node) adminFront() (*front, error) {
	if n.adminAddr == noAddress {
		return nil, nil
	}
	e := &auth.Policy{Tokens: n.tokens, Trusted: true, Secret: n.secret}
	mux := http.NewServeMux()
	mux.Handle("/", n.api(e, httpapi.WithProfiles(), n.withMetrics()))
	mux.Handle("GET /{$}", http.RedirectHandler(ui.Root, http.StatusSeeOther))
	mux.Handle(ui.Root, ui.New(n.service, e, ui.Options{Given: n.given}))
	return n.webFront(adminDoor, "admin-addr", n.adminAddr, mux)
}

// api is what is served for programs, over HTTP.
func (n *node) api(e *auth.Policy, options ...httpapi.Option) http.Handler {
	return n.traces.web(httpapi.New(n.service, e, options...))
}

func (n *node) webFront(d aDoor, flag, address string, handler http.Handler) (*front, error) {
	listener, err := n.listenOn(d, flag, address)
	if err != nil {
		return nil, err
	}
	s := newWeb(handler, n.tls, log.New(webErrors{n, d}, "", 0))
	f := &front{
		name: d.log, listener: listener, serve: s.Serve, shutdown: s.Shutdown,
		close: func() { _ = s.Close() }, // it listens no more
	}
	if n.tls != nil {
		f.serve = func(l net.Listener) error { return s.ServeTLS(l, "", "") }
	}
	return f, nil
}

func newWeb(handler http.Handler, config *tls.Config, errors *log.Logger) *http.Server {
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

// urlOf is how to get to an address from this machine.
func urlOf(address string, secure bool) string {
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
