// Package client takes IDs from several nodes of a firn service, over HTTP.
//
//	c, err := client.New([]string{"http://ids-1:8080", "http://ids-2:8080", "http://ids-3:8080"})
//	defer c.Close()
//	id, err := c.Next(ctx)
//
// A call goes to a node that works, and to another one if that fails or is slow, until its context ends. The only
// effect of calling twice is an ID that nobody uses, so every call can be repeated. An error that the caller must fix,
// such as a wrong token or a sequencer that does not exist, is returned at once. So is a *[MixedError], which shows
// that the nodes are not of one cluster.
//
// With [WithPrefetch] the client fetches IDs in batches and returns them from memory, none older than a chosen age.
//
// The IDs of one answer ascend, and so do those of calls one after the other: the client tells a node the greatest ID
// that another one gave. A node whose clock is more than a second behind that refuses, and another one is asked, unless
// the token has the right "order", which allows 10 s. Calls at one time, texts that nodes write, counters and scattered
// IDs have no such order.
//
// A process that makes IDs itself uses package member instead.
package client

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/unixsocket"
)

// DefaultTimeout limits Next and Fill when their context has no deadline.
const DefaultTimeout = 10 * time.Second

// maxCount is how many IDs a node gives at once.
const maxCount = 100_000

// Client takes IDs from the nodes of one service. It is safe for concurrent use. New makes one; the zero value does
// not work.
type Client struct {
	nodes     []string // URLs without a slash at the end
	config    config
	transport http.RoundTripper
	sockets   map[string]http.RoundTripper // of nodes that are Unix sockets
	standard  *Sequencer

	life  context.Context // ends when Close has waited for the calls
	end   context.CancelFunc
	calls sync.WaitGroup // Next and Fill
	tasks sync.WaitGroup // requests and fetches, which only calls and tasks start

	clusters clusters

	mu         sync.Mutex // guards what follows
	closed     bool
	sequencers map[string]*Sequencer
}

// New returns a client of the nodes with these URLs, such as http://ids-1:8080 or https://[::1]:8443, or with the Unix
// socket of a node on this machine, such as unix:/run/firn/firn.sock. One URL may be that of a balancer. New sends
// nothing, so nodes may be down.
//
// An error is returned when there is no URL, when one is not http:// or https:// with a host, an optional port and
// nothing else, nor unix: with an absolute path, when two are the same, or when an option is wrong: WithTransport
// reaches no Unix socket.
func New(nodes []string, options ...Option) (*Client, error) {
	urls, err := parseNodes(nodes)
	if err != nil {
		return nil, err
	}
	var config config
	for _, o := range options {
		o(&config)
	}
	if err := config.validate(); err != nil {
		return nil, err
	}
	c := &Client{
		nodes: urls, config: config, transport: config.newTransport(), sockets: map[string]http.RoundTripper{},
		sequencers: map[string]*Sequencer{},
	}
	for _, node := range urls {
		path, err := unixsocket.Parse(node)
		if err != nil {
			continue
		}
		own, ok := c.transport.(*http.Transport)
		if !ok || config.transport != nil {
			return nil, fmt.Errorf("%s is a Unix socket, which WithTransport does not reach; want no WithTransport",
				node)
		}
		c.sockets[node] = unixsocket.Transport(own, path)
	}
	c.life, c.end = context.WithCancel(context.Background())
	c.standard = newSequencer(c, "")
	return c, nil
}

// Next returns an ID of the default sequencer, see [Sequencer.Next].
func (c *Client) Next(ctx context.Context) (firn.ID, error) { return c.standard.Next(ctx) }

// Fill fills ids with IDs of the default sequencer, see [Sequencer.Fill].
func (c *Client) Fill(ctx context.Context, ids []firn.ID) error { return c.standard.Fill(ctx, ids) }

// Texts returns the texts of n IDs of the default sequencer, see [Sequencer.Texts].
func (c *Client) Texts(ctx context.Context, form string, n int) ([]string, error) {
	return c.standard.Texts(ctx, form, n)
}

// Convert writes an ID of the default sequencer in another form, see [Sequencer.Convert].
func (c *Client) Convert(ctx context.Context, id, form string) (text string, err error) {
	return c.standard.Convert(ctx, id, form)
}

// ConvertFrom is Convert for a text whose form is known, see [Sequencer.ConvertFrom].
func (c *Client) ConvertFrom(ctx context.Context, as, id, form string) (text string, err error) {
	return c.standard.ConvertFrom(ctx, as, id, form)
}

// Sequencer returns the sequencer of a name, the same one each time; an empty name is the default sequencer. It sends
// nothing: Next and Fill tell whether the sequencer exists. The client keeps state for every name, so names should not
// come from strangers.
func (c *Client) Sequencer(name string) *Sequencer {
	if name == "" {
		return c.standard
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok := c.sequencers[name]
	if !ok {
		s = newSequencer(c, name)
		c.sequencers[name] = s
	}
	return s
}

// Close waits for the calls in flight, which end with their contexts at the latest, then ends all requests and drops
// the IDs in memory. From then on Next and Fill return ErrClosed. It always returns nil, and may be called again.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.calls.Wait()
	c.end()
	c.tasks.Wait()
	c.standard.drop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.sequencers {
		s.drop()
	}
	if own, ok := c.transport.(*http.Transport); ok && c.config.transport == nil {
		own.CloseIdleConnections()
	}
	for _, own := range c.sockets {
		own.(*http.Transport).CloseIdleConnections()
	}
	return nil
}

// enter begins a call; leave ends it. ErrClosed is returned after Close.
func (c *Client) enter() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	c.calls.Add(1)
	return nil
}

func (c *Client) leave() { c.calls.Done() }
