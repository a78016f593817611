package main

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn/internal/fence"
	"github.com/firn-id/firn/internal/server"
	"github.com/firn-id/firn/internal/server/conns"
	"github.com/firn-id/firn/member"
	"github.com/firn-id/firn/store/etcdstore"
)

// serveOptions are the flags of firn serve, each as it was given.
type serveOptions struct {
	httpAddr, adminAddr        string
	grpcAddr, redisAddr        string
	metricsAddr                string
	tokensFile                 string
	certificates               conns.TLSFiles
	maxConnections, maxCalls   int64
	maxSequencers              int64
	dataDir                    string
	etcd                       etcdstore.Config
	passwordFile               string
	layout                     layoutFlags
	node, datacenter           int64
	randomStart, wait          bool
	noAutoAttach               bool
	window, ttl                time.Duration
	drainDelay, shutdownWithin time.Duration
	logFormat                  string
	logLevel                   slog.Level
	otlpEndpoint               string
	otlpRatio                  float64
	config                     string
}

func (o *serveOptions) add(c *cobra.Command, flags *pflag.FlagSet) {
	const least = time.Millisecond
	text := func(into *string, name, kind, text, usage string) {
		add(flags, into, name, kind, text, usage, func(s string) (string, error) { return s, nil })
	}
	add(flags, &o.httpAddr, "http-addr", "address", ":8080", "where to listen for HTTP; port 0 takes any that is free", parseAddress)
	add(flags, &o.adminAddr, "admin-addr", "address", "", "where to listen for administrators; other than on 127.0.0.1 only with\n--tokens; none is nowhere (default: 127.0.0.1, and the port of\n--http-addr plus 1000)", parseAddressOrNone)
	add(flags, &o.grpcAddr, "grpc-addr", "address", noAddress, "where to listen for gRPC", parseAddressOrNone)
	add(flags, &o.redisAddr, "redis-addr", "address", noAddress, "where to listen for Redis clients", parseAddressOrNone)
	add(flags, &o.metricsAddr, "metrics-addr", "address", noAddress, "where to listen for /metrics, /livez and /readyz, for whoever comes;\n--http-addr then has no /metrics", parseAddressOrNone)
	text(&o.tokensFile, "tokens", "file", "", "YAML file with the tokens of those who may come, see firn token; read\nanew when it changes (default: all may take IDs)")
	text(&o.certificates.Cert, "tls-cert", "file", "", "PEM certificate: listen for TLS only, everywhere; read anew when it\nchanges, like the next two")
	text(&o.certificates.Key, "tls-key", "file", "", "PEM key of that certificate")
	text(&o.certificates.ClientCA, "tls-client-ca", "file", "", "PEM certificates of the authorities of clients: each must then show a\ncertificate of theirs")
	addNumber(flags, &o.maxConnections, "max-connections", "", 1, "how many connections callers may have at a time, over all addresses;\nthe oldest idle one makes room for another (default: what memory and\nopen files allow, 16384 at most)")
	addNumber(flags, &o.maxCalls, "max-calls", "", 1, "how many calls there may be at a time; more are refused at once\n(default: what memory allows, 10000 at most)")

	addNumber(flags, &o.maxSequencers, "max-sequencers", strconv.Itoa(server.DefaultMaxSequencers), 1, "how many sequencers there may be in the cluster for this node to create\nanother")

	text(&o.dataDir, "data-dir", "directory", "./firn-data", "where the etcd inside keeps its data; one process at a time")

	add(flags, &o.etcd.Endpoints, "etcd", kindList, "", "use this etcd cluster: host:port of its servers, with commas between,\nor https://host:port", parseList)
	text(&o.etcd.CAFile, "etcd-ca", "file", "", "PEM certificates of the authorities that etcd's may be signed by\n(default: those that the system trusts)")
	text(&o.etcd.CertFile, "etcd-cert", "file", "", "PEM certificate to show to etcd; read anew for each connection")
	text(&o.etcd.KeyFile, "etcd-key", "file", "", "PEM key of that certificate")
	text(&o.etcd.Username, "etcd-user", "name", "", "log in to etcd under this name")
	text(&o.etcd.Password, "etcd-password", "text", "", "its password; others on this machine can see what flags say")
	text(&o.passwordFile, "etcd-password-file", "file", "", "a file that holds the password")
	text(&o.etcd.Prefix, "etcd-prefix", "path", etcdstore.DefaultPrefix, "what firn's keys in etcd begin with; another makes another cluster")

	o.layout.add(c, flags)
	addNumber(flags, &o.node, "node", "", 0, "use exactly this node ID, in the default sequencer (default: any that\nis free)")
	addNumber(flags, &o.datacenter, "datacenter", "", 0, "use only node IDs of this datacenter, in every sequencer whose layout\nhas it")
	addBool(flags, &o.randomStart, "random-start", "begin each tick's sequence at random: one ID then does not tell how\nmany came before it in its tick; two of one tick tell how many lie\nbetween them")

	addDuration(flags, &o.window, "window", fence.DefaultWindow.String(), least, "how far ahead the use of a node ID is written down: for how long\nIDs are given while etcd is gone")
	addDuration(flags, &o.ttl, "ttl", member.DefaultTTL.String(), least, "how long etcd waits for a silent node before others may have its\nnode ID")
	addBool(flags, &o.wait, "wait", "at the start wait for a node ID when none is free, or when the clock\nis too far behind")
	addBool(flags, &o.noAutoAttach, "no-auto-attach", "don't attach to any sequencer when asked for an ID of it, but only when\nfirn sequencer attach says so")

	addDuration(flags, &o.drainDelay, "drain-delay", "1s", 0, "how long to serve on when stopping, not ready, for balancers to notice")
	addDuration(flags, &o.shutdownWithin, "shutdown-timeout", "10s", least, "how long requests may then take to finish")

	formats, levels := []string{"text", "json"}, []string{"debug", "info", "warn", "error"}
	add(flags, &o.logFormat, "log-format", "format", "text", "text or json; logs go to standard error", oneOf(formats...))
	add(flags, &o.logLevel, "log-level", "level", "info", "the least that is logged: "+strings.Join(levels, ", "), parseLevel(levels))
	add(flags, &o.otlpEndpoint, "otlp-endpoint", "URL", "", "send traces of calls to this OpenTelemetry receiver, over OTLP/gRPC:\nhttp://host:port, or https:// for TLS (default: no traces)", parseEndpoint)
	add(flags, &o.otlpRatio, "otlp-ratio", kindShare, "0.01", "of the calls that belong to no trace yet, how many begin one: 0 to 1", parseRatio)

	text(&o.config, "config", "file", "", "YAML file with more of these, without the dashes in front")

	must(c.MarkFlagDirname("data-dir"))
	must(c.MarkFlagFilename("config", "yaml", "yml"))
	must(c.RegisterFlagCompletionFunc("log-format", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)))
	must(c.RegisterFlagCompletionFunc("log-level", cobra.FixedCompletions(levels, cobra.ShellCompDirectiveNoFileComp)))
}

func parseList(text string) ([]string, error) {
	list := strings.Split(text, ",")
	for i := range list {
		if list[i] = strings.TrimSpace(list[i]); list[i] == "" {
			return nil, fmt.Errorf("%.80q has an empty item; want host:port, with commas between", text)
		}
	}
	return list, nil
}

func parseLevel(levels []string) func(string) (slog.Level, error) {
	known := oneOf(levels...)
	return func(text string) (level slog.Level, err error) {
		if text, err = known(text); err == nil {
			err = level.UnmarshalText([]byte(text))
		}
		return level, err
	}
}
