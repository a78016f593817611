package pgstore

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/firn-id/firn/store"
)

// A transaction renews a session that was not renewed for this part of its TTL. Without a transaction, the keeper
// renews it when it has lived for dueAfter of its TTL: with the defaults of members that is later than the next
// transaction of a member that has nothing else to do.
const (
	renewalsPerTTL = 6
	dueAfter       = 7. / 10
)

// tooLate is an SQL expression for a session that ends later than it can after a renewal now: the server's clock was
// set back. Without its owner it would live for as long as that.
const tooLate = "expires > clock_timestamp() + (ttl + 1000) * interval '1 ms'"

// sweep ends the sessions that have expired, and mends those that end too late.
func sweep(m *message) {
	m.do("WITH swept AS (DELETE FROM sessions USING "+fromLatest+
		" WHERE verdict = 0 AND expires <= clock_timestamp() RETURNING id) "+
		"SELECT pg_notify(current_schema(), '') FROM swept LIMIT 1", nil)
	m.do("UPDATE sessions SET expires = clock_timestamp() + ttl * interval '1 ms' FROM "+fromLatest+
		" WHERE verdict = 0 AND "+tooLate, nil)
}

// overdue is where a client has looked for sessions that have expired: up to then there are none. It looks again only
// from a little before that on, since a long transaction of others keeps every former version of a session, and one
// lies at each instant at which it would have expired. The zero value looks everywhere.
type overdue struct {
	upTo  int64 // in milliseconds of the server's time
	looks int   // since it looked everywhere
}

// lookEverywhere is after how many looks one that looks everywhere comes, in case the clock was set to and fro between
// two.
const lookEverywhere = 1000

// A sweepRow is what a client finds where it looks for sessions to sweep.
type sweepRow struct {
	Now   int64 // in milliseconds of the server's time
	Wrong bool  // there is something to sweep
}

// look asks whether there is something to sweep. Of sessions that end too late it looks at the last, so that the others
// live for as long as that at most.
func (o overdue) look(m *message, found *sweepRow) {
	since := "'-infinity'"
	if o.upTo != 0 && o.looks < lookEverywhere { // else the server's clock was set back
		since = "(SELECT CASE WHEN now() >= at THEN at - interval '1 min' ELSE '-infinity' END FROM " +
			"to_timestamp(@upTo / 1000.) AS at)"
	}
	one(m, found,
		"SELECT (extract(epoch FROM now()) * 1000)::bigint AS now, EXISTS (SELECT FROM sessions WHERE expires <= "+
			"now() AND expires >= "+since+") OR "+
			"coalesce((SELECT "+tooLate+" FROM sessions ORDER BY expires DESC LIMIT 1), false) AS wrong",
		args{"upTo": o.upTo})
}

// looked notes that everything was swept that look had found, when the server's time was now.
func (o *overdue) looked(now int64) { *o = overdue{upTo: now, looks: o.looks%lookEverywhere + 1} }

// session is a row of the table of sessions. Its goroutine-free clock is doubt.
type session struct {
	store *Store
	id    int64
	ttl   time.Duration

	done chan struct{}
	stop func() // closes done; safe to call more than once

	// The rest is guarded by store.mu.
	asked time.Time   // when the last successful renewal was sent
	doubt *time.Timer // looks whether a whole TTL has passed since
}

var _ store.Session = (*session)(nil)

// OpenSession begins a session, see store.Store. It has the TTL that is asked for, in whole milliseconds.
func (s *Store) OpenSession(ctx context.Context, ttl time.Duration) (store.Session, error) {
	const call = "open session"
	if ttl < time.Millisecond {
		return nil, fmt.Errorf("%s: %w: the TTL is %v; want at least 1ms", call, store.ErrRefused, ttl)
	}
	if s.isClosed() {
		return nil, errClosed
	}
	asked := time.Now()
	w, _, err := s.apply(ctx, always, func(m *message) {
		m.do(`INSERT INTO sessions (id, ttl, expires) SELECT revision, @ttl::bigint,
			clock_timestamp() + @ttl::bigint * interval '1 ms'
			FROM `+fromLatest+` WHERE verdict = 0`, args{"ttl": ttl.Milliseconds()})
	})
	if err != nil {
		return nil, callError(call, err) // a session that was begun after all expires
	}
	done := make(chan struct{})
	opened := &session{
		store: s, id: w.revision, ttl: ttl.Truncate(time.Millisecond),
		done: done, stop: sync.OnceFunc(func() { close(done) }), asked: asked,
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	s.sessions[opened] = true
	opened.doubt = time.AfterFunc(time.Until(asked.Add(opened.ttl)), opened.look)
	return opened, nil
}

// Done tells that the session has ended, see store.Session.
func (s *session) Done() <-chan struct{} { return s.done }

// TTL is how long the session lives without renewal.
func (s *session) TTL() time.Duration { return s.ttl }

// Close ends the session, see store.Session.
func (s *session) Close(ctx context.Context) error {
	s.stop()
	if s.store.isClosed() {
		return nil // Store.Close has ended it, or said that it could not
	}
	return s.store.endSessions(ctx, s)
}

// Abandon stops the renewals, see store.Session.
func (s *session) Abandon() {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	s.store.forgetLocked(s)
}

// endSessions ends sessions of this client. Whether or not the server confirms that, nobody renews them any more.
func (s *Store) endSessions(ctx context.Context, ending ...*session) error {
	s.mu.Lock()
	for _, session := range ending {
		s.forgetLocked(session)
	}
	s.mu.Unlock()
	_, _, err := s.apply(ctx, always, func(m *message) {
		m.do("DELETE FROM sessions USING "+fromLatest+" WHERE verdict = 0 AND id = ANY(@ids)",
			args{"ids": idsOf(ending)})
		m.notify()
	})
	if err != nil {
		return callError("close session", err)
	}
	return nil
}

// forgetLocked ends a session for this client.
func (s *Store) forgetLocked(session *session) {
	session.stop()
	session.doubt.Stop()
	delete(s.sessions, session)
}

// loseLocked ends a session that its owner did not close.
func (s *Store) loseLocked(session *session, why string) {
	select {
	case <-session.done:
	default:
		s.Logger.Warn("session lost: "+why, "ttl", session.ttl, "id", session.id)
	}
	s.forgetLocked(session)
}

// look ends the session if it was not renewed for a whole TTL, and else looks again later.
func (s *session) look() {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	if left := time.Until(s.asked.Add(s.ttl)); left > 0 {
		s.doubt.Reset(left)
		return
	}
	s.store.loseLocked(s, "it could not be renewed for a whole TTL")
}

// wereRenewed notes which of the sessions the server has renewed, when that was asked.
func (s *Store) wereRenewed(renewed []*session, found []sessionRow, asked time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	there := alive(found)
	for _, session := range renewed {
		switch {
		case !s.sessions[session]:
		case !there[session.id]:
			s.loseLocked(session, "the store has ended it")
		default:
			session.asked = asked
		}
	}
}

type sessionRow struct{ ID int64 }

// alive is the IDs of the sessions that were found.
func alive(found []sessionRow) map[int64]bool {
	ids := make(map[int64]bool, len(found))
	for _, row := range found {
		ids[row.ID] = true
	}
	return ids
}

func idsOf(sessions []*session) []int64 {
	ids := make([]int64, len(sessions))
	for i, session := range sessions {
		ids[i] = session.id
	}
	return ids
}
