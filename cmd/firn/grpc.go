package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/server/door"
	"github.com/firn-id/firn/server/grpcapi"
)

// rpc is a gRPC server that listens. Nil is none: it never fails, and stop does nothing.
type rpc struct {
	server   *grpcapi.Server
	listener net.Listener
	log      *slog.Logger
	failed   chan error // why it ended, if not by stop
	once     sync.Once
}

// listenRPC serves gRPC at an address; empty: nowhere.
func listenRPC(address string, s *server.Service, e *door.Entrance, log *slog.Logger) (*rpc, error) {
	if address == "" {
		return nil, nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) {
			err = op.Err
		}
		return nil, fmt.Errorf("can't listen on %s for gRPC: %w; --grpc-addr sets another address", address, err)
	}
	r := &rpc{server: grpcapi.New(s, e), listener: listener, log: log, failed: make(chan error, 1)}
	go func() {
		if err := r.server.Serve(listener); err != nil {
			r.failed <- err
		}
	}()
	return r, nil
}

func (r *rpc) addr() string { return r.listener.Addr().String() }

// failure is where it is told why it ended, if not by stop.
func (r *rpc) failure() <-chan error {
	if r == nil {
		return nil
	}
	return r.failed
}

// stop listens no more and lets calls finish within the time given, which may be zero. Only the first call counts.
func (r *rpc) stop(within time.Duration) {
	if r == nil {
		return
	}
	r.once.Do(func() {
		if err := r.server.Stop(within); err != nil {
			r.log.Warn("gRPC calls were cut off: they took too long to finish", "shutdown_timeout", within)
		}
	})
}
