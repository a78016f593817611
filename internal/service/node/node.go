// Package node runs one node of the service: it opens the store, joins the cluster, and serves IDs over every
// protocol until its context ends. A Config determines everything that it does. The package has no flags and
// prints nothing: a node writes to a log.
package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/space"
	"github.com/firn-id/firn/internal/base/throttle"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/fence"
	"github.com/firn-id/firn/internal/core/journal"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/admit/conns"
	"github.com/firn-id/firn/internal/service/admit/limits"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/forward"
	"github.com/firn-id/firn/internal/service/idtext"
	"github.com/firn-id/firn/internal/service/metrics"
	"github.com/firn-id/firn/internal/service/stores"
)

// Node is one node of the service. Make it with New; it runs once. Call Listen first; the other methods are safe
// for concurrent use.
type Node struct {
	config  Config
	began   time.Time
	reached map[string]string // where others reach it, once it listens
	limits  limits.Limits
	log     *slog.Logger
	audit   *throttle.Log // changes, refused callers, and failed TLS handshakes
	open    func(ctx context.Context) (Store, error)
	quorum  quorumPart    // nil: the store is another
	begun   chan struct{} // closed when the member may open the store
	opened  chan struct{} // closed when the store is open
	store   Store         // set before opened is closed
	member  *peer.Member
	service *calls.Service
	metrics *metrics.Metrics
	servers *servers
	// of connections, by the addresses' names in metrics; complete once the node listens
	counts  map[string]conns.Counter
	callers *conns.Limiter      // on all addresses but those for administrators and metrics
	admins  *conns.Limiter      // on those
	tokens  auth.Identifier     // nil: anyone may take IDs
	seals   func() *idtext.Keys // nil: the node seals and opens no IDs
	secret  *auth.Secret        // for administrators, if there are no tokens
	forget  func()              // removes the secret's file; set before opened is closed
	tls     *tls.Config         // nil: none
	forward *forward.Client     // nil: other nodes are not asked for IDs
	traces  *traces             // nil: none
	journal *os.File            // nil: none
	unwatch context.CancelFunc  // ends the watch for resumes of the system
}

// New checks a configuration, and reads its tokens and certificates. It opens no store and does not listen. Every
// error is about the configuration, and a SettingError if one setting is wrong.
func New(c Config) (*Node, error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	n := &Node{
		config: c, began: time.Now(), log: c.Logger, audit: throttle.New(c.Logger), secret: c.Secret,
		begun: make(chan struct{}), opened: make(chan struct{}), forget: func() {}, counts: map[string]conns.Counter{},
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	if n.secret == nil {
		n.secret = auth.NewSecret()
	}
	fit, _ := c.fit()
	n.limits = c.chosen(fit)
	n.callers = conns.NewLimiter(n.limits.Connections, n.log)
	n.admins = conns.NewLimiter(max(16, n.limits.Connections/16), n.log)
	n.metrics = metrics.New(c.Build)
	if c.TokensFile != "" {
		tokens, err := auth.OpenTokens(c.TokensFile, n.log)
		if err != nil {
			return nil, err
		}
		n.tokens = tokens
	}
	var err error
	if c.SealKeyFile != "" {
		if n.seals, err = idtext.OpenKeys(c.SealKeyFile, n.log); err != nil {
			return nil, err
		}
	}
	if c.TLS != (conns.TLSFiles{}) {
		if n.tls, err = conns.OpenTLS(c.TLS, n.log); err != nil {
			return nil, err
		}
	}
	if c.OTLPEndpoint != "" {
		if n.traces, err = openTraces(c.OTLPEndpoint, c.OTLPRatio, c.Build.Version, n.log); err != nil {
			return nil, err
		}
	}
	switch {
	case c.Store != nil:
		n.open = func(context.Context) (Store, error) { return c.Store() }
	case c.Keeps():
		q, err := n.newQuorum()
		if err != nil {
			return nil, err
		}
		n.use(q)
	default:
		c.Etcd.DialOptions = n.traces.asked()
		external, err := c.Open(n.log)
		if err != nil {
			return nil, err
		}
		n.open = func(context.Context) (Store, error) { return external, nil }
	}
	if err := c.memberOptions().Validate(); err != nil {
		return nil, err
	}
	return n, nil
}

// begin starts the member, which opens the store once Run is called, and makes its service.
func (n *Node) begin() (err error) {
	c := n.config
	options := c.memberOptions()
	options.Vitals = n.vitals // called once the store is open
	watching, unwatch := context.WithCancel(context.Background())
	n.unwatch = unwatch
	if options.Resumed, err = peer.Resumes(watching); err != nil {
		n.log.Debug("this node notices a resume from a snapshot only at its next renewal", "err", err)
	}
	if c.Journal != "" {
		if n.journal, err = journal.Open(c.Journal); err != nil {
			return fmt.Errorf("can't keep a journal: %w", err)
		}
		options.Journal = n.journal
	}
	if n.member, err = peer.Start(n.openStore, options); err != nil {
		return err
	}
	o := calls.Options{
		NoAutoAttach: c.NoAutoAttach, MaxSequencers: c.MaxSequencers, Window: c.Window, Layout: c.Layout, Keys: n.seals,
		MaxCalls: n.limits.Calls, MaxAnswers: n.limits.Answers, Log: n.log, Audit: n.audit, Meter: n.metrics,
	}
	if !c.NoForward {
		n.forward = forward.New(n.member.Cluster, n.tls, n.traces.onward)
		o.Forwarder = n.forward
	}
	switch {
	case n.isOne():
		o.Disk = func() (space.Room, bool) { return space.Of(c.DataDir) }
	case n.quorum != nil:
		o.Quorum = n.quorum
	}
	n.service = calls.New(n.member, o)
	n.metrics.Watch(metrics.Node{
		Service: n.service, Member: func() *peer.Member { return n.member }, Store: n.storeOrNil,
		Listeners: n.counts, Window: c.Window, TLS: n.tls, Disks: c.disks,
	})
	return nil
}

// end ends what begin began, also if that failed.
func (n *Node) end() {
	if n.member != nil {
		n.member.Leave()
	}
	n.unwatch()
	if n.journal != nil {
		n.journal.Close()
	}
}

// disks returns how much room there is where the node writes.
func (c Config) disks() map[string]space.Room {
	all := map[string]space.Room{}
	for directory, path := range map[string]string{"data": c.DataDir, "journal": c.Journal} {
		if path == "" {
			continue
		}
		if room, ok := space.Of(path); ok {
			all[directory] = room
		}
	}
	return all
}

// logAccess logs what callers may do.
func (n *Node) logAccess() {
	switch {
	case n.tokens != nil:
		n.log.Info("every call requires a token", "tokens", n.config.TokensFile)
	case n.config.AdminAddr == "":
		n.log.Info("no tokens: anyone can take IDs, and nobody can change the cluster here")
	default:
		n.log.Info("no tokens: anyone can take IDs, users of this machine can look at the cluster, and the user who " +
			"started this node can change it")
	}
}

// isOne reports whether the node keeps its data for itself.
func (n *Node) isOne() bool { return n.config.Store == nil && n.config.StoreKind() == stores.Directory }

// logAlone warns of a second node, where this one keeps its data for itself.
func (n *Node) logAlone() {
	if n.isOne() {
		n.log.Warn("this node is alone: a second node started the same way is another cluster, and gives the same IDs",
			"data_dir", n.config.DataDir,
			"do", "for several nodes give each the same --quorum, or the same --store that they share")
	}
}

// ballast is the size in bytes of memory that the process allocates and never touches, so that the kernel never
// provides it. The garbage collector runs when the heap has doubled; without ballast the heap is 4 MB, and the
// collector runs 18 times a second under load.
const ballast = 16 << 20

// Serve runs the only node of a process until ctx ends or the node fails: it also limits the memory of the
// process, and reports to systemd. It returns a SettingError when it can't listen or can't open its store.
func (n *Node) Serve(ctx context.Context) error {
	if err := n.Listen(); err != nil {
		return err
	}
	if without != "" {
		n.log.Warn("firn's tests run on Linux, and on this system it is without "+without, "system",
			runtime.GOOS+"/"+runtime.GOARCH)
	}
	defer n.supervised()()
	defer runtime.KeepAlive(make([]byte, ballast))
	n.limitMemory()
	full, enough := context.WithCancel(ctx)
	defer enough()
	go n.shed(full)
	return n.Run(ctx)
}

// Run runs a node that listens already, until ctx ends or the node fails. While it joins, its probes report that
// it is alive and not ready.
func (n *Node) Run(ctx context.Context) error {
	defer n.traces.close(n.log)
	defer n.audit.Flush()
	defer n.servers.stop(0) // if not stopped before
	n.servers.start()
	n.log.Info("listening", n.servers.addresses()...)
	if n.config.Store == nil {
		n.log.Info("using the store", "store", n.config.StoreAddress())
	}
	n.logAccess()
	if n.quorum != nil { // no other process uses the data directory, and the quorum may need an administrator to form
		n.forget = n.keepSecret()
	}
	defer func() {
		if n.forward != nil {
			n.forward.Close()
		}
		n.end()
		n.forget()
		n.closeStore()
	}()
	close(n.begun)
	life, end := context.WithCancel(context.WithoutCancel(ctx)) // it outlives ctx, to drain
	defer end()
	joined := make(chan error, 1)
	go func() { joined <- n.join(life) }()
	running, ended := context.WithCancel(ctx)
	defer ended()
	go n.watchReady(running)
	for opened := n.opened; ; {
		select {
		case <-opened:
			opened = nil
			n.logAlone()
			if n.config.Opened != nil {
				n.config.Opened(n)
			}
		case <-ctx.Done():
			if opened == nil {
				n.drain(ctx)
			} else {
				n.log.Info("stopping before the store was open", "why", context.Cause(ctx))
			}
			end()
			return <-joined
		case err := <-joined:
			n.servers.stop(n.config.ShutdownTimeout)
			return err
		case err := <-n.servers.failed:
			end()
			return errors.Join(err, <-joined)
		}
	}
}

// join attaches to the default sequencer once the member has joined, and again whenever the sequencer was
// destroyed, until ctx ends or the member fails. Without Config.Wait it also returns an error when the node gets
// no node ID at its start.
func (n *Node) join(ctx context.Context) error {
	err := n.member.Wait(ctx)
	for starts := true; err == nil && ctx.Err() == nil; starts = false {
		var s *peer.Sequencer
		s, err = n.member.EnsureSequencer(ctx, peer.DefaultSequencer, n.config.definition())
		// it waits
		if unreadable := new(cluster.UnreadableError); errors.As(err, &unreadable) && n.member.Err() == nil {
			err = n.member.Wait(ctx)
			continue
		}
		if err != nil {
			break
		}
		why := s.Ready()
		if starts && NoNodeID(why) && !n.config.Wait || errors.Is(why, firn.ErrLifetime) {
			return why
		}
		for range s.Changes(ctx) { // until ctx ends or the member leaves the sequencer
			n.member.Refresh()
		}
		if s.State().Phase == peer.Ended {
			<-n.member.Done()
			return n.member.Err()
		}
	}
	if ctx.Err() == nil {
		return err
	}
	return nil // ctx has ended
}

// drain ends the service without an error to any caller: first balancers stop sending callers, then the node
// serves those that are left.
func (n *Node) drain(ctx context.Context) {
	n.service.Drain()
	n.log.Info("stopping: reporting not ready, still serving", "why", context.Cause(ctx), "drain_delay",
		n.config.DrainDelay)
	select {
	case <-time.After(n.config.DrainDelay):
	case err := <-n.servers.failed:
		n.log.Error("a server failed while stopping", "err", err)
	}
	n.servers.stop(n.config.ShutdownTimeout)
	n.log.Info("stopped serving, leaving the cluster")
}

// NoNodeID reports whether an error means that no node ID is free, that the node's clock is wrong, or that existing
// IDs are ahead of it. With Config.Wait the node waits until that passes.
func NoNodeID(err error) bool {
	var behind *fence.ClockBehindError
	var clock *peer.ClockError
	var order *peer.OrderError
	return errors.Is(err, peer.ErrWaiting) || errors.As(err, &behind) || errors.As(err, &clock) ||
		errors.As(err, &order)
}

// Ready returns nil when the node can issue IDs.
func (n *Node) Ready() error { return n.service.Ready() }

// Given returns how many IDs the node has issued, by sequencer.
func (n *Node) Given() map[string]uint64 { return n.service.Given() }

// Login returns a code that logs a browser in once, to administer the node; empty when the node has tokens.
func (n *Node) Login() string {
	if n.tokens != nil {
		return ""
	}
	return n.secret.NewLogin()
}

// Value returns the value of the cluster that the node has reached.
func (n *Node) Value() cluster.Value { return n.member.Value() }

// Create creates a sequencer unless it exists with this definition. The error is that of the member.
func (n *Node) Create(ctx context.Context, name string, d cluster.Definition) error {
	_, err := n.member.Create(ctx, name, d)
	return err
}

// MemberID returns the ID of the node as a member of the cluster; empty until it has joined.
func (n *Node) MemberID() string { return n.member.ID() }
