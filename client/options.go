package client

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Option is a setting of a client. By default a client sends no token and keeps no IDs in memory.
type Option func(*config)

type config struct {
	tls       *tls.Config
	token     func() string
	transport http.RoundTripper
	hooks     Hooks
	ahead     bool
	count     int
	maxAge    time.Duration
}

// WithTLS sets which certificates are accepted of nodes with https URLs, and which is shown to them. Nil, the default,
// accepts those that the operating system trusts. The configuration is copied.
func WithTLS(t *tls.Config) Option {
	return func(c *config) { c.tls = t.Clone() }
}

// WithToken sends what token returns with every request, as "Authorization: Bearer"; empty: nothing. It is called for
// every request, by several goroutines at once, and must be quick: renew the token elsewhere. Errors and hooks never
// contain it.
func WithToken(token func() string) Option {
	return func(c *config) { c.token = token }
}

// WithTransport sends requests by t instead of the client's own [http.Transport]. It must keep enough idle connections
// to each node. Close does not close it. It can't be combined with WithTLS.
func WithTransport(t http.RoundTripper) Option {
	return func(c *config) { c.transport = t }
}

// WithHooks calls hooks about what the client does.
func WithHooks(h Hooks) Option {
	return func(c *config) { c.hooks = h }
}

// DefaultMaxAge is a maxAge for WithPrefetch. The clients in other languages take it where none is given.
const DefaultMaxAge = 2 * time.Second

// WithPrefetch keeps up to count IDs of each sequencer in memory, 1 to 100000, and returns them from there, so that one
// request serves many calls. When half of them are left, it fetches more. Fill with more than count IDs calls a node
// directly.
//
// IDs older than maxAge, above zero, such as [DefaultMaxAge], are dropped. The age of an ID counts from before its
// request is sent. It includes time in which the machine slept, or lay in a snapshot, as soon as the wall clock shows
// that. Two machines that resume one snapshot of memory may both return the IDs that were in it, until those are too
// old. Choose a count that is used within maxAge, and a maxAge of several times the time of an answer: for 500 IDs per
// second and a maxAge of 2 s, a count of up to 1000. Of a counter, the IDs that are dropped, and those in memory at
// Close, are gaps.
func WithPrefetch(count int, maxAge time.Duration) Option {
	return func(c *config) { c.ahead, c.count, c.maxAge = true, count, maxAge }
}

func (c *config) validate() error {
	switch {
	case c.ahead && (c.count < 1 || c.count > maxCount):
		return fmt.Errorf("WithPrefetch with a count of %d; want 1 to %d", c.count, maxCount)
	case c.ahead && c.maxAge <= 0:
		return fmt.Errorf("WithPrefetch with a maxAge of %v; want more than zero", c.maxAge)
	case c.tls != nil && c.transport != nil:
		return errors.New("WithTLS has no effect on the transport of WithTransport; set its own")
	}
	return nil
}

// Limits of the client's own transport. It keeps idle connections, so that many callers at once need not open new ones
// all the time, and closes them before the server does, which is after two minutes.
const (
	dialWithin = 2 * time.Second
	idlePer    = 256
	idleFor    = 90 * time.Second
	maxHeader  = 64 << 10
)

func (c *config) newTransport() http.RoundTripper {
	if c.transport != nil {
		return c.transport
	}
	t := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: dialWithin}).DialContext,
		TLSClientConfig:        c.tls,
		TLSHandshakeTimeout:    dialWithin,
		MaxIdleConnsPerHost:    idlePer,
		IdleConnTimeout:        idleFor,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeader,
		Protocols:              new(http.Protocols),
	}
	t.Protocols.SetHTTP1(true) // with HTTP/2 all requests would wait behind one connection that is stuck
	return t
}
