package remote

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
)

// Access are the files by which a server lets somebody in; empty: there is none.
type Access struct {
	TokenFile string // with the token to show
	CA        string // the authorities that the server's certificate may be signed by
	Cert, Key string // the certificate to show
}

// Load returns the token to show, empty if there is none, and what TLS needs; nil when no file is about that. An error names the
// flag of the file.
func (a Access) Load() (token string, config *tls.Config, err error) {
	if a.TokenFile != "" {
		text, err := os.ReadFile(a.TokenFile)
		if err != nil {
			return "", nil, fmt.Errorf("--token-file: %w", err)
		}
		// What begins with # says what a token is for.
		lines := slices.DeleteFunc(strings.Split(string(text), "\n"), func(line string) bool { return strings.HasPrefix(line, "#") })
		if token = strings.TrimSpace(strings.Join(lines, "\n")); token == "" || strings.ContainsAny(token, " \t\r\n") {
			return "", nil, fmt.Errorf("--token-file: %s holds no token; want the first line that firn token prints, and nothing else", a.TokenFile)
		}
	}
	if a.CA == "" && a.Cert == "" && a.Key == "" {
		return token, nil, nil
	}
	config = &tls.Config{MinVersion: tls.VersionTLS12}
	if a.CA != "" {
		data, err := os.ReadFile(a.CA)
		if err != nil {
			return "", nil, fmt.Errorf("--ca: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(data) {
			return "", nil, fmt.Errorf("--ca: there is no PEM certificate in %s", a.CA)
		}
	}
	if a.Cert != "" || a.Key != "" {
		pair, err := tls.LoadX509KeyPair(a.Cert, a.Key)
		if err != nil {
			return "", nil, fmt.Errorf("--cert and --key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return token, config, nil
}

// ParseURL reads the URL of a server, or its host:port.
func ParseURL(text string) (string, error) {
	full := text
	if !strings.Contains(text, "://") {
		full = "http://" + text
	}
	u, err := url.Parse(full)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("%.80q is not a URL of a server; want one such as http://127.0.0.1:8080", text)
	}
	return strings.TrimSuffix(full, "/"), nil
}
