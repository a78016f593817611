package main

import (
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/counter"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/ops/setting"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/httpapi"
	"github.com/firn-id/firn/internal/service/node"
	"github.com/firn-id/firn/internal/service/stores"
	"github.com/firn-id/firn/sequencer"
	"github.com/firn-id/firn/store/etcdstore"
	"github.com/firn-id/firn/store/pgstore"
)

// serveOptions are the flags of firn serve, each as it was given.
type serveOptions struct {
	node.Config
	store        stores.Address
	passwordFile string
	layout       layoutFlags
	datacenter   int64
	logFormat    string
	logLevel     slog.Level
	config       string
}

func (o *serveOptions) add(c *cobra.Command, flags *pflag.FlagSet) {
	const least = time.Millisecond
	d := node.Defaults()
	text := func(into *string, name, kind, text, usage string) {
		setting.Add(flags, into, name, kind, text, usage, func(s string) (string, error) { return s, nil })
	}
	setting.Add(flags, &o.HTTPAddr, "http-addr", "address", d.HTTPAddr,
		"where to listen for HTTP; port 0 takes any free port", parseListener)
	setting.Add(flags, &o.AdminAddr, "admin-addr", "address", "",
		"where to listen for administrators, or none; an address that other\n"+
			"machines can reach requires --tokens (default: 127.0.0.1, and the\n"+
			"port of --http-addr plus 1000, or 9080 without a port)", parseListenerOrNone)
	setting.Add(flags, &o.GRPCAddr, "grpc-addr", "address", noAddress, "where to listen for gRPC", parseListenerOrNone)
	setting.Add(flags, &o.RedisAddr, "redis-addr", "address", noAddress, "where to listen for Redis clients",
		parseListenerOrNone)
	setting.Add(flags, &o.MetricsAddr, "metrics-addr", "address", noAddress,
		"where to serve /metrics, /livez and /readyz without tokens;\n--http-addr then has no /metrics",
		parseListenerOrNone)
	setting.Add(flags, &o.SocketMode, "socket-mode", "mode", "0600",
		"permissions of Unix sockets: 0600 lets only the node's user\n"+
			"connect, 0660 its group too, 0666 all users of this machine", parseMode)
	text(&o.TokensFile, "tokens", "file", "",
		"YAML file with the tokens of all callers, see firn token; reloaded\n"+
			"when it changes (default: anyone may take IDs)")
	text(&o.SealKeyFile, "seal-key-file", "file", "",
		"keys that seal and open IDs, see firn seal-key; reloaded when it\nchanges (default: no ID is sealed)")
	text(&o.TLS.Cert, "tls-cert", "file", "",
		"PEM certificate: all addresses but Unix sockets then require TLS;\n"+
			"reloaded when it changes, like the next two")
	text(&o.TLS.Key, "tls-key", "file", "", "PEM key of that certificate")
	text(&o.TLS.ClientCA, "tls-client-ca", "file", "",
		"PEM certificates of the CAs of clients: clients must then show a\ncertificate")
	setting.Number(flags, &o.MaxConnections, "max-connections", "", 1,
		"how many connections callers may have at a time, over all\n"+
			"addresses; a new one closes the oldest idle one (default: what\n"+
			"memory and open files allow, at most 16384)")
	setting.Number(flags, &o.MaxCalls, "max-calls", "", 1,
		"how many calls are served at a time; the node refuses more at once\n"+
			"(default: what memory allows, at most 10000)")

	setting.Number(flags, &o.MaxSequencers, "max-sequencers", strconv.Itoa(calls.DefaultMaxSequencers), 1,
		"how many sequencers the cluster may have before this node refuses\nto create another")

	setting.Add(flags, &o.store, "store", "store", "",
		"where the data is: postgres://USER@HOST:PORT/DATABASE,\n"+
			"zookeeper://HOST:PORT,.../PATH, quorum://HOST:PORT,...,\n"+
			"etcd://HOST:PORT,.../PREFIX, etcds:// and zookeepers:// for TLS,\n"+
			"or a directory for a quorum of one; --data-dir, --quorum and\n"+
			"--etcd are short forms (default: --data-dir)", stores.Parse)

	text(&o.DataDir, "data-dir", "directory", d.DataDir, "where this machine keeps the data, for one process at a time")
	setting.Bool(flags, &o.Moved, "moved", "accept a data directory that was moved here; nobody may use the\noriginal")

	setting.Add(flags, &o.Quorum.Machines, "quorum", setting.KindList, "",
		"the 1, 3 or 5 machines that keep the data: host:port, separated by\ncommas; the same on every node",
		setting.ParseList)
	text(&o.Quorum.KeyFile, "quorum-key-file", "file", "",
		"the machines' key, or a client key, see firn quorum key (default:\nno key, for loopback addresses only)")
	text(&o.Quorum.Self, "quorum-addr", "address", "",
		"which of the machines this one is, or none (default: the one whose\n"+
			"host is a name or an address of this machine)")
	setting.Add(flags, &o.Quorum.Listen, "quorum-listen", "address", "",
		"where to listen for the other machines (default: the port of this\n"+
			"machine's address in --quorum, on all interfaces)", parseAddress)
	text(&o.Quorum.CAFile, "quorum-ca", "file", "",
		"PEM certificates of your own CA, instead of the key: certificates\n"+
			"name the host of a machine, or client.quorum.firn.internal for a\nclient")
	text(&o.Quorum.CertFile, "quorum-cert", "file", "", "PEM certificate of that CA to show to the others")
	text(&o.Quorum.CertKeyFile, "quorum-cert-key", "file", "", "PEM key of that certificate")

	setting.Add(flags, &o.Etcd.Endpoints, "etcd", setting.KindList, "",
		"the servers of an etcd cluster: host:port or https://host:port,\nseparated by commas", setting.ParseList)
	text(&o.Etcd.CAFile, "etcd-ca", "file", "",
		"PEM certificates of the CAs of etcd's servers (default: the\nsystem's)")
	text(&o.Etcd.CertFile, "etcd-cert", "file", "", "PEM certificate to show to etcd; reloaded for each connection")
	text(&o.Etcd.KeyFile, "etcd-key", "file", "", "PEM key of that certificate")
	text(&o.Etcd.Username, "etcd-user", "name", "", "log in to etcd as this user")
	text(&o.Etcd.Password, "etcd-password", "text", "",
		"the user's password; other users of this machine can see flags")
	text(&o.passwordFile, "etcd-password-file", "file", "", "a file with the password")
	text(&o.Etcd.Prefix, "etcd-prefix", "path", etcdstore.DefaultPrefix,
		"prefix of firn's keys in etcd; another prefix is another cluster")

	text(&o.Postgres.PasswordFile, "postgres-password-file", "file", "",
		"a file with the password of the user in --store postgres://; read\nagain for each connection")
	text(&o.Postgres.CAFile, "postgres-ca", "file", "",
		"PEM certificates of the CAs of PostgreSQL's servers; firn then\nuses TLS only")
	text(&o.Postgres.CertFile, "postgres-cert", "file", "",
		"PEM certificate to show to PostgreSQL; read again for each connection")
	text(&o.Postgres.KeyFile, "postgres-key", "file", "", "PEM key of that certificate")
	text(&o.Postgres.Schema, "postgres-schema", "name", pgstore.DefaultSchema,
		"the schema for firn's tables; another schema is another cluster")

	text(&o.ZooKeeper.Username, "zookeeper-user", "name", "",
		"log in to ZooKeeper as this user, by SASL with DIGEST-MD5")
	text(&o.ZooKeeper.PasswordFile, "zookeeper-password-file", "file", "",
		"a file with the password; read again for each connection")
	text(&o.ZooKeeper.CAFile, "zookeeper-ca", "file", "",
		"PEM certificates of the CAs of ZooKeeper's servers (default: the\nsystem's)")
	text(&o.ZooKeeper.CertFile, "zookeeper-cert", "file", "",
		"PEM certificate to show to ZooKeeper; read again for each connection")
	text(&o.ZooKeeper.KeyFile, "zookeeper-key", "file", "", "PEM key of that certificate")

	o.layout.add(c, flags)
	setting.Repeated(setting.Add(flags, &o.Nodes, "node", setting.KindNumbers, "",
		"use this node ID in the default sequencer; 7,orders=9 also chooses\n"+
			"one in the sequencer orders, which may be created later (default:\nany free one)", parseNodes))
	setting.Add(flags, &o.Region, "region", "slice", "",
		"use this share of every sequencer's node IDs, such as 2/8 (the\n"+
			"third of eight), for a cluster that is one of several regions\n(default: all node IDs)", parseRegion)
	setting.Number(flags, &o.datacenter, "datacenter", "", 0,
		"the region as the number of a datacenter of --layout: with 5\ndatacenter bits 11 is --region 11/32")
	setting.Bool(flags, &o.RandomStart, "random-start", "in the default sequencer, "+randomStartHelp)

	setting.DurationIn(flags, &o.Window, "window", d.Window.String(), least, peer.MaxWindow,
		"how far ahead a node reserves time in the store, and so how long\nit gives IDs without the store; at most 1h")
	setting.DurationIn(flags, &o.TTL, "ttl", d.TTL.String(), time.Second, peer.MaxTTL,
		"how long a node may be silent before others may take its node ID,\n1s to 10m")
	setting.Bool(flags, &o.Wait, "wait", "at the start, wait when no node ID is free or the clock is wrong")
	setting.Add(flags, &o.Order, "if-ids-are-ahead", "choice", "go-on",
		"what to do if an earlier clock made IDs far ahead of this one:\n"+
			"go-on (new IDs are unique, but smaller), or wait until the clock\ncatches up", parseOrder)
	setting.DurationIn(flags, &o.BlockLeast, "block-least", counter.DefaultLeast.String(), time.Millisecond, time.Hour,
		"how long at least the numbers last that this node reserves of a\ncounter at a time")
	setting.DurationIn(flags, &o.BlockMost, "block-most", counter.DefaultMost.String(), time.Millisecond, time.Hour,
		"how long at most; what is reserved and not given is left out if\nthe node crashes")
	setting.Bool(flags, &o.NoForward, "no-forward",
		"never ask another node for IDs of a sequencer for which this one\nhas no node ID")
	setting.Bool(flags, &o.NoAutoAttach, "no-auto-attach",
		"attach to a sequencer only by firn sequencer attach, never because\nof a call for an ID")

	setting.Add(flags, &o.TextIDs, "json-ids", "type", "number",
		"how JSON has IDs unless a call says otherwise: number, which\nJavaScript rounds above 2^53, or string",
		textOr("number"))
	setting.Add(flags, &o.RedisTexts, "redis-ids", "type", "integer",
		"how INCR, INCRBY and FIRN.NEXT reply: integer, which JavaScript\nclients round above 2^53, or string",
		textOr("integer"))
	setting.Add(flags, &o.Leaf, "compat", "service", "",
		"answer the HTTP calls of another ID service, too: leaf, where a\n"+
			"key names a sequencer, or leaf=NAME, where\n"+
			"/api/snowflake/get/{key} gives IDs of the sequencer NAME for any\nkey", parseCompat)

	setting.Add(flags, &o.Name, "name", "name", "",
		"the node's name in status, log, alerts and dashboard; firn appends a\n"+
			"number if another node has it (default: the host's name)", parseName)

	setting.Duration(flags, &o.DrainDelay, "drain-delay", d.DrainDelay.String(), 0,
		"how long a stopping node serves on, not ready, so that balancers\nnotice")
	setting.Duration(flags, &o.ShutdownTimeout, "shutdown-timeout", d.ShutdownTimeout.String(), least,
		"how long calls may then take to finish")

	formats, levels := []string{"text", "json"}, []string{"debug", "info", "warn", "error"}
	setting.Add(flags, &o.logFormat, "log-format", "format", "text", "text or json; logs go to standard error",
		setting.OneOf(formats...))
	setting.Add(flags, &o.logLevel, "log-level", "level", "info",
		"the lowest level that is logged: "+strings.Join(levels, ", "), parseLevel(levels))
	setting.Add(flags, &o.OTLPEndpoint, "otlp-endpoint", "URL", "",
		"send traces of calls to this OpenTelemetry receiver, over\n"+
			"OTLP/gRPC: http://host:port, or https:// for TLS (default: no\ntraces)", parseEndpoint)
	setting.Add(flags, &o.OTLPRatio, "otlp-ratio", setting.KindShare, strconv.FormatFloat(d.OTLPRatio, 'f', -1, 64),
		"share of calls to trace, 0 to 1: of calls without a trace, and of\ncalls with a sampled one", parseRatio)

	text(&o.Journal, "journal", "file", "",
		"append to this file what the node does about its node IDs, and the\n"+
			"IDs that it gives, for firn journal; calls for IDs then wait for\nthe file (default: no journal)")

	text(&o.config, "config", "file", "", "YAML file with more settings, named as the flags without dashes")

	must(c.MarkFlagDirname("data-dir"))
	must(c.MarkFlagFilename("config", "yaml", "yml"))
	must(c.RegisterFlagCompletionFunc("if-ids-are-ahead",
		cobra.FixedCompletions([]string{"go-on", "wait"}, cobra.ShellCompDirectiveNoFileComp)))
	must(c.RegisterFlagCompletionFunc("json-ids",
		cobra.FixedCompletions([]string{"number", "string"}, cobra.ShellCompDirectiveNoFileComp)))
	must(c.RegisterFlagCompletionFunc("redis-ids",
		cobra.FixedCompletions([]string{"integer", "string"}, cobra.ShellCompDirectiveNoFileComp)))
	must(c.RegisterFlagCompletionFunc("compat",
		cobra.FixedCompletions([]string{"leaf"}, cobra.ShellCompDirectiveNoFileComp)))
	must(c.RegisterFlagCompletionFunc("log-format",
		cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)))
	must(c.RegisterFlagCompletionFunc("log-level", cobra.FixedCompletions(levels, cobra.ShellCompDirectiveNoFileComp)))
}

// parseOrder reads what to do where existing IDs are ahead of the clock.
func parseOrder(text string) (peer.Order, error) {
	switch _, err := setting.OneOf("go-on", "wait")(text); {
	case err != nil:
		return 0, err
	case text == "wait":
		return peer.WaitForIDs, nil
	default:
		return peer.GoOn, nil
	}
}

// textOr reads whether IDs are strings, or a type of numbers.
func textOr(number string) func(string) (bool, error) {
	return func(text string) (bool, error) {
		_, err := setting.OneOf(number, "string")(text)
		return text == "string", err
	}
}

// parseCompat reads which calls of other services to answer.
func parseCompat(text string) (l httpapi.LeafIDs, err error) {
	service, name, named := strings.Cut(text, "=")
	if service != "leaf" {
		return l, fmt.Errorf("%.40q is not right; want leaf, or leaf=NAME", text)
	}
	if l.Served = true; named {
		l.Snowflake, err = parseSequencer(name)
	}
	return l, err
}

func parseLevel(levels []string) func(string) (slog.Level, error) {
	known := setting.OneOf(levels...)
	return func(text string) (level slog.Level, err error) {
		if text, err = known(text); err == nil {
			err = level.UnmarshalText([]byte(text))
		}
		return level, err
	}
}

// parseEndpoint reads where an OTLP receiver is.
func parseEndpoint(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Port() == "" ||
		u.User != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("%.80q is not an address of an OTLP receiver; want http://host:port, or https:// for TLS",
			text)
	}
	return text, nil
}

// parseRatio reads a share of all.
func parseRatio(text string) (float64, error) {
	ratio, err := strconv.ParseFloat(text, 64)
	if err != nil || !(ratio >= 0 && ratio <= 1) {
		return 0, fmt.Errorf("%.40q is not a share of all; want a number from 0 to 1", text)
	}
	return ratio, nil
}

// parseRegion also accepts an empty text, which means the whole.
func parseRegion(text string) (cluster.Region, error) {
	if text == "" {
		return cluster.Region{}, nil
	}
	return sequencer.ParseRegion(text)
}

// parseNodes reads node IDs by sequencer. One without a name is of the default sequencer.
func parseNodes(text string) (map[string]int64, error) {
	nodes := map[string]int64{}
	for item := range strings.SplitSeq(text, ",") {
		name, number, named := strings.Cut(strings.TrimSpace(item), "=")
		if !named {
			name, number = peer.DefaultSequencer, name
		}
		node, err := strconv.ParseInt(number, 10, 64)
		if err != nil || node < 0 {
			return nil, fmt.Errorf("%.120q is not right; want a node ID from 0, such as 7, or orders=7 for the "+
				"sequencer orders", item)
		}
		if _, err := parseSequencer(name); err != nil {
			return nil, err
		}
		if other, twice := nodes[name]; twice {
			return nil, fmt.Errorf("the sequencer %q has two node IDs, %d and %d; want one", name, other, node)
		}
		nodes[name] = node
	}
	return nodes, nil
}

// parseName reads the name of a node.
func parseName(text string) (string, error) { return text, node.CheckName(text) }
