package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/firn-id/firn/cluster"
	"github.com/firn-id/firn/member"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/server/door"
	"github.com/firn-id/firn/server/httpapi"
	"github.com/firn-id/firn/store/etcdstore"
)

// node is one process of the service.
type node struct {
	settings
	stderr  io.Writer
	log     *slog.Logger
	open    func() (closingStore, error)
	member  joining
	service *server.Service
}

// newNode checks the rest of the configuration. Nothing is opened, and nothing listens.
func newNode(s settings, stderr io.Writer) (*node, error) {
	n := &node{settings: s, stderr: stderr, log: newLogger(stderr, s.logFormat, s.logLevel)}
	n.member.layout = s.layout
	n.service = server.New(&n.member, &n.member, server.Options{NoAutoAttach: s.noAutoAttach, Log: n.log})
	if err := n.memberOptions().ValidateFor(member.DefaultSequencer, n.definition()); err != nil {
		return nil, usageError{err}
	}
	if len(s.etcd.Endpoints) == 0 {
		n.open = n.embed
		return n, nil
	}
	s.etcd.Logger = n.log
	external, err := etcdstore.Open(s.etcd)
	n.open = func() (closingStore, error) { return external, nil }
	if err != nil {
		return nil, usageError{err}
	}
	return n, nil
}

func (n *node) memberOptions() member.Options {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return member.Options{
		Nodes: n.wish, TTL: n.ttl, Window: n.window, RandomStart: n.randomStart,
		Owner: fmt.Sprintf("%s, process %d", host, os.Getpid()), Logger: n.log,
	}
}

// wish is for the node IDs that the flags say: a node is that of the default sequencer, a datacenter that of every
// sequencer which has it.
func (n *node) wish(name string, d cluster.Definition) *cluster.Range {
	if name == member.DefaultSequencer {
		return n.nodes
	}
	if !n.inDatacenter {
		return nil
	}
	first, last, err := d.IDLayout().DatacenterNodes(n.datacenter)
	if err != nil {
		return nil
	}
	return &cluster.Range{From: first, To: last}
}

// definition is that of the sequencer which serves those who name none.
func (n *node) definition() cluster.Definition { return cluster.Define(n.layout) }

// serve is the life of the node, until ctx ends or it can't go on. It listens first, so that who looks
// sees it alive, though not ready, while it joins.
func (n *node) serve(ctx context.Context) error {
	web, err := listen(n.httpAddr, httpapi.New(n.service, &door.Entrance{Trusted: true}), n.log)
	if err != nil {
		return err
	}
	defer web.stop(0) // when not stopped before
	n.log.Info("listening", "addr", web.addr())
	redis, err := n.listenForRedis()
	if err != nil {
		return err
	}
	defer redis.stop(0) // when not stopped before
	opened, err := n.openStore(ctx)
	if err != nil || opened == nil {
		return err
	}
	defer n.closeStore(opened)
	life, end := context.WithCancel(context.WithoutCancel(ctx)) // it outlives ctx, to serve on
	defer end()
	joined := make(chan error, 1)
	go func() { joined <- n.join(life, opened) }()
	n.greet(web.url())

	for left := (<-chan struct{})(nil); ; {
		select {
		case <-ctx.Done():
			n.drain(ctx, web, redis)
			end()
			return explain(n.member.leave(joined))
		case err := <-joined:
			joined = nil
			if err != nil {
				stopAll(n.shutdownWithin, web, redis)
				return errors.Join(explain(err), n.member.leave(nil))
			}
			left = n.member.Load().Done()
		case <-left:
			stopAll(n.shutdownWithin, web, redis)
			return n.member.Load().Err()
		case err := <-web.failed:
			end()
			return errors.Join(fmt.Errorf("serving HTTP: %w", err), n.member.leave(joined))
		case err := <-redis.failed:
			end()
			return errors.Join(fmt.Errorf("serving Redis clients: %w", err), n.member.leave(joined))
		}
	}
}

// drain ends the service without an error to anybody: first nobody shall come any more, then whoever
// is there is served.
func (n *node) drain(ctx context.Context, web *web, redis *redis) {
	n.log.Info("stopping: not ready, and serving on", "why", context.Cause(ctx), "drain_delay", n.drainDelay)
	n.service.Drain()
	select {
	case <-time.After(n.drainDelay):
	case err := <-web.failed:
		n.log.Error("serving HTTP", "err", err)
	case err := <-redis.failed:
		n.log.Error("serving Redis clients", "err", err)
	}
	stopAll(n.shutdownWithin, web, redis)
	n.log.Info("stopped serving, leaving the cluster")
}

// explain says what to do about an error that ends a member.
func explain(err error) error {
	if errors.Is(err, member.ErrSequencerExists) {
		return fmt.Errorf("%w; --layout and --epoch must be those of the cluster's first start", err)
	}
	if status(err) == statusNoNode {
		return fmt.Errorf("%w; --wait waits", err)
	}
	return err
}

func newLogger(w io.Writer, format string, level slog.Level) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// greet tells a person who has just started it what to do next.
func (n *node) greet(url string) {
	f, ok := n.stderr.(*os.File)
	if !ok {
		return
	}
	if info, err := f.Stat(); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return
	}
	fmt.Fprintf(n.stderr, "\nfirn serves IDs on %s; try\n\n  curl -X POST %[1]s/api/v1/id\n\n", url)
}
