package memstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/internal/appends"
)

// callDeadline ends a call that has waited this long for its answer.
const callDeadline = 5 * time.Second

var errClosed = fmt.Errorf("%w: the store is closed", store.ErrRefused)

// Client is one client of a Service, with faults of its own. It implements
// store.Store. Service.Client makes it.
type Client struct {
	name     string
	svc      *Service
	appender *appends.Appender
	wg       sync.WaitGroup // the goroutines that renew sessions

	// The rest is guarded by svc.mu.
	hook     Hook
	cut      bool
	lag      time.Duration
	news     []func() // what the client will learn when the partition ends
	closed   bool
	sessions map[*Session]bool
	heard    store.Position // how far the log reaches, by the news
	wake     chan struct{}  // closed when heard has grown or the client is closed; nil: nobody waits
}

var _ store.Store = (*Client)(nil)

// Client makes a new client. Hooks see its name, which need not be unique.
func (s *Service) Client(name string) *Client {
	c := &Client{name: name, svc: s, sessions: make(map[*Session]bool)}
	c.appender = appends.New(tries{c}, retryAfter)
	return c
}

// Traits returns the zero value: the service is this process's own.
func (c *Client) Traits() store.Traits { return store.Traits{} }

// Get reads one key, see store.Store.
func (c *Client) Get(ctx context.Context, key string) (store.KV, error) {
	if err := store.ValidateKey(key); err != nil {
		return store.KV{}, err
	}
	return send(ctx, c, Call{Op: Get, Key: key}, func() (store.KV, error) {
		return c.svc.getLocked(key), nil
	})
}

// List reads all keys with a prefix at one moment, see store.Store.
func (c *Client) List(ctx context.Context, prefix string) ([]store.KV, error) {
	if err := store.ValidatePrefix(prefix); err != nil {
		return nil, err
	}
	return send(ctx, c, Call{Op: List, Key: prefix}, func() ([]store.KV, error) {
		return c.svc.listLocked(prefix), nil
	})
}

// Commit applies a transaction, see store.Store.
func (c *Client) Commit(ctx context.Context, txn store.Txn) (store.Version, error) {
	if err := txn.Validate(); err != nil {
		return 0, err
	}
	return send(ctx, c, Call{Op: Commit, Txn: txn}, func() (store.Version, error) {
		return c.svc.commitLocked(txn)
	})
}

// Gone watches a key until it disappears, see store.Store.
func (c *Client) Gone(ctx context.Context, key string) (<-chan struct{}, error) {
	if err := store.ValidateKey(key); err != nil {
		return nil, err
	}
	return send(ctx, c, Call{Op: Gone, Key: key}, func() (<-chan struct{}, error) {
		return c.svc.watchLocked(ctx, c, key), nil
	})
}

func (s *Service) watchLocked(ctx context.Context, c *Client, key string) <-chan struct{} {
	w := &watch{client: c, ctx: ctx, gone: make(chan struct{})}
	if _, ok := s.keys[key]; !ok {
		close(w.gone)
		return w.gone
	}
	if s.watches[key] == nil {
		s.watches[key] = make(map[*watch]bool)
	}
	s.watches[key][w] = true
	w.forget = context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watches[key], w)
	})
	return w.gone
}

// Close ends every session, watch and Follow of this client, see store.Store. During a
// partition it leaves its sessions to expire, as a crash would.
func (c *Client) Close() error {
	c.svc.mu.Lock()
	c.closed = true
	c.wakeLocked()
	for session := range c.sessions {
		session.doneLocked()
		if !c.cut {
			c.svc.endLocked(session.lease)
		}
	}
	for _, watches := range c.svc.watches {
		for w := range watches {
			if w.client == c {
				w.forget()
				delete(watches, w)
			}
		}
	}
	c.svc.mu.Unlock()
	c.wg.Wait()
	return nil
}

type answer[T any] struct {
	value T
	err   error
}

// send sends a call to the service, where apply runs with the lock held, and returns its
// answer. A caller that stops waiting does not cancel the call.
func send[T any](ctx context.Context, c *Client, call Call, apply func() (T, error)) (T, error) {
	var none T
	call.Client = c.name
	silence := store.ErrUnavailable
	if call.Op.writes() {
		silence = store.ErrAmbiguous
	}
	failed := func(cause error) (T, error) {
		return none, fmt.Errorf("%s: %w: %w", call.Op, silence, cause)
	}

	ctx, cancel := context.WithTimeout(ctx, callDeadline)
	defer cancel()
	if c.isClosed() {
		return none, errClosed
	}
	if ctx.Err() != nil {
		return failed(ctx.Err())
	}
	fault := c.faultOf(call)
	if fault.Outcome == FailBefore {
		return failed(errInjected)
	}

	answers := make(chan answer[T], 1)
	arrive := func() {
		c.svc.mu.Lock()
		defer c.svc.mu.Unlock()
		if !c.cut {
			value, err := apply()
			answers <- answer[T]{value, err}
		}
	}
	if fault.Delay > 0 {
		time.AfterFunc(fault.Delay, arrive)
	} else {
		arrive()
	}
	if fault.Outcome == ApplyLate {
		return failed(errInjected)
	}
	select {
	case a := <-answers:
		if fault.Outcome == FailAfter {
			return failed(errInjected)
		}
		return a.value, a.err
	case <-ctx.Done():
		return failed(ctx.Err())
	}
}

// errInjected is the cause of a hook's fault.
var errInjected = errors.New("an injected fault")

func (c *Client) isClosed() bool {
	c.svc.mu.Lock()
	defer c.svc.mu.Unlock()
	return c.closed
}
