package client

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Option is a setting of a client. Without any, a client speaks plain HTTP or HTTPS as the URLs say, shows no token, and
// keeps nothing in memory.
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

// WithTLS sets how nodes with https URLs are recognised, and what is shown to them. Nil, and without this option: they
// need a certificate that the operating system trusts. It is copied.
func WithTLS(t *tls.Config) Option {
	return func(c *config) { c.tls = t.Clone() }
}

// WithToken has every request show what token returns, as "Authorization: Bearer". It is called for every request, possibly
// by several goroutines at once, and must be quick: whoever renews the token does so elsewhere. With an empty text
// nothing is shown. The token is in no error and is given to no hook.
func WithToken(token func() string) Option {
	return func(c *config) { c.token = token }
}

// WithTransport has requests sent by t in place of the client's own [http.Transport]. It must keep enough idle connections
// for each node, and is not closed by Close. It can't go with WithTLS.
func WithTransport(t http.RoundTripper) Option {
	return func(c *config) { c.transport = t }
}

// WithHooks tells what the client does.
func WithHooks(h Hooks) Option {
	return func(c *config) { c.hooks = h }
}

// WithPrefetch keeps up to count IDs of each sequencer in memory, 1 to 100000, and hands them out from there: one request serves
// many calls. When half of them are left, more are fetched. Fill with more than count IDs goes to a node directly.
//
// No ID is handed out that is older than maxAge, above zero: its age counts from before the request for it was sent, by the monotonic
// clock. (On Linux that clock stands still while the machine sleeps.) What gets too old is thrown away, and so
// count should be about what is used within maxAge, and maxAge a few times as long as an answer takes.
// Worked number: 500 IDs a second and a maxAge of 2 s go with a count of up to 1000.
func WithPrefetch(count int, maxAge time.Duration) Option {
	return func(c *config) { c.ahead, c.count, c.maxAge = true, count, maxAge }
}

func (c *config) validate() error {
	switch {
	case c.ahead && (c.count < 1 || c.count > maxCount):
		return fmt.Errorf("client: WithPrefetch with a count of %d; want 1 to %d", c.count, maxCount)
	case c.ahead && c.maxAge <= 0:
		return fmt.Errorf("client: WithPrefetch with a maxAge of %v; want more than zero", c.maxAge)
	case c.tls != nil && c.transport != nil:
		return errors.New("client: WithTLS has no effect on the transport of WithTransport; set its own")
	}
	return nil
}

// Limits of the client's own transport. Connections that are not used are kept, so that many callers at once do not
// open and close them all the time; the server closes idle ones after two minutes, and the client shall be first.
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
