package remote

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/firn-id/firn/internal/base/files"
	"github.com/firn-id/firn/internal/base/unixsocket"
)

// Access names the files with a caller's credentials for a server. Empty: no file.
type Access struct {
	TokenFile string // with the token to send
	CA        string // the authorities that may sign the server's certificate
	Cert, Key string // the client's certificate
}

// Load returns the token to send, or an empty one, and the TLS configuration; nil if no file is for TLS. An error
// names the flag of the file.
func (a Access) Load() (token string, config *tls.Config, err error) {
	if a.TokenFile != "" {
		text, err := files.ReadOnce(a.TokenFile)
		if err != nil {
			return "", nil, fmt.Errorf("--token-file: %w", err)
		}
		// Lines that begin with # are comments.
		lines := slices.DeleteFunc(strings.Split(string(text), "\n"), func(line string) bool {
			return strings.HasPrefix(line, "#")
		})
		if token = strings.TrimSpace(strings.Join(lines, "\n")); token == "" || strings.ContainsAny(token, " \t\r\n") {
			return "", nil,
				fmt.Errorf("--token-file: %s holds no token; want the first line that firn token prints, and "+
					"nothing else", a.TokenFile)
		}
	}
	if a.CA == "" && a.Cert == "" && a.Key == "" {
		return token, nil, nil
	}
	config = &tls.Config{MinVersion: tls.VersionTLS12}
	if a.CA != "" {
		data, err := files.ReadOnce(a.CA)
		if err != nil {
			return "", nil, fmt.Errorf("--ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(data) {
			return "", nil, fmt.Errorf("--ca: there is no PEM certificate in %s", a.CA)
		}
	}
	if a.Cert != "" || a.Key != "" {
		pair, err := files.LoadPair(a.Cert, a.Key)
		if err != nil {
			return "", nil, fmt.Errorf("--cert and --key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return token, config, nil
}

// ParseURL parses the URL of a server, its host:port, or the address of its Unix socket.
func ParseURL(text string) (string, error) {
	if unixsocket.Is(text) {
		path, err := unixsocket.Parse(text)
		return unixsocket.Scheme + path, err
	}
	full := text
	if !strings.Contains(text, "://") {
		full = "http://" + text
	}
	u, err := url.Parse(full)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" ||
		u.Fragment != "" {
		return "", fmt.Errorf("%.80q is not a URL of a server; want one such as http://127.0.0.1:8080, or "+
			"unix:/run/firn/firn.sock", text)
	}
	return strings.TrimSuffix(full, "/"), nil
}
