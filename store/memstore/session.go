package memstore

import (
	"context"
	"fmt"
	"time"

	"github.com/firn-id/firn/store"
)

const (
	minTTL          = time.Millisecond
	renewalsPerTTL  = 6
	renewalDeadline = time.Second
)

// Session holds what the service and what the client knows of a session. It implements
// store.Session.
type Session struct {
	client *Client
	ttl    time.Duration
	stop   context.CancelFunc // ends the renewals
	done   chan struct{}

	// What the service knows, guarded by client.svc.mu.
	alive   bool
	renewed time.Time   // when the last renewal arrived
	expiry  *time.Timer // ends the session a TTL after that

	// What the client knows, guarded by client.svc.mu.
	isDone bool
	asked  time.Time   // when the last renewal that succeeded was sent
	doubt  *time.Timer // closes done a TTL after that
}

var _ store.Session = (*Session)(nil)

// OpenSession begins a session, see store.Store. A TTL below a millisecond is
// raised to one.
func (c *Client) OpenSession(ctx context.Context, ttl time.Duration) (store.Session, error) {
	if ttl <= 0 {
		return nil, fmt.Errorf("%w: a session with a TTL of %v; want a positive one", store.ErrRefused, ttl)
	}
	asked := time.Now()
	renewals, stop := context.WithCancel(context.Background())
	s, err := send(ctx, c, Call{Op: Open}, func() (*Session, error) {
		s := &Session{client: c, ttl: max(ttl, minTTL), stop: stop, done: make(chan struct{})}
		s.alive, s.renewed = true, time.Now()
		s.expiry = time.AfterFunc(s.ttl, func() { c.svc.expired(s) })
		s.asked = asked
		s.doubt = time.AfterFunc(time.Until(asked.Add(s.ttl)), s.lapsed)
		return s, nil
	})
	if err != nil {
		stop()
		return nil, err // a session that began after all expires
	}
	c.svc.mu.Lock()
	defer c.svc.mu.Unlock()
	if c.closed {
		stop()
		return nil, errClosed
	}
	c.sessions[s] = true
	c.wg.Go(func() { s.renewUntil(renewals) })
	return s, nil
}

// Done tells that the session has ended, see store.Session.
func (s *Session) Done() <-chan struct{} { return s.done }

// TTL is how long the session lives without renewal.
func (s *Session) TTL() time.Duration { return s.ttl }

// Close ends the session, see store.Session.
func (s *Session) Close(ctx context.Context) error {
	c := s.client
	c.svc.mu.Lock()
	s.doneLocked()
	closed := c.closed
	c.svc.mu.Unlock()
	if closed {
		return nil // Client.Close has ended it
	}
	_, err := send(ctx, c, Call{Op: End}, func() (struct{}, error) {
		c.svc.endLocked(s)
		return struct{}{}, nil
	})
	return err
}

// renewUntil sends a renewal at every tick, without waiting for the one before.
func (s *Session) renewUntil(ctx context.Context) {
	tick := time.NewTicker(max(1, s.ttl/renewalsPerTTL))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.client.wg.Go(func() { s.renew(ctx) })
		case <-s.done:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (s *Session) renew(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, renewalDeadline)
	defer cancel()
	asked := time.Now()
	alive, err := send(ctx, s.client, Call{Op: Renew}, func() (bool, error) {
		if s.alive {
			s.renewed = time.Now()
			s.expiry.Reset(s.ttl)
		}
		return s.alive, nil
	})
	if err != nil || !alive {
		return // the client learns as news that a session has ended
	}
	s.client.svc.mu.Lock()
	defer s.client.svc.mu.Unlock()
	if !s.isDone && asked.After(s.asked) {
		s.asked = asked
		s.doubt.Reset(time.Until(asked.Add(s.ttl)))
	}
}

// lapsed closes Done when no renewal has succeeded for a whole TTL.
func (s *Session) lapsed() {
	s.client.svc.mu.Lock()
	defer s.client.svc.mu.Unlock()
	if time.Since(s.asked) >= s.ttl {
		s.doneLocked()
	}
}

func (s *Session) doneLocked() {
	if s.isDone {
		return
	}
	s.isDone = true
	s.doubt.Stop()
	s.stop()
	delete(s.client.sessions, s)
	close(s.done)
}
