package node

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cluster"
	"github.com/firn-id/firn/internal/fence"
	"github.com/firn-id/firn/internal/server/auth"
	"github.com/firn-id/firn/internal/server/conns"
	"github.com/firn-id/firn/internal/server/metrics"
	"github.com/firn-id/firn/internal/server/ui"
	"github.com/firn-id/firn/member"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/etcdstore"
)

// Config says how a node runs. Begin with Defaults: the zero value is not valid.
type Config struct {
	// Where the node listens, each as host:port; port 0 takes any that is free. Empty: nowhere, which HTTPAddr must not be.
	// Without MetricsAddr the metrics are at HTTPAddr. AdminAddr must be out of the reach of other machines, unless there
	// are tokens.
	HTTPAddr, AdminAddr, GRPCAddr, RedisAddr, MetricsAddr string

	TokensFile string         // see auth.OpenTokens; empty: anyone may take IDs
	TLS        conns.TLSFiles // zero: none

	MaxConnections int // of callers at a time, over all addresses; 0: what memory and open files allow
	MaxCalls       int // at a time; 0: what memory allows
	MaxSequencers  int // in the cluster, for this node to create another; 0: server.DefaultMaxSequencers

	DataDir string           // of the etcd inside, which runs unless Etcd has endpoints
	Etcd    etcdstore.Config // its Logger and DialOptions are the node's

	Layout      firn.Layout // of the default sequencer
	Node        *int64      // the node ID to use in the default sequencer; nil: any
	Datacenter  *int64      // the datacenter of node IDs to use, in every sequencer whose layout has it; nil: any
	RandomStart bool        // begins the sequence of each tick at random

	Window       time.Duration // how far ahead the use of a node ID is written down
	TTL          time.Duration // how long the store waits for a silent node
	Wait         bool          // at the start for a node ID, where none is free or the clock is too far behind
	NoAutoAttach bool          // see server.Options

	DrainDelay      time.Duration // how long a node that stops serves on, not ready
	ShutdownTimeout time.Duration // how long calls may then take to finish

	OTLPEndpoint string  // the URL of an OpenTelemetry receiver; empty: no traces
	OTLPRatio    float64 // of the calls that belong to no trace, how many begin one: 0 to 1

	Logger *slog.Logger  // nil: nothing is logged
	Build  metrics.Build // what metrics and traces say of this program

	// Fatal is told why the etcd inside can't go on, and must end the process.
	Fatal func(error)

	// Opened is called when the node listens and its store is open. Nil: nothing is.
	Opened func(*Node)

	// What follows is for one of several nodes in a process.

	Owner  string                          // what others are told of the node; empty: host and process
	Clock  *firn.SteadyClock               // nil: this machine's
	Store  func() (Store, error)           // takes the place of DataDir and Etcd; nil: they say
	Secret *auth.Secret                    // of whoever runs the nodes, who keeps it; nil: the node makes one and keeps it in a file
	Wrap   func(net.Listener) net.Listener // is put around each listener; nil: nothing is
	Given  func() []ui.NodeGiven           // how many IDs each node has given; nil: it is the only one
}

// Store is a store whose owner is the node: it closes it at its end.
type Store interface {
	store.Store
	Close() error
}

// Defaults returns the Config of a node that runs an etcd inside, and lets anyone who reaches it take IDs.
func Defaults() Config {
	return Config{
		HTTPAddr: ":8080", AdminAddr: "127.0.0.1:9080", DataDir: "./firn-data", Layout: firn.Default,
		Window: fence.DefaultWindow, TTL: member.DefaultTTL,
		DrainDelay: time.Second, ShutdownTimeout: 10 * time.Second, OTLPRatio: 0.01,
	}
}

// SettingError is an error that another value of a setting avoids.
type SettingError struct {
	Setting string // as firn's configuration file names it: "http-addr"
	Err     error
}

func (e *SettingError) Error() string { return e.Err.Error() }
func (e *SettingError) Unwrap() error { return e.Err }

func settingf(setting, format string, args ...any) error {
	return &SettingError{setting, fmt.Errorf(format, args...)}
}

// validate returns an error, most often a SettingError, for a Config of which no node can be made.
func (c Config) validate() error {
	if c.HTTPAddr == "" {
		return settingf("http-addr", "there is no address to listen on; want one such as :8080")
	}
	if host, _, _ := net.SplitHostPort(c.AdminAddr); c.AdminAddr != "" && c.TokensFile == "" && !auth.Loopback(host) {
		return settingf("admin-addr", "others can reach %s, so that it needs tokens; want 127.0.0.1 or [::1], or tokens", c.AdminAddr)
	}
	if c.Node != nil && *c.Node >= c.Layout.NodeIDs() {
		return settingf("node", "the layout %v has node IDs 0 to %d, not %d", c.Layout, c.Layout.NodeIDs()-1, *c.Node)
	}
	if c.Datacenter != nil {
		if _, _, err := c.Layout.DatacenterNodes(*c.Datacenter); err != nil {
			return &SettingError{"datacenter", err}
		}
	}
	return c.memberOptions().ValidateFor(member.DefaultSequencer, c.definition())
}

// definition is that of the sequencer which serves those who name none.
func (c Config) definition() cluster.Definition { return cluster.Define(c.Layout) }

func (c Config) memberOptions() member.Options {
	owner := c.Owner
	if owner == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "unknown host"
		}
		owner = fmt.Sprintf("%s, process %d", host, os.Getpid())
	}
	return member.Options{
		Nodes: c.nodes, TTL: c.TTL, Window: c.Window, RandomStart: c.RandomStart,
		Owner: owner, Clock: c.Clock, Logger: c.Logger,
	}
}

// nodes are the node IDs to choose from in a sequencer: Node is one of the default sequencer, Datacenter is about every
// sequencer that has it.
func (c Config) nodes(name string, d cluster.Definition) *cluster.Range {
	switch {
	case c.Node != nil && name == member.DefaultSequencer:
		return &cluster.Range{From: *c.Node, To: *c.Node}
	case c.Datacenter == nil:
		return nil
	}
	first, last, err := d.IDLayout().DatacenterNodes(*c.Datacenter)
	if err != nil {
		return nil
	}
	return &cluster.Range{From: first, To: last}
}
