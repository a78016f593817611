package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cluster"
	"github.com/firn-id/firn/internal/console"
	"github.com/firn-id/firn/internal/server"
	"github.com/firn-id/firn/internal/server/auth"
	"github.com/firn-id/firn/internal/server/conns"
	"github.com/firn-id/firn/internal/server/limits"
	"github.com/firn-id/firn/internal/server/metrics"
	"github.com/firn-id/firn/internal/server/ui"
	"github.com/firn-id/firn/internal/throttle"
	"github.com/firn-id/firn/member"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/etcdstore"
)

// node is one process of the service.
type node struct {
	settings
	limits  limits.Limits
	stderr  io.Writer
	log     *slog.Logger
	audit   *throttle.Log // who has changed something, was not let in, or did not come to speak TLS
	open    func() (closingStore, error)
	member  joining
	service *server.Service
	metrics *metrics.Metrics
	doors   map[string]conns.Counter // by the names that metrics have for them; nobody asks before all listen
	callers *conns.Limiter           // of all addresses but those of administrators and for metrics
	admins  *conns.Limiter           // of those
	tokens  auth.Identifier          // nil: whoever comes may take IDs
	secret  *auth.Secret             // what administrators show where there are no tokens
	tls     *tls.Config              // nil: none
	traces  *traces                  // nil: none

	// What a node has that is one of several in a process, see firn demo.
	owner string                // what others are told of it; empty: host and process
	clock *firn.SteadyClock     // nil: this machine's
	told  bool                  // others know where the secret is
	gate  *gate                 // what comes and goes has to pass it; nil: there is none
	given func() []ui.NodeGiven // how many IDs each of them has given; nil: it is the only one
}

// newNode checks the rest of the configuration. Nothing is opened, and nothing listens.
func newNode(s settings, stderr io.Writer) (*node, error) {
	n := &node{settings: s, stderr: stderr, log: newLogger(stderr, s.logFormat, s.logLevel)}
	n.audit, n.secret = throttle.New(n.log), auth.NewSecret()
	n.member.layout = s.layout
	fit, _ := s.fit()
	n.limits = s.chosen(fit)
	n.callers = conns.NewLimiter(n.limits.Connections, n.log)
	n.admins = conns.NewLimiter(max(16, n.limits.Connections/16), n.log)
	n.metrics, n.doors = newMetrics(), map[string]conns.Counter{}
	n.service = server.New(&n.member, &n.member, server.Options{
		NoAutoAttach: s.noAutoAttach, MaxSequencers: int(s.maxSequencers),
		MaxCalls: n.limits.Calls, MaxAnswers: n.limits.Answers, Log: n.log, Audit: n.audit, Meter: n.metrics,
	})
	if err := n.openDoor(); err != nil {
		return nil, usageError{err}
	}
	n.watch()
	if err := n.memberOptions().ValidateFor(member.DefaultSequencer, n.definition()); err != nil {
		return nil, usageError{err}
	}
	if n.otlpEndpoint != "" {
		t, err := openTraces(n.otlpEndpoint, n.otlpRatio, n.log)
		if err != nil {
			return nil, usageError{err}
		}
		n.traces = t
	}
	if len(s.etcd.Endpoints) == 0 {
		n.open = n.embed
		return n, nil
	}
	s.etcd.Logger, s.etcd.DialOptions = n.log, n.traces.asked()
	external, err := etcdstore.Open(s.etcd)
	n.open = func() (closingStore, error) { return external, nil }
	if err != nil {
		return nil, usageError{err}
	}
	return n, nil
}

// openDoor reads the tokens and certificates.
func (n *node) openDoor() error {
	if n.tokensFile != "" {
		tokens, err := auth.OpenTokens(n.tokensFile, n.log)
		if err != nil {
			return err
		}
		n.tokens = tokens
	}
	if n.certificates == (conns.TLSFiles{}) {
		return nil
	}
	config, err := conns.OpenTLS(n.certificates, n.log)
	n.tls = config
	return err
}

func (n *node) memberOptions() member.Options {
	owner := n.owner
	if owner == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "unknown host"
		}
		owner = fmt.Sprintf("%s, process %d", host, os.Getpid())
	}
	return member.Options{
		Nodes: n.wish, TTL: n.ttl, Window: n.window, RandomStart: n.randomStart,
		Owner: owner, Clock: n.clock, Logger: n.log,
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

// sayWhoMay says in the log who may do what.
func (n *node) sayWhoMay() {
	switch {
	case n.tokens != nil:
		n.log.Info("every call needs a token", "tokens", n.tokensFile)
	case n.adminAddr == noAddress:
		n.log.Info("there are no tokens: IDs are for whoever asks, and nobody can administer")
	default:
		n.log.Info("there are no tokens: IDs are for whoever asks, users of this machine may look at the cluster, and who has started this node may change it")
	}
}

// ballast is memory that is never touched, and so never there. The garbage collector runs when the heap has doubled;
// without, it is 4 MB, and would be collected 18 times a second under load.
const ballast = 16 << 20

// serve is the life of a node that has the process for itself, until ctx ends or it can't go on.
func (n *node) serve(ctx context.Context) error {
	defer runtime.KeepAlive(make([]byte, ballast))
	n.limitMemory()
	full, enough := context.WithCancel(ctx)
	defer enough()
	go n.shed(full)
	defer n.traces.close(n.log)
	fronts, err := n.listen()
	if err != nil {
		return err
	}
	return n.live(ctx, fronts)
}

// live is the life of a node that listens already, so that who looks sees it alive, though not ready, while it
// joins.
func (n *node) live(ctx context.Context, fronts *fronts) error {
	defer n.audit.Flush()
	defer fronts.stop(n, 0) // when not stopped before
	fronts.start()
	n.log.Info("listening", fronts.addresses()...)
	n.sayWhoMay()
	opened, err := n.openStore(ctx)
	if err != nil || opened == nil {
		return err
	}
	defer n.closeStore(opened)
	defer n.keepSecret(fronts)()                                // not earlier: now the data directory is this process's alone
	life, end := context.WithCancel(context.WithoutCancel(ctx)) // it outlives ctx, to serve on
	defer end()
	begin := func() <-chan error {
		joined := make(chan error, 1)
		go func() { joined <- n.join(life, opened) }()
		return joined
	}
	joined := begin()
	n.greet(fronts)

	for left := (<-chan struct{})(nil); ; {
		select {
		case <-ctx.Done():
			n.drain(ctx, fronts)
			end()
			return explain(n.member.leave(joined))
		case err := <-joined:
			joined = nil
			if err != nil {
				fronts.stop(n, n.shutdownWithin)
				return errors.Join(explain(err), n.member.leave(nil))
			}
			left = n.member.Load().Done()
		case <-left:
			err := n.member.Load().Err()
			if errors.Is(err, store.ErrRolledBack) { // a process that starts again would know less
				n.log.Warn("joining the cluster again, as the store is now")
				joined, left = begin(), nil
				continue
			}
			fronts.stop(n, n.shutdownWithin)
			return err
		case err := <-fronts.failed:
			end()
			return errors.Join(err, n.member.leave(joined))
		}
	}
}

// drain ends the service without an error to anybody: first nobody shall come any more, then whoever
// is there is served.
func (n *node) drain(ctx context.Context, fronts *fronts) {
	n.service.Drain()
	n.log.Info("stopping: not ready, and serving on", "why", context.Cause(ctx), "drain_delay", n.drainDelay)
	select {
	case <-time.After(n.drainDelay):
	case err := <-fronts.failed:
		n.log.Error("it serves no more", "err", err)
	}
	fronts.stop(n, n.shutdownWithin)
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
func (n *node) greet(fronts *fronts) {
	if !console.IsTerminal(n.stderr) {
		return
	}
	fmt.Fprintf(n.stderr, "\nfirn serves IDs on %s; try\n\n  curl -X POST %[1]s/api/v1/id\n\n", urlOf(fronts.all[0].listener.Addr().String(), n.tls != nil))
	if n.adminAddr != noAddress {
		what, login := "and look at the cluster with a browser:", ui.Login{}
		if n.tokens == nil {
			what, login.Code = "and look at the cluster with a browser (this address is good once; firn cluster dashboard prints another):", n.secret.NewLogin()
		}
		fmt.Fprintf(n.stderr, "%s\n\n  %s\n\n", what, login.Address(adminURL(fronts.at(adminDoor), n.tls != nil)))
	}
}
