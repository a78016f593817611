package client

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/firn-id/firn/internal/base/unixsocket"
)

// parseNodes returns the URLs with which requests begin.
func parseNodes(nodes []string) ([]string, error) {
	if len(nodes) == 0 {
		return nil, errors.New("no nodes; want at least one URL, such as http://ids-1:8080")
	}
	var urls []string
	first := map[string]int{}
	for i, text := range nodes {
		parsed, err := parseNode(text)
		if err != nil {
			return nil, fmt.Errorf("node %d: %w; want a URL such as http://ids-1:8080, or unix:/run/firn/firn.sock",
				i+1, err)
		}
		if j, twice := first[parsed]; twice {
			return nil, fmt.Errorf("node %d is the same as node %d: %s", i+1, j+1, parsed)
		}
		first[parsed] = i
		urls = append(urls, parsed)
	}
	return urls, nil
}

// parseNode returns a URL in its canonical form. An error does not show what may be a password.
func parseNode(text string) (string, error) {
	if unixsocket.Is(text) {
		path, err := unixsocket.Parse(text)
		return unixsocket.Scheme + path, err
	}
	u, err := url.Parse(text)
	if err != nil {
		if inner, ok := errors.AsType[*url.Error](err); ok {
			err = inner.Err // without the text
		}
		return "", fmt.Errorf("not a URL: %w", err)
	}
	if u.User != nil {
		return "", errors.New("the URL has a user; use WithToken")
	}
	standard := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	switch {
	case standard == "":
		return "", fmt.Errorf("%.100q begins with neither http:// nor https:// nor unix: as URLs here do", text)
	case u.Hostname() == "":
		return "", fmt.Errorf("%.100q has no host", text)
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "", fmt.Errorf("%.100q has more than a host and a port", text)
	}
	host, port := strings.ToLower(u.Hostname()), u.Port()
	switch {
	case port != "" && port != standard:
		host = net.JoinHostPort(host, port)
	case strings.Contains(host, ":"):
		host = "[" + host + "]"
	}
	return u.Scheme + "://" + host, nil
}
