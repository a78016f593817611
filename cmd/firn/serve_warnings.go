package main

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/firn-id/firn/internal/doctor"
	"github.com/firn-id/firn/internal/node"
	"github.com/firn-id/firn/internal/server/auth"
	"github.com/firn-id/firn/internal/server/files"
)

// aboutTokens is what a warning is about that package doctor does not give.
const aboutTokens = "tokens"

// safe returns what is to be warned of in a configuration, which firn serve and firn doctor report alike. An
// error is returned for what is not to be used: a data directory that others can write.
func safe(c node.Config) (warnings []doctor.Finding, _ error) {
	embedded := len(c.Etcd.Endpoints) == 0
	if embedded {
		if err := files.CheckWriters(c.DataDir); err != nil {
			return nil, usageError{fmt.Errorf("--data-dir: %w", err)}
		}
	}
	if open := plainAddresses(c); c.TokensFile != "" && len(open) > 0 {
		warnings = append(warnings, doctor.Finding{
			Level: doctor.Warn, About: aboutTokens, Found: "they travel unencrypted to " + strings.Join(open, ", "),
			Do: "give a certificate with --tls-cert and --tls-key, or have these addresses reached through a proxy for TLS on this machine only",
		})
	}
	for _, f := range []struct{ about, path string }{{"data directory", c.DataDir}, {aboutTokens, c.TokensFile}, {"tls-key", c.TLS.Key}} {
		var mode *files.ModeError
		if f.path == "" || f.path == c.DataDir && !embedded || !errors.As(files.CheckReaders(f.path), &mode) {
			continue
		}
		warnings = append(warnings, doctor.Finding{
			Level: doctor.Warn, About: f.about, Found: fmt.Sprintf("%s can %s %s, mode %04o", mode.Who, mode.Can, mode.Path, mode.Mode.Perm()), Do: "chmod " + mode.Bits + " " + mode.Path,
		})
	}
	return warnings, nil
}

// plainAddresses are those that others than this machine can reach, and that speak no TLS, with their flags.
func plainAddresses(c node.Config) (all []string) {
	if c.TLS.Cert != "" {
		return nil
	}
	for _, a := range addresses(c) {
		if host, _, _ := net.SplitHostPort(a.At); !auth.Loopback(host) && a.Flag != "metrics-addr" { // no tokens go there
			all = append(all, fmt.Sprintf("--%s %s", a.Flag, a.At))
		}
	}
	return all
}

// addresses are all that a node listens on, the public one first.
func addresses(c node.Config) (all []doctor.Address) {
	for _, a := range [][2]string{{"http-addr", c.HTTPAddr}, {"admin-addr", c.AdminAddr}, {"grpc-addr", c.GRPCAddr}, {"redis-addr", c.RedisAddr}, {"metrics-addr", c.MetricsAddr}} {
		if a[1] != "" {
			all = append(all, doctor.Address{Flag: a[0], At: a[1], URL: node.URL(a[1], c.TLS.Cert != "")})
		}
	}
	return all
}
