package zkstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/zkstore/internal/wire"
)

// closeWithin is how long Close waits for the servers to confirm the end of the sessions.
const closeWithin = 3 * time.Second

// session is a session of ZooKeeper's with a connection of its own, which its goroutine makes again where it breaks.
// The connection's pings renew it.
type session struct {
	store *Store
	id    int64
	known wire.Session
	ttl   time.Duration

	done chan struct{}
	stop func() // closes done; safe to call more than once

	mu      sync.Mutex // guards what follows
	conn    *wire.Conn // nil: none at present
	changed chan struct{}
	heard   time.Time // when the latest request was sent that was answered, over earlier connections
}

var _ store.Session = (*session)(nil)

// OpenSession begins a session, see store.Store. Servers grant TTLs of two to 20 of their ticks unless they were told
// otherwise, 4 to 40 s: a shorter one is raised, and a longer one refused.
func (s *Store) OpenSession(ctx context.Context, ttl time.Duration) (store.Session, error) {
	const call = "open session"
	if ttl <= 0 {
		return nil, fmt.Errorf("%s: %w: the TTL is %v; want a positive one", call, store.ErrRefused, ttl)
	}
	ctx, cancel := context.WithTimeout(ctx, s.deadline)
	defer cancel()
	if _, err := s.link(ctx); err != nil { // it finds out whether the service has lost data
		return nil, callError(call, err)
	}
	conn, err := s.dialSession(ctx, wire.Session{}, ttl, s.patience(s.deadline))
	if err != nil {
		return nil, callError(call, err)
	}
	if granted := conn.Granted(); granted < ttl-time.Second {
		_ = conn.Close(ctx)
		return nil, fmt.Errorf("%s: %w: the servers grant a session %v; want %v: raise maxSessionTimeout", call,
			store.ErrRefused, granted, ttl)
	}
	done := make(chan struct{})
	session := &session{
		store: s, id: conn.Session().ID, known: conn.Session(), ttl: conn.Granted(),
		done: done, stop: sync.OnceFunc(func() { close(done) }),
		conn: conn, changed: make(chan struct{}), heard: conn.Heard(),
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		conn.Abandon() // it expires
		return nil, errClosed
	}
	s.sessions[session] = true
	s.running.Go(session.keep)
	s.mu.Unlock()
	return session, nil
}

// dialSession begins or continues a session at one of the servers, the one for calls first: each is waited for so long.
func (s *Store) dialSession(ctx context.Context, known wire.Session, ttl, each time.Duration) (*wire.Conn, error) {
	s.mu.Lock()
	first := s.next + len(s.servers) - 1
	s.mu.Unlock()
	var last error
	for tries := 0; ; tries++ {
		server := s.servers[(first+tries)%len(s.servers)]
		attempt, cancel := context.WithTimeout(ctx, each)
		conn, err := s.reach(attempt, server, known, ttl, max(ttl/3, time.Millisecond), nil)
		cancel()
		switch {
		case err == nil:
			return conn, nil
		case errors.Is(err, wire.ErrExpired), isLasting(err):
			return nil, err
		case ctx.Err() == nil:
			last = err
		case last == nil:
			return nil, fmt.Errorf("%w: %w", err, ctx.Err())
		}
		wait := time.Duration(0)
		if tries >= len(s.servers)-1 {
			wait = pause.After(tries - len(s.servers) + 1)
		}
		if err := retry.Sleep(ctx, wait); err != nil {
			return nil, fmt.Errorf("%w: %w", last, err)
		}
	}
}

// Done tells that the session has ended, see store.Session.
func (s *session) Done() <-chan struct{} { return s.done }

// TTL is how long the session lives without renewal, as granted.
func (s *session) TTL() time.Duration { return s.ttl }

// Close ends the session, see store.Session.
func (s *session) Close(ctx context.Context) error {
	if s.store.isClosed() {
		s.stop()
		return nil // Store.Close has ended it, or said that it could not
	}
	return s.finish(ctx)
}

// finish ends the session at the servers, over a connection of its own if need be. If they do not confirm that, it has
// no connection any more, which would renew it.
func (s *session) finish(ctx context.Context) (err error) {
	const call = "close session"
	s.stop()
	s.mu.Lock()
	conn := s.conn
	s.mu.Unlock()
	defer func() {
		if err != nil && conn != nil {
			conn.Abandon()
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, s.store.deadline)
	defer cancel()
	if err := ctx.Err(); err != nil {
		return wrap(call, store.ErrUnavailable, err)
	}
	for {
		if conn == nil || conn.Err() != nil {
			conn, err = s.store.dialSession(ctx, s.known, s.ttl, s.store.patience(s.store.deadline))
			if errors.Is(err, wire.ErrExpired) {
				break
			}
			if err != nil {
				return wrap(call, store.ErrUnavailable, err)
			}
		}
		err := conn.Close(ctx)
		if err == nil || errors.Is(err, wire.ErrSessionExpired) {
			break
		}
		if ctx.Err() != nil {
			return wrap(call, store.ErrUnavailable, err)
		}
	}
	s.forget()
	return nil
}

// forget takes the session off the list of those that Store.Close ends.
func (s *session) forget() {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	delete(s.store.sessions, s)
}

// lost ends a session that its owner did not close.
func (s *session) lost(why string) {
	select {
	case <-s.done:
		return
	default:
	}
	s.store.log.Warn("session lost: "+why, "ttl", s.ttl, "session", fmt.Sprintf("%#x", s.id))
	s.Abandon()
}

// Abandon stops the renewals, see store.Session.
func (s *session) Abandon() {
	s.stop()
	s.forget()
	s.mu.Lock()
	conn := s.conn
	s.mu.Unlock()
	if conn != nil {
		conn.Abandon() // the session expires, if it has not
	}
}

// left is how long the session certainly lives if the servers' clocks run like ours: it counts from before the
// request was sent that was answered last.
func (s *session) left() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		if heard := s.conn.Heard(); heard.After(s.heard) {
			s.heard = heard
		}
	}
	return time.Until(s.heard.Add(s.ttl))
}

// use replaces the connection; nil: there is none at present. It returns false, and does nothing, once Done is closed:
// whoever closed it knows of the connection before only.
func (s *session) use(conn *wire.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.done:
		return false
	default:
	}
	s.conn = conn
	close(s.changed)
	s.changed = make(chan struct{})
	return true
}

// dialedSession is what became of an attempt to continue a session.
type dialedSession struct {
	conn *wire.Conn
	err  error
}

// keep keeps the session alive until it is closed, has ended or is in doubt.
func (s *session) keep() {
	ctx, cancel := context.WithCancel(s.store.life)
	defer cancel()
	go func() {
		select {
		case <-s.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	defer s.stop()
	dialed := make(chan dialedSession, 1)
	var dialing sync.WaitGroup
	defer func() {
		cancel()
		dialing.Wait()
		select {
		case d := <-dialed:
			if d.err == nil {
				d.conn.Abandon()
			}
		default:
		}
	}()
	doubt := time.NewTimer(s.left())
	defer doubt.Stop()
	s.mu.Lock()
	conn := s.conn
	s.mu.Unlock()
	broken := conn.Done()
	for {
		select {
		case <-broken:
			s.left() // notes what was heard
			conn.Abandon()
			s.use(nil)
			broken = nil
			dialing.Go(func() {
				conn, err := s.store.dialSession(ctx, s.known, s.ttl, s.store.patience(s.ttl))
				dialed <- dialedSession{conn, err}
			})
		case d := <-dialed:
			if errors.Is(d.err, wire.ErrExpired) {
				s.lost("the service has ended it")
				return
			}
			if d.err != nil {
				s.lost(d.err.Error())
				return
			}
			if conn = d.conn; !s.use(conn) {
				conn.Abandon()
				return
			}
			broken = conn.Done()
		case <-doubt.C:
			left := s.left()
			if left <= 0 {
				s.lost("it could not be renewed for a whole TTL")
				return
			}
			doubt.Reset(left)
		case <-ctx.Done():
			return
		}
	}
}

// link returns a connection of the session over which a server has just answered: what is sent next is hardly ever
// lost because the session has ended. It returns ErrSessionEnded then.
func (s *session) link(ctx context.Context) (*wire.Conn, error) {
	for {
		s.mu.Lock()
		conn, changed := s.conn, s.changed
		s.mu.Unlock()
		select {
		case <-s.done:
			return nil, store.ErrSessionEnded
		default:
		}
		if conn != nil {
			replies, err := conn.Do(ctx, wire.Exists(s.store.root, false))
			switch {
			case err == nil && replies[0].Err == wire.ErrSessionExpired:
				s.lost("the service has ended it")
				continue
			case err == nil:
				return conn, nil
			case ctx.Err() != nil:
				return nil, err
			}
		}
		select {
		case <-changed:
		case <-s.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
