package pgstore

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

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

// Literals of SQL.
func bytesOf[T string | []byte](b T) string {
	return `'\x` + hex.EncodeToString([]byte(b)) + `'::bytea`
}
func number[T ~int64](n T) string         { return strconv.FormatInt(int64(n), 10) + "::bigint" }
func milliseconds(d time.Duration) string { return number(d.Milliseconds()) }
func list[T any](of func(T) string, items ...T) string {
	all := make([]string, len(items))
	for i, item := range items {
		all[i] = of(item)
	}
	return strings.Join(all, ", ")
}

// exchange makes a message when it has the connection, and handles the answer. It goes on when ctx ends: an answer that
// comes later is of use to the connection. sent tells whether the message may have reached the server.
func exchange[T any](ctx context.Context, s *Store, message func() []statement,
	handle func([]rows) (T, error),
) (answer T, sent bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.CallDeadline)
	defer cancel()
	conn, err := s.acquire(ctx)
	if err != nil {
		return answer, false, err
	}
	type result struct {
		answer T
		err    error
	}
	results := make(chan result, 1)
	go func() {
		ctx, cancel := context.WithTimeout(s.life, s.CallDeadline)
		defer cancel()
		var r result
		all, err := exec(ctx, conn, message()...)
		if r.err = err; err == nil {
			r.answer, r.err = handle(all)
		}
		if failed := rolledBack(r.err); errors.Is(r.err, errLost) || failed != nil && failed.Code == undefinedTable {
			closeNow(conn) // the next one finds out
		}
		s.release(conn)
		results <- r
	}()
	select {
	case r := <-results:
		return r.answer, true, r.err
	case <-ctx.Done():
		return answer, true, ctx.Err()
	}
}

// closeNow closes a connection without a word.
func closeNow(conn *pgconn.PgConn) {
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

// read reads at one moment. The first rows have the revision and the identity.
func (s *Store) read(ctx context.Context, call string, statements ...statement) ([]rows, error) {
	if s.isClosed() {
		return nil, errClosed
	}
	message := func() []statement {
		return append([]statement{
			do("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"),
			maybe("SELECT revision, identity FROM head, "+fromLatest+" WHERE "+intact, "pu"),
		}, statements...)
	}
	all, _, err := exchange(ctx, s, message, func(all []rows) ([]rows, error) {
		all = all[1:]
		if len(all[0]) != 1 {
			return nil, errLost
		}
		return all, s.knowsStore(all[0].text(0, 1), all[0].int(0, 0))
	})
	if err != nil {
		return nil, callError(call, err)
	}
	return all, nil
}

// written is the answer to a transaction.
type written struct {
	revision   int64
	verdict    int64
	checkpoint appends.Seen // without an entry
	then       []rows       // of its own statements
}

// write is apply for a call of a client whose effect matters. Errors are those of package store; ErrAmbiguous only if
// the transaction was sent.
func (s *Store) write(ctx context.Context, call, verdict string, then ...statement) (written, error) {
	if s.isClosed() {
		return written{}, errClosed
	}
	w, sent, err := s.apply(ctx, verdict, then...)
	switch {
	case errors.Is(err, errLost), err != nil && !sent:
		return w, callError(call, err)
	case err != nil:
		return w, writeError(call, err)
	}
	return w, nil
}

// apply sends a transaction: it renews the sessions of this client and applies statements, which must do nothing unless
// the verdict in latest is zero. verdict is an SQL expression. sent tells whether the transaction may have reached the
// server.
func (s *Store) apply(ctx context.Context, verdict string, then ...statement) (w written, sent bool, err error) {
	var asked time.Time
	var renewed []*session
	message := func() []statement {
		s.mu.Lock()
		defer s.mu.Unlock()
		asked, s.warning = time.Now(), ""
		statements := []statement{
			do("SELECT FROM head FOR UPDATE"),
			do("SELECT WHERE false"),
			maybe(fmt.Sprintf(`UPDATE latest SET revision = revision + 1, verdict = CASE
					WHEN NOT EXISTS (SELECT FROM head WHERE identity = '%s')
						OR revision < %s OR NOT (%s) THEN %d ELSE %s END
				WHERE revision = (SELECT max(revision) FROM latest)
				RETURNING revision, (SELECT identity FROM head), verdict, (SELECT version FROM checkpoint),
					(SELECT position FROM checkpoint)`,
				s.known.identity, number(s.known.revision), intact, lost, verdict), "pUiII"),
		}
		for session := range s.sessions {
			if asked.Sub(session.asked) >= session.ttl/renewalsPerTTL {
				renewed = append(renewed, session)
			}
		}
		if len(renewed) > 0 {
			statements[1] = several("UPDATE sessions SET expires = clock_timestamp() + ttl * interval '1 ms' WHERE "+
				"id IN ("+
				list(func(s *session) string { return number(s.id) }, renewed...)+") RETURNING id", "i")
		}
		return append(statements, then...)
	}
	return exchange(ctx, s, message, func(all []rows) (w written, err error) {
		if len(all[2]) != 1 {
			return w, errLost
		}
		w.revision, w.verdict, w.then = all[2].int(0, 0), all[2].int(0, 2), all[3:]
		w.checkpoint = appends.Seen{
			Checkpoint: store.Version(all[2].int(0, 3)), Trimmed: store.Position(all[2].int(0, 4)),
			Now: store.Position(w.revision),
		}
		if w.verdict == lost {
			return w, errLost
		}
		s.wereRenewed(renewed, all[1], asked)
		if err := s.knowsStore(all[2].text(0, 1), w.revision); err != nil {
			return w, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.warning != "" { // such as that no standby has confirmed it
			return w, errors.New("the server warns: " + s.warning)
		}
		return w, nil
	})
}

// notify wakes all clients if the verdict is that the conditions hold.
var notify = do("SELECT pg_notify(current_schema(), '') FROM " + fromLatest + " WHERE verdict = 0")
