package doctor

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/firn-id/firn/internal/base/files"
	"github.com/firn-id/firn/internal/base/unixsocket"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/stores"
)

// The About of findings about files that only the owner should read.
const (
	AboutTokens   = "tokens"
	AboutSealKeys = "seal-key-file"
	aboutData     = "data directory"
	aboutKey      = "tls-key"
)

// Unchecked reports whether Check finds nothing about what a warning is about.
func (f Finding) Unchecked() bool { return f.About != aboutData && f.About != aboutKey }

// Warnings returns findings about a configuration before a node runs. It returns an error for a configuration
// that must not be used: a data directory that other users can write, or in which something belongs to them.
func (c Config) Warnings() (warnings []Finding, _ error) {
	keeps := c.Keeps()
	if keeps {
		if err := files.CheckTree(c.DataDir); err != nil {
			return nil, fmt.Errorf("--data-dir: %w", err)
		}
	}
	if open := c.plainAddresses(); c.TokensFile != "" && len(open) > 0 {
		warnings = append(warnings, Finding{
			Level: Warn, About: AboutTokens, Found: "callers send them unencrypted to " + strings.Join(open, ", "),
			Do: "give a certificate with --tls-cert and --tls-key, or have these addresses reached through a proxy " +
				"for TLS on this machine only",
		})
	}
	if c.SealKeyFile != "" && c.TokensFile == "" {
		warnings = append(warnings, Finding{
			Level: Warn, About: AboutSealKeys,
			Found: "without tokens, anyone who reaches this node can open sealed IDs, and seal IDs",
			Do: "give --tokens, with the right open for those alone who may open IDs, or keep strangers away from " +
				"this node",
		})
	}
	secrets := []stores.File{
		{Setting: AboutTokens, Path: c.TokensFile},
		{Setting: AboutSealKeys, Path: c.SealKeyFile},
		{Setting: aboutKey, Path: c.TLS.Key},
	}
	if keeps {
		secrets = append([]stores.File{{Setting: aboutData, Path: c.DataDir}}, secrets...)
	}
	for _, f := range append(secrets, c.Secrets()...) {
		var mode *files.ModeError
		if f.Path == "" || !errors.As(files.CheckReaders(f.Path), &mode) {
			continue
		}
		warnings = append(warnings, Finding{
			Level: Warn, About: f.Setting, Found: fmt.Sprintf("%s can %s %s, mode %04o", mode.Who, mode.Can, mode.Path,
				mode.Mode.Perm()), Do: mode.Do + " " + mode.Path,
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
		// callers send no tokens there
		if host, _, _ := net.SplitHostPort(a.At); !auth.Loopback(host) && !unixsocket.Is(a.At) && !a.Passed &&
			a.Flag != "metrics-addr" {
			all = append(all, fmt.Sprintf("--%s %s", a.Flag, a.At))
		}
	}
	return all
}
