package main

import (
	"fmt"
	"net/http"

	"github.com/spf13/pflag"

	"github.com/firn-id/firn/internal/base/unixsocket"
	"github.com/firn-id/firn/internal/ops/remote"
	"github.com/firn-id/firn/internal/ops/setting"
)

// serverFlags say which server to ask, and how to be let in.
type serverFlags struct {
	remote.Access
	name string // of the flag that says which
	url  string
}

// addPublic adds the flags of who takes IDs.
func (s *serverFlags) addPublic(fs *pflag.FlagSet) {
	s.name = "server"
	setting.Add(fs, &s.url, s.name, "URL", "http://127.0.0.1:8080", "the server to ask", remote.ParseURL)
	s.add(fs)
}

// addAdmin adds the flags of who administers.
func (s *serverFlags) addAdmin(fs *pflag.FlagSet) {
	s.name = "admin"
	setting.Add(fs, &s.url, s.name, "URL", "http://127.0.0.1:9080",
		"the server to ask, at its address for administrators", remote.ParseURL)
	s.add(fs)
}

func (s *serverFlags) add(fs *pflag.FlagSet) {
	setting.Text(fs, &s.TokenFile, "token-file", "file", "a file with the token for the server")
	setting.Text(fs, &s.CA, "ca", "file",
		"PEM certificates of the CAs of the server's certificate (default:\nthe system's)")
	setting.Text(fs, &s.Cert, "cert", "file", "PEM certificate to show to the server")
	setting.Text(fs, &s.Key, "key", "file", "PEM key of that certificate")
}

// names are those of the flags.
func (s *serverFlags) names() []string { return []string{s.name, "token-file", "ca", "cert", "key"} }

// client is who asks that server.
func (s *serverFlags) client() (remote.Client, error) {
	c := remote.Client{Base: s.url, HTTP: http.DefaultClient, Hint: hint("firn serve", s.name)}
	token, config, err := s.Load()
	if err != nil {
		return c, usageError{err}
	}
	c.Token = token
	switch path, err := unixsocket.Parse(s.url); {
	case err == nil && config != nil:
		return c, usagef("--%s: %s is a Unix socket, without TLS, and --ca, --cert and --key are for TLS; leave "+
			"them out", s.name, s.url)
	case err == nil:
		c.HTTP = &http.Client{Transport: unixsocket.Transport(http.DefaultTransport.(*http.Transport), path)}
	case config != nil:
		c.HTTP = &http.Client{Transport: &http.Transport{
			TLSClientConfig: config, Proxy: http.ProxyFromEnvironment,
			ForceAttemptHTTP2: true,
		}}
	}
	return c, nil
}

// hint says what to do where no server answers.
func hint(command, flag string) string {
	return fmt.Sprintf("; is `%s` running there? --%s or %s says where to ask", command, flag, setting.Variable(flag))
}
