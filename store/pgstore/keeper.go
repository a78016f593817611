package pgstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/store"
)

// backoff is how long to wait before another try to connect, or to poll.
var backoff = retry.Backoff{First: 50 * time.Millisecond, Max: time.Second}

// A poll for a notification waits after the poll before for ten times as long as that took, within these bounds: the
// notifications that come meanwhile need one poll, and many clients leave the server time for writes.
const (
	soonest = 5 * time.Millisecond
	latest  = 250 * time.Millisecond
)

// keep keeps a connection, and looks for news over it, until the store is closed.
func (s *Store) keep() {
	for tries := 0; s.life.Err() == nil; tries++ {
		conn, err := s.connect()
		if err != nil {
			s.failed(connectError(err))
			_ = retry.Sleep(s.life, backoff.After(tries))
			continue
		}
		tries = 0
		alive, lose := context.WithCancel(s.life)
		s.mu.Lock()
		s.lose = lose
		s.mu.Unlock()
		s.free <- conn
		s.failed(nil)
		s.attend(alive)
		lose()
	}
	select {
	case conn := <-s.free:
		ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
		defer cancel()
		_ = conn.Close(ctx)
	default:
	}
}

// connect makes a connection to a server that can be trusted.
func (s *Store) connect() (*pgx.Conn, error) {
	config, err := s.connection()
	if err != nil {
		return nil, err
	}
	config.OnNotification = func(*pgconn.PgConn, *pgconn.Notification) { signal(s.hints) }
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if n.SeverityUnlocalized == "WARNING" {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.warning = n.Message
		}
	}
	conn, err := connect(s.life, s.life, config) // each server has its ConnectTimeout
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(s.life, connectWithin)
	defer cancel()
	if err := s.trust(ctx, conn); err != nil {
		closeNow(conn)
		return nil, err
	}
	return conn, nil
}

// connectError is what callers are told while there is no connection.
func connectError(err error) error {
	err = oneLineError{err}
	if failed, ok := errors.AsType[*pgconn.PgError](err); ok && lastingCode(failed.Code) {
		return fmt.Errorf("%w: %w", store.ErrRefused, err)
	}
	if errors.Is(err, store.ErrRefused) {
		return err
	}
	return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
}

// attend looks for news until the connection is lost: at every notification, and every pollEvery without one.
func (s *Store) attend(alive context.Context) {
	next, hinted := time.Now(), time.Now() // when to poll without and with a notification
	failures := 0
	s.over = overdue{} // it may be another server
	for alive.Err() == nil {
		select {
		case <-s.hints:
			next = hinted
		default:
		}
		due := s.renewalDue(next)
		if time.Until(due) > 0 {
			s.listen(alive, due)
			continue
		}
		began := time.Now()
		if s.poll(alive) == nil {
			failures = 0
		} else {
			_ = retry.Sleep(alive, backoff.After(failures))
			failures++
		}
		now := time.Now()
		next = now.Add(pollEvery + rand.N(pollEvery/4))
		hinted = now.Add(min(max(10*now.Sub(began), soonest), latest))
	}
}

// renewalDue returns the earlier of a time and the time to renew a session.
func (s *Store) renewalDue(due time.Time) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	for session := range s.sessions {
		if at := session.asked.Add(time.Duration(float64(session.ttl) * dueAfter)); at.Before(due) {
			due = at
		}
	}
	return due
}

// listen waits for a notification until a time. Calls that want the connection end it.
func (s *Store) listen(alive context.Context, until time.Time) {
	ctx, cancel := context.WithDeadline(alive, until)
	defer cancel()
	s.mu.Lock()
	busy := s.wanted > 0
	s.interrupt = cancel
	s.mu.Unlock()
	if busy {
		select {
		case <-s.quiet:
		case <-s.hints:
			signal(s.hints)
		case <-ctx.Done():
		}
		return
	}
	select {
	case conn := <-s.free:
		allow(conn, greeting)
		_ = conn.PgConn().WaitForNotification(ctx)
		s.release(conn)
	case <-ctx.Done():
	}
}

// poll reads what is new, and writes if a session is to be renewed or to be ended.
func (s *Store) poll(ctx context.Context) error {
	s.mu.Lock()
	watches, sessions := make([]*watch, 0, len(s.watches)), make([]*session, 0, len(s.sessions))
	for w := range s.watches {
		watches = append(watches, w)
	}
	for session := range s.sessions {
		sessions = append(sessions, session)
	}
	s.mu.Unlock()
	keys := make([][]byte, len(watches))
	for i, w := range watches {
		keys[i] = binary(w.key)
	}
	var log struct {
		Entry, Checkpoint *int64 // positions
		Breaks            string
	}
	var overdue sweepRow
	var watched []watchRow
	var there []sessionRow
	var age *ageRow
	_, err := s.read(ctx, "poll", func(m *message) {
		one(m, &log,
			"SELECT (SELECT max(position) FROM log WHERE position > (SELECT position FROM checkpoint)) AS entry, "+
				"(SELECT position FROM checkpoint) AS checkpoint, "+breaks+" AS breaks", nil)
		s.over.look(m, &overdue)
		if len(watches) > 0 {
			several(m, &watched, "SELECT key, created FROM keys WHERE key = ANY(@keys)", args{"keys": keys})
		}
		if len(sessions) > 0 {
			several(m, &there, "SELECT id FROM sessions WHERE id = ANY(@ids)", args{"ids": idsOf(sessions)})
		}
		s.askAge(m, &age)
	})
	if err != nil {
		return err
	}
	if log.Breaks != "" {
		s.drop() // the next connection says why
		return nil
	}
	for _, position := range []*int64{log.Entry, log.Checkpoint} {
		if position != nil {
			s.reaches(store.Position(*position))
		}
	}
	s.lookAtWatches(watches, watched)
	s.lookAtSessions(sessions, there)
	s.learnAge(age)
	if overdue.Wrong {
		_, _, err = s.apply(ctx, always, sweep)
	} else if !time.Now().Before(s.renewalDue(time.Now().Add(time.Hour))) {
		_, _, err = s.apply(ctx, always, nothing)
	}
	if err == nil {
		s.over.looked(overdue.Now)
	}
	return err
}

// lookAtSessions ends those that the server has ended.
func (s *Store) lookAtSessions(sessions []*session, found []sessionRow) {
	there := alive(found)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, session := range sessions {
		if s.sessions[session] && !there[session.id] {
			s.loseLocked(session, "the store has ended it")
		}
	}
}

// drop ends the connection as soon as nobody uses it.
func (s *Store) drop() {
	conn, err := s.acquire(s.life)
	if err != nil {
		return
	}
	closeNow(conn)
	s.release(conn)
}
