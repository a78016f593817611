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

// lease is a session as the service knows it. Its fields are guarded by the service's mu.
type lease struct {
	ttl     time.Duration
	alive   bool
	renewed time.Time   // when the last renewal arrived
	expiry  *time.Timer // ends the session a TTL after that
	held    []*Session  // by clients: one, and those whom Copy has made
}

// Session is a session as a client knows it. It implements store.Session.
type Session struct {
	*lease
	client *Client
	stop   context.CancelFunc // ends the renewals
	done   chan struct{}

	// The rest is guarded by client.svc.mu.
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
	s, err := send(ctx, c, Call{Op: Open}, func() (*Session, error) {
		l := &lease{ttl: max(ttl, minTTL), alive: true, renewed: time.Now()}
		l.expiry = time.AfterFunc(l.ttl, func() { c.svc.expired(l) })
		return c.holdLocked(l, asked), nil
	})
	if err != nil {
		return nil, err // a session that began after all expires
	}
	c.svc.mu.Lock()
	defer c.svc.mu.Unlock()
	if c.closed {
		s.doneLocked()
		return nil, errClosed
	}
	s.keepLocked()
	return s, nil
}

// holdLocked returns a session as this client knows it, which was renewed last by what was sent at a time.
func (c *Client) holdLocked(l *lease, asked time.Time) *Session {
	s := &Session{lease: l, client: c, stop: func() {}, done: make(chan struct{}), asked: asked}
	s.doubt = time.AfterFunc(time.Until(asked.Add(l.ttl)), s.lapsed)
	l.held = append(l.held, s)
	return s
}

// keepLocked has the client renew the session.
func (s *Session) keepLocked() {
	var renewals context.Context
	renewals, s.stop = context.WithCancel(context.Background())
	s.client.sessions[s] = true
	s.client.wg.Go(func() { s.renewUntil(renewals) })
}

// Copy returns what a copy of the client's process has of its session, while this client is the copy: to the service it
// is the same session, which lives while one of the two renews it.
func (c *Client) Copy(session store.Session) *Session {
	c.svc.mu.Lock()
	defer c.svc.mu.Unlock()
	of := session.(*Session)
	s := c.holdLocked(of.lease, of.asked)
	s.keepLocked()
	return s
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
		c.svc.endLocked(s.lease)
		return struct{}{}, nil
	})
	return err
}

// Abandon stops the renewals, see store.Session.
func (s *Session) Abandon() {
	s.client.svc.mu.Lock()
	defer s.client.svc.mu.Unlock()
	s.doneLocked()
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
