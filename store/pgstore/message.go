package pgstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/internal/appends"
)

// A transaction that writes always applies its beginning and counts its revision, and the rest if the verdict on its
// conditions is that they hold. So a conflict is an answer, not an error that the server logs.
const (
	holds    = iota
	conflict // a condition does not hold
	ended    // the session of an operation has ended
	lost     // the store is not the one that the client knows
	done     // nothing is left to do
	beyond   // the position is beyond all that the store has written
)

// binary is a parameter of the type bytea, which is never null.
func binary[T string | []byte](b T) []byte { return append([]byte{}, b...) }

// exchange makes a message when it has the connection, and handles the answer. It goes on when ctx ends: an answer that
// comes later is of use to the connection. sent tells whether the message may have reached the server.
func exchange(ctx context.Context, s *Store, fill func(*message), handle func() error) (sent bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.CallDeadline)
	defer cancel()
	conn, err := s.acquire(ctx)
	if err != nil {
		return false, err
	}
	results := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(s.life, s.CallDeadline)
		defer cancel()
		err := exec(ctx, conn, fill)
		if err == nil {
			err = handle()
		}
		if failed := rolledBack(err); errors.Is(err, errLost) || failed != nil && failed.Code == undefinedTable {
			closeNow(conn) // the next one finds out
		}
		s.release(conn)
		results <- err
	}()
	select {
	case err := <-results:
		return true, err
	case <-ctx.Done():
		return true, ctx.Err()
	}
}

// closeNow closes a connection without a word.
func closeNow(conn *pgx.Conn) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = conn.Close(ctx)
}

// knowsStore notes what the server says of the store.
func (s *Store) knowsStore(identity string, revision int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if identity != s.known.identity || revision < s.known.revision {
		return errLost
	}
	s.known.revision = revision
	return nil
}

// read reads at one moment, what fill asks for, and returns the revision of the store. When there is an error nobody
// may use what fill was to find: it may still come.
func (s *Store) read(ctx context.Context, call string, fill func(*message)) (revision int64, err error) {
	if s.isClosed() {
		return 0, errClosed
	}
	var now *struct {
		Revision int64
		Identity string
	}
	_, err = exchange(ctx, s, func(m *message) {
		m.do("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY", nil)
		maybe(m, &now, "SELECT revision, identity::text FROM head, "+fromLatest+" WHERE "+intact, nil)
		fill(m)
	}, func() error {
		if now == nil {
			return errLost
		}
		return s.knowsStore(now.Identity, now.Revision)
	})
	if err != nil {
		return 0, callError(call, err)
	}
	return now.Revision, nil
}

// written is the answer to a transaction.
type written struct {
	revision   int64
	verdict    int64
	checkpoint appends.Seen // without an entry
}

// A verdict is an SQL expression with its parameters.
type verdict struct {
	sql  string
	args args
}

// bind adds a parameter, and returns what stands for it in the expression.
func (v *verdict) bind(value any) string {
	name := fmt.Sprintf("p%d", len(v.args))
	v.args[name] = value
	return "@" + name
}

// always is for a transaction without conditions.
var always = verdict{sql: "0"}

// write is apply for a call of a client whose effect matters. Errors are those of package store; ErrAmbiguous only if
// the transaction was sent.
func (s *Store) write(ctx context.Context, call string, verdict verdict, then func(*message)) (written, error) {
	if s.isClosed() {
		return written{}, errClosed
	}
	w, sent, err := s.apply(ctx, verdict, then)
	switch {
	case errors.Is(err, errLost), err != nil && !sent:
		return w, callError(call, err)
	case err != nil:
		return w, writeError(call, err)
	}
	return w, nil
}

// apply sends a transaction: it renews the sessions of this client and applies the statements of then, which must do
// nothing unless the verdict in latest is zero. sent tells whether the transaction may have reached the server.
func (s *Store) apply(ctx context.Context, verdict verdict, then func(*message)) (w written, sent bool, err error) {
	var asked time.Time
	var renewed []*session
	var there []sessionRow
	var found *struct {
		Revision            int64
		Identity            *string
		Verdict             int64
		Checkpoint, Trimmed *int64
	}
	sent, err = exchange(ctx, s, func(m *message) {
		s.mu.Lock()
		defer s.mu.Unlock()
		asked, s.warning = time.Now(), ""
		for session := range s.sessions {
			if asked.Sub(session.asked) >= session.ttl/renewalsPerTTL {
				renewed = append(renewed, session)
			}
		}
		m.do("SELECT FROM head FOR UPDATE", nil)
		if len(renewed) > 0 {
			several(m, &there,
				"UPDATE sessions SET expires = clock_timestamp() + ttl * interval '1 ms' WHERE id = ANY(@ids) "+
					"RETURNING id", args{"ids": idsOf(renewed)})
		}
		a := args{"identity": s.known.identity, "revision": s.known.revision}
		maps.Copy(a, verdict.args)
		maybe(m, &found, fmt.Sprintf(`UPDATE latest SET revision = revision + 1, verdict = CASE
				WHEN NOT EXISTS (SELECT FROM head WHERE identity::text = @identity)
					OR revision < @revision OR NOT (%s) THEN %d ELSE %s END
			WHERE revision = (SELECT max(revision) FROM latest)
			RETURNING revision, (SELECT identity::text FROM head), verdict,
				(SELECT version FROM checkpoint) AS checkpoint,
				(SELECT position FROM checkpoint) AS trimmed`, intact, lost, verdict.sql), a)
		then(m)
	}, func() error {
		if found == nil || found.Verdict == lost {
			return errLost
		}
		s.wereRenewed(renewed, there, asked)
		if found.Identity == nil || found.Checkpoint == nil || found.Trimmed == nil {
			return errLost
		}
		if err := s.knowsStore(*found.Identity, found.Revision); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.warning != "" { // such as that no standby has confirmed it
			return errors.New("the server warns: " + s.warning)
		}
		return nil
	})
	if err != nil {
		return written{}, sent, err
	}
	return written{found.Revision, found.Verdict, appends.Seen{
		Checkpoint: store.Version(*found.Checkpoint), Trimmed: store.Position(*found.Trimmed),
		Now: store.Position(found.Revision),
	}}, true, nil
}

// notify wakes all clients if the verdict is that the conditions hold.
func (m *message) notify() {
	m.do("SELECT pg_notify(current_schema(), '') FROM "+fromLatest+" WHERE verdict = 0", nil)
}

// nothing is no statement.
func nothing(*message) {}
