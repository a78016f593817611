// Package forward asks other nodes of the cluster for IDs over HTTP, as their callers do, on behalf of a node that has
// none.
package forward

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/clusterid"
	"github.com/firn-id/firn/internal/base/packed"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/httpapi"
)

// Client is a calls.Forwarder. Make it with New. It is safe for concurrent use.
type Client struct {
	http    *http.Client
	cluster func() string
	own     *tls.Config // nil: this node serves without TLS
}

const (
	connectWithin = time.Second
	idleFor       = 30 * time.Second // less than a server keeps a connection that is not used
	idleMost      = 64               // connections to one node
	longestError  = 64 << 10         // bytes
	longestReason = 1 << 10          // bytes of it that callers get
)

// New returns a client for the nodes of one cluster. The function cluster returns the cluster's ID; while that is
// empty, the client asks nobody. Own is how this node serves TLS: the client then asks over TLS alone, and trusts the
// authorities of this node's certificate and those of the system. Own is nil for a node that serves without TLS. Traced
// returns a transport that passes on the trace of each call.
func New(cluster func() string, own *tls.Config, traced func(http.RoundTripper) http.RoundTripper) *Client {
	dialer := net.Dialer{Timeout: connectWithin}
	return &Client{
		cluster: cluster,
		own:     own,
		http: &http.Client{
			Transport: traced(&http.Transport{
				DialContext: dialer.DialContext,
				DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
					config, err := trusting(own)
					if err != nil {
						return nil, err
					}
					return (&tls.Dialer{NetDialer: &dialer, Config: config}).DialContext(ctx, network, address)
				},
				MaxIdleConns:        0, // no limit
				MaxIdleConnsPerHost: idleMost,
				IdleConnTimeout:     idleFor,
				DisableCompression:  true,
			}),
			// the token is for the node
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// Close closes the connections that are not in use.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// trusting returns the settings for a connection to another node, which has a certificate by the same authority as this
// one, by one that the system trusts, or the same certificate.
func trusting(own *tls.Config) (*tls.Config, error) {
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if own != nil && own.GetCertificate != nil {
		mine, err := own.GetCertificate(&tls.ClientHelloInfo{})
		if err != nil {
			return nil, fmt.Errorf("this node's own certificate: %w", err)
		}
		for _, der := range mine.Certificate {
			if cert, err := x509.ParseCertificate(der); err == nil {
				roots.AddCert(cert)
			}
		}
	}
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}, nil
}

// Fill implements calls.Forwarder. An error is returned, too, when another cluster answers: its IDs may be the same.
func (c *Client) Fill(ctx context.Context, at, token, sequencer string, after firn.ID, ids []firn.ID) error {
	mine := c.cluster()
	if mine == "" {
		return fmt.Errorf("the ID of this cluster is not known yet, so that no node can be told from a stranger")
	}
	r, err := c.request(ctx, at, sequencer, len(ids))
	if err != nil {
		return err
	}
	if after != 0 {
		r.Header[httpapi.After] = []string{after.String()}
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := c.http.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // it was only read
	if other := response.Header.Get(clusterid.Header); other != mine {
		return fmt.Errorf("%s answers for the cluster %.40q; this one is %q", at, other, mine)
	}
	if response.StatusCode != http.StatusOK {
		return refusal(response)
	}
	if kind := response.Header.Get("Content-Type"); kind != packed.Type {
		return fmt.Errorf("%s answers with %.40q; want %q", at, kind, packed.Type)
	}
	return packed.ReadFrom(ids, response.Body)
}

// request returns a request for IDs to the node at a URL of scheme, host and port, as a store has it.
func (c *Client) request(ctx context.Context, at, sequencer string, count int) (*http.Request, error) {
	u, err := url.Parse(at)
	if err != nil {
		return nil, err
	}
	if u.Host == "" || *u != (url.URL{Scheme: u.Scheme, Host: u.Host}) || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("the address of the other node is %.100q; want http:// or https://, a host and a port",
			at)
	}
	if u.Scheme == "http" && c.own != nil {
		return nil, fmt.Errorf("%s is served without TLS: what callers send to this node over TLS does not go there",
			at)
	}
	// not cleaned: ".." is a name, too
	u.Path, u.RawQuery = "/api/v1/sequencers/"+sequencer+"/ids", "count="+strconv.Itoa(count)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", packed.Type)
	r.Header[httpapi.Forwarded] = []string{"1"}
	// a kept connection may have ended: then it is asked again, which is no harm. It is not sent
	r.Header["X-Idempotency-Key"] = nil
	return r, nil
}

// refusal returns the error that a node has answered with.
func refusal(response *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(response.Body, longestError))
	if err != nil {
		return err
	}
	var failure httpapi.Failure
	if err := json.Unmarshal(body, &failure); err != nil || failure.Error.Code == "" {
		return fmt.Errorf("it answers %s: %.100q", response.Status, body)
	}
	message := failure.Error.Message
	message = strings.ToValidUTF8(message[:min(len(message), longestReason)], "")
	seconds, _ := strconv.Atoi(response.Header.Get("Retry-After")) // without a number, 0
	return &calls.ElsewhereError{
		Code: failure.Error.Code, Message: message,
		Retry: time.Duration(max(seconds, 0)) * time.Second,
	}
}
