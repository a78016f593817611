package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn/internal/base/files"
	"github.com/firn-id/firn/internal/base/unixsocket"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/ops/console"
	"github.com/firn-id/firn/internal/ops/doctor"
	"github.com/firn-id/firn/internal/ops/setting"
	"github.com/firn-id/firn/internal/service/node"
	"github.com/firn-id/firn/internal/service/stores"
	"github.com/firn-id/firn/internal/service/ui"
	"github.com/spf13/pflag"
)

// configured is what firn serve and firn doctor make of flags, variables and the config file: a node that
// does not run yet.
type configured struct {
	node.Config
	node     *node.Node
	from     setting.Sources  // where each setting comes from
	warnings []doctor.Finding // what is to be warned of
}

// readConfig reads the configuration of firn serve, which has no node then, from flags, variables and the config file.
func (p *program) readConfig(o *serveOptions, flags *pflag.FlagSet) (c configured, err error) {
	c.from = setting.Sources{}
	if err := c.from.FromEnvironment(flags, p.env); err != nil {
		return c, usageError{err}
	}
	if o.config != "" {
		if err := c.from.FromFile(flags, o.config); err != nil {
			return c, usageError{err}
		}
	}
	c.Config, err = o.settings(flags, c.from)
	return c, err
}

// configure reads the configuration of firn serve, and the files that it names.
func (p *program) configure(o *serveOptions, flags *pflag.FlagSet) (c configured, err error) {
	if c, err = p.readConfig(o, flags); err != nil {
		return c, err
	}
	c.Logger, c.Build = newLogger(p.stderr, o.logFormat, o.logLevel), build()
	c.Opened = p.greet
	c.Fatal = func(err error) {
		p.report(err)
		os.Exit(statusFailure)
	}
	if c.node, err = node.New(c.Config); err != nil {
		return c, settingError(err, c.from)
	}
	if c.warnings, err = examined(c.Config).Warnings(); err != nil {
		err = usageError{err}
	}
	c.warnings = append(exposed(flags, c.from), c.warnings...)
	return c, err
}

// exposed warns of passwords that stand on the command line.
func exposed(flags *pflag.FlagSet, from setting.Sources) (all []doctor.Finding) {
	for name, file := range map[string]string{
		"store":         "--postgres-password-file",
		"etcd-password": "--etcd-password-file",
	} {
		f := flags.Lookup(name)
		if !f.Changed || from[name] != "" || name == "store" && stores.Redact(f.Value.String()) == f.Value.String() {
			continue
		}
		all = append(all, doctor.Finding{
			Level: doctor.Warn, About: name,
			Found: "it has a password, which every user of this machine can see in the list of processes",
			Do:    "give the password in the file that " + file + " names, and change it",
		})
	}
	return all
}

func newLogger(w io.Writer, format string, level slog.Level) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// greet tells a person who has just started a node what to do next.
func (p *program) greet(n *node.Node) {
	if !console.IsTerminal(p.stderr) {
		return
	}
	try := fmt.Sprintf(`curl -X POST "%s/api/v1/id?ids=string"`, n.URL())
	if unixsocket.Is(n.URL()) {
		try = "firn id --server " + n.URL()
	}
	fmt.Fprintf(p.stderr, "\nfirn serves IDs on %s; try\n\n  %s\n\n", n.URL(), try)
	switch admin := n.AdminURL(); {
	case unixsocket.Is(admin):
		fmt.Fprintf(p.stderr, "and look at the cluster:\n\n  firn cluster status --admin %s\n\n", admin)
	case admin != "":
		what, login := "and look at the cluster with a browser:", ui.Login{Code: n.Login()}
		if login.Code != "" {
			what = "and look at the cluster with a browser (this address is good once; firn cluster dashboard prints " +
				"another):"
		}
		fmt.Fprintf(p.stderr, "%s\n\n  %s\n\n", what, login.Address(admin))
	}
}

// settingError is an error of usage, that says which setting is wrong where that is known.
func settingError(err error, from setting.Sources) error {
	if wrong, ok := errors.AsType[*node.SettingError](err); ok {
		return usagef("%s: %w", from.Of(wrong.Setting), err)
	}
	return usageError{err}
}

// settings checks how flags fit together, and returns what they say of a node.
func (o *serveOptions) settings(flags *pflag.FlagSet, from setting.Sources) (node.Config, error) {
	s := o.Config
	if err := setStore(&s, o.store, flags, from); err != nil {
		return s, err
	}
	if flags.Changed("region") && flags.Changed("datacenter") {
		return s, usagef("%s and %s exclude each other; give one", from.Of("region"), from.Of("datacenter"))
	}
	if err := setAccess(&s, flags, from); err != nil {
		return s, err
	}
	if flags.Changed("otlp-ratio") && o.OTLPEndpoint == "" {
		return s, usagef("%s has no effect without --otlp-endpoint; give both", from.Of("otlp-ratio"))
	}
	if o.passwordFile != "" {
		password, err := files.ReadOnce(o.passwordFile)
		if err != nil {
			return s, usagef("%s: %w", from.Of("etcd-password-file"), err)
		}
		s.Etcd.Password, s.EtcdPasswordFile = strings.TrimRight(string(password), "\r\n"), o.passwordFile
	}
	var err error
	if s.Layout, err = o.layout.chosen(); err != nil {
		return s, err
	}
	if _, err := s.Layout.TickAt(time.Now()); err != nil {
		// It is no usageError: a clock can be set right while the configuration stays, so that another start may
		// succeed.
		return s, fmt.Errorf("this machine's clock is wrong, or %s: %w", from.Of("epoch"), err)
	}
	if flags.Changed("datacenter") {
		if _, _, err := s.Layout.DatacenterNodes(o.datacenter); err != nil {
			return s, usagef("%s: %w", from.Of("datacenter"), err)
		}
		s.Region = cluster.Region{Number: o.datacenter, Of: 1 << s.Layout.DatacenterBits}
	}
	return s, nil
}

// setStore chooses the store, and refuses settings of another one.
func setStore(s *node.Config, at stores.Address, flags *pflag.FlagSet, from setting.Sources) error {
	if flags.Changed("store") {
		s.Use(at)
	}
	for _, pair := range []struct {
		one, other string
		both       bool // they may stand together
	}{
		{"data-dir", "etcd", false},
		{"quorum", "etcd", false},
		{"store", "etcd", false},
		{"store", "quorum", false},
		{"store", "data-dir", at.Kind == stores.Quorum},
		{"store", "etcd-user", !at.User()},
		{"store", "zookeeper-user", !at.User()},
		{"store", "etcd-prefix", !at.Path()},
		{"etcd-password", "etcd-password-file", false},
	} {
		if !pair.both && flags.Changed(pair.one) && flags.Changed(pair.other) {
			return usagef("%s and %s exclude each other; give one", from.Of(pair.one), from.Of(pair.other))
		}
	}
	for kind, names := range storeFlags {
		for _, name := range names {
			if flags.Changed(name) && s.StoreKind() != kind {
				return usagef("%s has no effect without %s", from.Of(name), given[kind])
			}
		}
	}
	return nil
}

// given is how each store is chosen.
var given = map[stores.Kind]string{
	stores.Etcd: "--etcd", stores.Quorum: "--quorum",
	stores.Postgres: "--store postgres://...", stores.ZooKeeper: "--store zookeeper://...",
}

// storeFlags are the flags that are for one store alone.
var storeFlags = map[stores.Kind][]string{
	stores.ZooKeeper: {"zookeeper-user", "zookeeper-password-file", "zookeeper-ca", "zookeeper-cert", "zookeeper-key"},
	stores.Postgres:  {"postgres-password-file", "postgres-ca", "postgres-cert", "postgres-key", "postgres-schema"},
	stores.Etcd: {
		"etcd-ca", "etcd-cert", "etcd-key", "etcd-user", "etcd-password", "etcd-password-file",
		"etcd-prefix",
	},
	stores.Quorum: {
		"quorum-key-file", "quorum-addr", "quorum-listen", "quorum-ca", "quorum-cert",
		"quorum-cert-key",
	},
}

// setAccess checks who may come in, and where.
func setAccess(s *node.Config, flags *pflag.FlagSet, from setting.Sources) error {
	for name, file := range map[string]string{
		"tokens": s.TokensFile, "seal-key-file": s.SealKeyFile, "tls-cert": s.TLS.Cert, "tls-key": s.TLS.Key,
		"tls-client-ca": s.TLS.ClientCA,
	} {
		if flags.Changed(name) && file == "" { // a variable of a shell that is not set must not let everybody in
			return usagef("%s is empty; want the name of a file, or leave it out", from.Of(name))
		}
	}
	for _, pair := range [][2]string{{"tls-cert", "tls-key"}, {"tls-key", "tls-cert"}, {"tls-client-ca", "tls-cert"}} {
		if flags.Changed(pair[0]) && !flags.Changed(pair[1]) {
			return usagef("%s has no effect without --%s; give both", from.Of(pair[0]), pair[1])
		}
	}
	if flags.Changed("socket-mode") &&
		!slices.ContainsFunc([]string{s.HTTPAddr, s.AdminAddr, s.GRPCAddr, s.RedisAddr, s.MetricsAddr}, unixsocket.Is) {
		return usagef("%s has no effect without an address such as unix:/run/firn/firn.sock", from.Of("socket-mode"))
	}
	if !flags.Changed("admin-addr") {
		if unixsocket.Is(s.HTTPAddr) || strings.HasPrefix(s.HTTPAddr, node.FromSystemd) { // it has no port
			s.AdminAddr = node.Defaults().AdminAddr
			return nil
		}
		_, port, _ := net.SplitHostPort(s.HTTPAddr) // it was parsed before
		number, _ := strconv.Atoi(port)
		if number != 0 { // else any port will do here, too
			number += adminPortAbove
		}
		if number > math.MaxUint16 {
			return usagef("%s: there is no port %d for administrators; name their address with --admin-addr",
				from.Of("http-addr"), number)
		}
		s.AdminAddr = net.JoinHostPort("127.0.0.1", strconv.Itoa(number))
	}
	return nil
}

// adminPortAbove is how far the port of administrators is above that of everybody.
const adminPortAbove = 1000
