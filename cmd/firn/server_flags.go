package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/firn-id/firn/internal/setting"
)

// serverFlags say which server to ask, and how to be let in.
type serverFlags struct {
	name      string // of the flag that says which
	url       string
	tokenFile string
	ca        string
	cert, key string
}

// addPublic adds the flags of who takes IDs.
func (s *serverFlags) addPublic(fs *pflag.FlagSet) {
	s.name = "server"
	setting.Add(fs, &s.url, s.name, "URL", "http://127.0.0.1:8080", "the server to ask", parseServer)
	s.add(fs)
}

// addAdmin adds the flags of who administers.
func (s *serverFlags) addAdmin(fs *pflag.FlagSet) {
	s.name = "admin"
	setting.Add(fs, &s.url, s.name, "URL", "http://127.0.0.1:9080", "the server to ask, where it listens for administrators", parseServer)
	s.add(fs)
}

func (s *serverFlags) add(fs *pflag.FlagSet) {
	text := func(into *string, name, usage string) {
		setting.Add(fs, into, name, "file", "", usage, func(s string) (string, error) { return s, nil })
	}
	text(&s.tokenFile, "token-file", "a file with the token to show to the server")
	text(&s.ca, "ca", "PEM certificates of the authorities that the server's may be signed\nby (default: those that the system trusts)")
	text(&s.cert, "cert", "PEM certificate to show to the server")
	text(&s.key, "key", "PEM key of that certificate")
}

// names are those of the flags.
func (s *serverFlags) names() []string { return []string{s.name, "token-file", "ca", "cert", "key"} }

// client is who asks that server.
func (s *serverFlags) client() (client, error) {
	c := client{base: s.url, flag: s.name, http: http.DefaultClient}
	token, config, err := s.secrets()
	if err != nil {
		return c, err
	}
	c.token = token
	if config != nil {
		c.http = &http.Client{Transport: &http.Transport{TLSClientConfig: config, Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}}
	}
	return c, nil
}

// secrets are the token to show, empty if there is none, and what TLS needs; nil when no flag is about that.
func (s *serverFlags) secrets() (token string, config *tls.Config, err error) {
	if s.tokenFile != "" {
		text, err := os.ReadFile(s.tokenFile)
		if err != nil {
			return "", nil, usagef("--token-file: %w", err)
		}
		// What begins with # says what a token is for.
		lines := slices.DeleteFunc(strings.Split(string(text), "\n"), func(line string) bool { return strings.HasPrefix(line, "#") })
		if token = strings.TrimSpace(strings.Join(lines, "\n")); token == "" || strings.ContainsAny(token, " \t\r\n") {
			return "", nil, usagef("--token-file: %s holds no token; want the first line that firn token prints, and nothing else", s.tokenFile)
		}
	}
	if s.ca == "" && s.cert == "" && s.key == "" {
		return token, nil, nil
	}
	config = &tls.Config{MinVersion: tls.VersionTLS12}
	if s.ca != "" {
		data, err := os.ReadFile(s.ca)
		if err != nil {
			return "", nil, usagef("--ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(data) {
			return "", nil, usagef("--ca: there is no PEM certificate in %s", s.ca)
		}
	}
	if s.cert != "" || s.key != "" {
		pair, err := tls.LoadX509KeyPair(s.cert, s.key)
		if err != nil {
			return "", nil, usagef("--cert and --key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return token, config, nil
}

// parseServer reads the URL of a server, or its host:port.
func parseServer(text string) (string, error) {
	full := text
	if !strings.Contains(text, "://") {
		full = "http://" + text
	}
	u, err := url.Parse(full)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("%.80q is no URL of a server; want one such as http://127.0.0.1:8080", text)
	}
	return strings.TrimSuffix(full, "/"), nil
}
