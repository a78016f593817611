package doctor

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/firn-id/firn/internal/files"
	"github.com/firn-id/firn/internal/server/auth"
	"github.com/firn-id/firn/internal/unixsocket"
)

// The About of findings about files that only the owner should read, and that Check does not look at.
const (
	AboutTokens   = "tokens"
	AboutSealKeys = "seal-key-file"
)

// Warnings returns findings about a configuration before a node runs. It returns an error for a configuration
// that must not be used: a data directory that other users can write.
func (c Config) Warnings() (warnings []Finding, _ error) {
	embedded := len(c.Etcd.Endpoints) == 0
	if embedded {
		if err := files.CheckWriters(c.DataDir); err != nil {
			return nil, fmt.Errorf("--data-dir: %w", err)
		}
	}
	if open := c.plainAddresses(); c.TokensFile != "" && len(open) > 0 {
		warnings = append(warnings, Finding{
			Level: Warn, About: AboutTokens, Found: "they travel unencrypted to " + strings.Join(open, ", "),
			Do: "give a certificate with --tls-cert and --tls-key, or have these addresses reached through a proxy for TLS on this machine only",
		})
	}
	for _, f := range []struct{ about, path string }{{"data directory", c.DataDir}, {AboutTokens, c.TokensFile}, {AboutSealKeys, c.SealKeyFile}, {"tls-key", c.TLS.Key}} {
		var mode *files.ModeError
		if f.path == "" || f.path == c.DataDir && !embedded || !errors.As(files.CheckReaders(f.path), &mode) {
			continue
		}
		warnings = append(warnings, Finding{
			Level: Warn, About: f.about, Found: fmt.Sprintf("%s can %s %s, mode %04o", mode.Who, mode.Can, mode.Path, mode.Mode.Perm()), Do: "chmod " + mode.Bits + " " + mode.Path,
		})
	}
	return warnings, nil
}

// plainAddresses returns the addresses without TLS that other machines can reach, with their flags.
func (c Config) plainAddresses() (all []string) {
	if c.TLS.Cert != "" {
		return nil
	}
	for _, a := range c.Addresses {
		if host, _, _ := net.SplitHostPort(a.At); !auth.Loopback(host) && !unixsocket.Is(a.At) && !a.Passed && a.Flag != "metrics-addr" { // callers send no tokens there
			all = append(all, fmt.Sprintf("--%s %s", a.Flag, a.At))
		}
	}
	return all
}
