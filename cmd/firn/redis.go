package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/firn-id/firn/server/door"
	"github.com/firn-id/firn/server/respapi"
)

// redis is a server for Redis clients that listens; or, without an address, none.
type redis struct {
	server   *respapi.Server // nil: none
	listener net.Listener
	log      *slog.Logger
	failed   chan error // why it ended, if not by stop
	once     sync.Once
}

// listenForRedis listens where the flags say.
func (n *node) listenForRedis() (*redis, error) {
	r := &redis{log: n.log, failed: make(chan error, 1)}
	if n.redisAddr == "" {
		return r, nil
	}
	listener, err := net.Listen("tcp", n.redisAddr)
	if err != nil {
		var op *net.OpError
		if errors.As(err, &op) {
			err = op.Err
		}
		return nil, fmt.Errorf("can't listen on %s: %w; --redis-addr sets another address", n.redisAddr, err)
	}
	r.listener, r.server = listener, respapi.New(n.service, &door.Entrance{}, n.log)
	go func() {
		if err := r.server.Serve(listener); err != nil {
			r.failed <- err
		}
	}()
	n.log.Info("listening for Redis clients", "addr", r.addr())
	return r, nil
}

func (r *redis) addr() string { return r.listener.Addr().String() }

// stop listens no more and lets commands finish within the time given, which may be zero. Only the first call counts.
func (r *redis) stop(within time.Duration) {
	r.once.Do(func() {
		if r.server == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		if r.server.Shutdown(ctx) != nil && within > 0 {
			r.log.Warn("commands of Redis clients were cut off: they took too long to finish", "shutdown_timeout", within)
		}
		r.server.Close()
	})
}

// stopAll stops servers at the same time.
func stopAll(within time.Duration, servers ...interface{ stop(time.Duration) }) {
	var all sync.WaitGroup
	for _, s := range servers {
		all.Go(func() { s.stop(within) })
	}
	all.Wait()
}
