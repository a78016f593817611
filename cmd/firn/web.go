package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

// Limits on what clients may do to the server. An answer takes at most 10 s to begin.
const (
	readHeaderWithin = 5 * time.Second
	readWithin       = 15 * time.Second
	writeWithin      = 30 * time.Second
	idleFor          = 2 * time.Minute
	maxHeader        = 16 << 10
)

// web is an HTTP server that listens.
type web struct {
	server   *http.Server
	listener net.Listener
	log      *slog.Logger
	failed   chan error // why it ended, if not by stop
	once     sync.Once
}

func listen(address string, handler http.Handler, log *slog.Logger) (*web, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) {
			err = op.Err
		}
		return nil, fmt.Errorf("can't listen on %s: %w; --http-addr sets another address", address, err)
	}
	w := &web{
		listener: listener, log: log, failed: make(chan error, 1),
		server: &http.Server{
			Handler:           handler,
			ReadHeaderTimeout: readHeaderWithin,
			ReadTimeout:       readWithin,
			WriteTimeout:      writeWithin,
			IdleTimeout:       idleFor,
			MaxHeaderBytes:    maxHeader,
			ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		},
	}
	go func() {
		if err := w.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			w.failed <- err
		}
	}()
	return w, nil
}

func (w *web) addr() string { return w.listener.Addr().String() }

// url is how to get there from this machine.
func (w *web) url() string {
	host, port, _ := net.SplitHostPort(w.addr())
	if ip := net.ParseIP(host); ip != nil && (ip.IsUnspecified() || ip.IsLoopback()) {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// stop listens no more and lets requests finish within the time given, which may be zero. Only the first
// call counts.
func (w *web) stop(within time.Duration) {
	w.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		if w.server.Shutdown(ctx) == nil {
			return
		}
		if within > 0 {
			w.log.Warn("requests were cut off: they took too long to finish", "shutdown_timeout", within)
		}
		_ = w.server.Close() // the listener is closed already
	})
}
