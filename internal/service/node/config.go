package node

import (
	"cmp"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/files"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/counter"
	"github.com/firn-id/firn/internal/core/fence"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/admit/conns"
	"github.com/firn-id/firn/internal/service/httpapi"
	"github.com/firn-id/firn/internal/service/metrics"
	"github.com/firn-id/firn/internal/service/stores"
	"github.com/firn-id/firn/internal/service/ui"
	"github.com/firn-id/firn/store"
)

// Config configures a node. Begin with Defaults: the zero value is not valid.
type Config struct {
	// The addresses to listen on, each host:port (port 0: any free port), unix:PATH, or systemd:NAME for the socket
	// that systemd passes under this name. Empty: no listener; HTTPAddr must not be empty. Without MetricsAddr,
	// HTTPAddr serves the metrics. Without tokens, other machines must not reach AdminAddr.
	HTTPAddr, AdminAddr, GRPCAddr, RedisAddr, MetricsAddr string

	SocketMode fs.FileMode // permissions of the Unix sockets that the node makes; zero: of nobody but root

	TokensFile  string         // see auth.OpenTokens; empty: anyone may take IDs
	SealKeyFile string         // see idtext.OpenKeys; empty: the node seals and opens no IDs
	TLS         conns.TLSFiles // zero: no TLS; Unix sockets never have it

	MaxConnections int // of callers at a time, on all addresses; 0: as memory and open files allow
	MaxCalls       int // at a time; 0: as memory allows
	MaxSequencers  int // in the cluster, at which this node creates no more; 0: calls.DefaultMaxSequencers

	// The store. The node sets the Dir, Version, Logger, DialOptions and Fatal of a quorum, and the Logger and
	// DialOptions of other stores.
	stores.Choice

	Layout      firn.Layout      // of the default sequencer
	Nodes       map[string]int64 // the node IDs to use, by sequencer; in others any
	Region      cluster.Region   // see member.Options
	RandomStart bool             // of the default sequencer

	Window       time.Duration // how far ahead of the clock a horizon lies
	TTL          time.Duration // how long the store keeps the session of a silent node
	Wait         bool          // wait at the start if no node ID is free or the clock is wrong
	Order        peer.Order    // what to do where existing IDs are ahead of the clock
	BlockLeast   time.Duration // for how long at least a block of a counter is to last; 0: 10 s
	BlockMost    time.Duration // and at most; 0: 60 s
	NoAutoAttach bool          // see calls.Options
	NoForward    bool          // calls for IDs are answered here, or not at all

	TextIDs    bool            // IDs in JSON are strings where a call does not ask for numbers
	RedisTexts bool            // IDs in replies of Redis are strings where they would be integers
	Leaf       httpapi.LeafIDs // the calls of Leaf to answer on HTTPAddr; zero: none

	DrainDelay      time.Duration // how long a stopping node still serves, not ready
	ShutdownTimeout time.Duration // how long calls may then take to end

	OTLPEndpoint string // the URL of an OpenTelemetry receiver; empty: no traces
	// share of calls to trace, 0 to 1: of those that bring no trace, and of those that bring a sampled one
	OTLPRatio float64

	// for people; what others see it under has a number behind it while another node has it. Empty: the name of the
	// host
	Name string

	Journal string // the file to which the journal is appended, see member.Options; empty: none

	Logger *slog.Logger  // nil: nothing is logged
	Build  metrics.Build // of this program, for metrics and traces

	// Fatal gets the error with which the etcd in this process fails, and must end the process.
	Fatal func(error)

	// Opened is called when the node listens and its store is open. Nil: no call.
	Opened func(*Node)

	// The fields below are for one of several nodes in a process.

	Clock  *firn.SteadyClock               // nil: this machine's
	Store  func() (Store, error)           // replaces Choice; nil: Choice determines the store
	Secret *auth.Secret                    // for administrators; nil: the node makes one and writes it to a file
	Wrap   func(net.Listener) net.Listener // wraps each listener; nil: no wrapper
	Given  func() []ui.NodeGiven           // how many IDs each node has issued; nil: this is the only node
}

// Store is a store that the node owns, and closes when it ends.
type Store interface {
	store.Store
	Close() error
}

// Defaults returns the Config of a node with a quorum of one that gives IDs to anyone who reaches it.
func Defaults() Config {
	return Config{
		HTTPAddr: ":8080", AdminAddr: "127.0.0.1:9080", Choice: stores.Choice{DataDir: "./firn-data"},
		Layout:     firn.Default,
		SocketMode: 0o600, Window: fence.DefaultWindow, TTL: peer.DefaultTTL,
		DrainDelay: time.Second, ShutdownTimeout: 10 * time.Second, OTLPRatio: 0.01,
	}
}

// SettingError is the error of a wrong setting.
type SettingError struct {
	Setting string // its name in firn's configuration file: "http-addr"
	Err     error
}

func (e *SettingError) Error() string { return e.Err.Error() }
func (e *SettingError) Unwrap() error { return e.Err }

func settingf(setting, format string, args ...any) error {
	return &SettingError{setting, fmt.Errorf(format, args...)}
}

// validate returns an error, most often a SettingError, for a Config that is not valid.
func (c Config) validate() error {
	if c.HTTPAddr == "" {
		return settingf("http-addr", "there is no address to listen on; want one such as :8080")
	}
	if c.Name != "" {
		if err := CheckName(c.Name); err != nil {
			return settingf("name", "%w", err)
		}
	}
	if err := c.validateAddresses(); err != nil {
		return err
	}
	if c.Journal != "" {
		if err := files.CheckWriters(c.Journal); err != nil {
			return settingf("journal", "%w", err)
		}
	}
	node, chosen := c.Nodes[peer.DefaultSequencer]
	if chosen && node >= c.Layout.NodeIDs() {
		return settingf("node", "the layout %v has node IDs 0 to %d, not %d", c.Layout, c.Layout.NodeIDs()-1, node)
	}
	if pace := c.pace(); pace.Least > pace.Most {
		return settingf("block-least", "the blocks of counters are to last at least %v, and at most %v; want at most "+
			"that", pace.Least, pace.Most)
	}
	nodes, err := c.Region.Nodes(c.definition())
	if err != nil {
		return settingf("region", "the region %v of the default sequencer: %w", c.Region, err)
	}
	if chosen && !nodes.Holds(node) {
		return settingf("node", "the region %v has node IDs %d to %d, not %d", c.Region, nodes.From, nodes.To, node)
	}
	return c.memberOptions().ValidateFor(peer.DefaultSequencer, c.definition())
}

// definition returns the definition of the default sequencer.
func (c Config) definition() cluster.Definition {
	d := cluster.Define(c.Layout)
	d.RandomStart = c.RandomStart
	return d
}

// pace is for how long blocks of counters are to last.
func (c Config) pace() counter.Pace {
	return counter.Pace{
		Least: cmp.Or(c.BlockLeast, counter.DefaultLeast), Most: cmp.Or(c.BlockMost, counter.DefaultMost),
	}
}

func (c Config) memberOptions() peer.Options {
	host, err := os.Hostname()
	if err != nil {
		host = ""
	}
	place := c.HTTPAddr
	if strings.HasSuffix(place, ":0") {
		place = "" // several nodes of the host can have it
	}
	return peer.Options{
		Nodes: c.nodes, Region: c.Region, TTL: c.TTL, Window: c.Window, Order: c.Order,
		Owner: cmp.Or(c.Name, nameOf(host)), Host: host, Place: place, Clock: c.Clock, Logger: c.Logger,
		Pace: c.pace(),
	}
}

const longestName = 63 // of a node

// CheckName returns an error that says what a node may be called, unless it may be called so.
func CheckName(name string) error {
	if name == "" || len(name) > longestName || name != nameOf(name) {
		return fmt.Errorf("%.100q is no name for a node; want 1 to %d of the characters A-Z, a-z, 0-9, dot, dash and "+
			"underscore, the first one a letter or digit", name, longestName)
	}
	return nil
}

// nameOf makes the name of a node of that of a host.
func nameOf(host string) string {
	name := strings.Map(func(c rune) rune {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.':
			return c
		}
		return '-'
	}, host)
	name = strings.TrimLeft(name, "-_.")
	return cmp.Or(name[:min(len(name), longestName)], "node")
}

// nodes returns the node IDs to choose from in a sequencer; nil: any.
func (c Config) nodes(name string, _ cluster.Definition) *cluster.Range {
	node, ok := c.Nodes[name]
	if !ok {
		return nil
	}
	return &cluster.Range{From: node, To: node}
}
