package pgstore

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/internal/base/floor"
	"github.com/firn-id/firn/internal/base/fresh"
	"github.com/firn-id/firn/store"
)

// firstVersion is the first that works: the first with gen_random_uuid.
const firstVersion = 130000

// breaks is an SQL expression that says what the server does that a store must not; empty: nothing.
const breaks = `concat_ws(', ',
	CASE WHEN pg_is_in_recovery() THEN 'it is a standby' END,
	CASE current_setting('fsync') WHEN 'off' THEN 'fsync is off' END,
	CASE current_setting('full_page_writes') WHEN 'off' THEN 'full_page_writes is off' END)`

// prepare sets what a connection needs, whatever the database or the role has as its own: each transaction is on disk
// when it is confirmed, as far as the server is asked to. The server looks whether the client's machine is there, so
// that one that is gone does not take up a connection for hours.
const prepare = `SET search_path = "%[1]s"; SET bytea_output = hex;
SET client_min_messages = warning;
SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3;
SET tcp_user_timeout = 25000;
SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit')
	WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false);
SET default_transaction_isolation = 'read committed'; SET default_transaction_deferrable = off;
SET statement_timeout = %[2]d; SET lock_timeout = 0; SET idle_in_transaction_session_timeout = %[2]d`

// trust prepares a new connection, and returns an error when the server or the store there can't be used. It makes the
// tables if there are none, and gives the store a new identity if it is not where it was, or behind what was read from
// it.
func (s *Store) trust(ctx context.Context, conn *pgx.Conn) error {
	var server struct {
		Number, PID int64
		Standby     bool
		Breaks      string
		Missing     *string // tables
		Head        bool    // there is that table
	}
	err := exec(ctx, conn, func(m *message) {
		for sql := range strings.SplitSeq(fmt.Sprintf(prepare, s.Schema, s.CallDeadline.Milliseconds()), ";") {
			m.do(sql, nil)
		}
		one(m, &server, `SELECT current_setting('server_version_num')::bigint AS number,
			pg_is_in_recovery() AS standby, pg_backend_pid()::bigint AS pid, `+breaks+` AS breaks,
			(SELECT string_agg(name, ', ') FROM unnest(ARRAY[`+names+`]) AS name
				WHERE to_regclass(quote_ident(@schema) || '.' || name) IS NULL) AS missing,
			to_regclass(quote_ident(@schema) || '.head') IS NOT NULL AS head`, args{"schema": s.Schema})
	})
	if err != nil {
		return err
	}
	switch {
	case server.Number < firstVersion:
		return fmt.Errorf("%w: the server is PostgreSQL %s; want 13 or later", store.ErrRefused,
			conn.PgConn().ParameterStatus("server_version"))
	case server.PID != int64(conn.PgConn().PID()):
		return fmt.Errorf("%w: there is a pooler, such as pgbouncer, before the server: want the address of the "+
			"server itself", store.ErrRefused)
	case server.Standby: // it may become the primary
		return fmt.Errorf("%w: the server %s is a standby; want the primary", store.ErrUnavailable,
			conn.PgConn().Conn().RemoteAddr())
	case server.Breaks != "":
		return fmt.Errorf("%w: the server may lose what it has committed: %s", store.ErrRefused, server.Breaks)
	}
	if err := run(ctx, conn, "SELECT "+place); rolledBack(err) != nil {
		return fmt.Errorf("%w: the server does not say which one it is, so that the loss of commits could not be "+
			"noticed; want PostgreSQL itself: %w", store.ErrRefused, err)
	} else if err != nil {
		return err
	}
	missing := ""
	if server.Missing != nil {
		missing = *server.Missing
	}
	if err := s.complete(ctx, conn, missing, server.Head); err != nil {
		return err
	}
	for {
		settled, err := s.identify(ctx, conn)
		if err != nil {
			return err
		}
		if settled {
			break
		}
	}
	return run(ctx, conn, `LISTEN "`+s.Schema+`"`)
}

// complete makes the tables that are missing: all of them, or those that somebody has dropped. What was in these is
// lost, as identify will find. There is a head unless it is missing, too.
func (s *Store) complete(ctx context.Context, conn *pgx.Conn, missing string, head bool) error {
	if head {
		var found *struct{ Format int64 }
		if err := exec(ctx, conn, func(m *message) { maybe(m, &found, "SELECT format FROM head", nil) }); err != nil {
			return err
		}
		if found != nil && found.Format != format {
			return fmt.Errorf("%w: the tables in schema %q have the format %d; this version of firn has %d",
				store.ErrRefused, s.Schema, found.Format, format)
		}
	}
	if missing == "" {
		return nil
	}
	if err := run(ctx, conn, SQL(s.Schema)); err != nil {
		return fmt.Errorf("the schema %q lacks the tables %s, and this role can't create them; an owner of the "+
			"database can, with what `firn gen sql --store` prints: %w",
			s.Schema, missing, err)
	}
	return nil
}

// state is what the tables say of themselves, and where they are.
type state struct {
	Revision         int64  // zero: the row is gone
	Identity, Origin string // empty: the row is gone
	Actual           string
	Floor            []byte // the value of its key
	Emptied          string // the tables whose rows are gone
}

func (s *Store) look(ctx context.Context, conn *pgx.Conn) (now state, err error) {
	err = exec(ctx, conn, func(m *message) {
		one(m, &now, `SELECT coalesce(revision, 0) AS revision, coalesce(identity::text, '') AS identity,
			coalesce(origin, '') AS origin,
			`+origin+` AS actual, (SELECT value FROM keys WHERE key = @floor) AS floor,
			concat_ws(', ', CASE WHEN identity IS NULL THEN 'head' END, CASE WHEN revision IS NULL THEN 'latest' END,
				CASE WHEN NOT EXISTS (SELECT FROM keys WHERE key = '') THEN 'keys' END,
				CASE WHEN NOT EXISTS (SELECT FROM log WHERE position = 0) THEN 'log' END,
				CASE WHEN NOT EXISTS (SELECT FROM checkpoint) THEN 'checkpoint' END) AS emptied
			FROM (SELECT) AS one LEFT JOIN head ON true LEFT JOIN `+fromLatest+` ON true`,
			args{"floor": binary(floor.Key)})
	})
	return now, err
}

// identify finds out which store this is. settled is false when it has changed something, and is to be called again.
func (s *Store) identify(ctx context.Context, conn *pgx.Conn) (settled bool, err error) {
	now, err := s.look(ctx, conn)
	if err != nil {
		return false, err
	}
	s.mu.Lock()
	known := s.known
	s.mu.Unlock()
	switch {
	case now.Emptied != "":
		return false, s.renew(ctx, conn, now,
			fmt.Sprintf("the store lacks rows of its tables %s, which somebody has emptied or dropped", now.Emptied))
	case now.Origin != now.Actual:
		return false, s.renew(ctx, conn, now, fmt.Sprintf("the store was at %s and is at %s", now.Origin, now.Actual))
	case now.Identity == known.identity && now.Revision < known.revision:
		return false, s.renew(ctx, conn, now,
			fmt.Sprintf("the store was at revision %d and is at %d", known.revision, now.Revision))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known.identity != "" && known.identity != now.Identity {
		s.known.epoch++
		s.known.log, s.untold = 0, true
		s.appender.Forget()
		for session := range s.sessions {
			s.loseLocked(session, "the store has lost data")
		}
		s.wakeLocked()
		s.Logger.Warn("the store has lost data, or may have", "identity", now.Identity, "before", known.identity)
	}
	s.known.identity, s.known.revision = now.Identity, now.Revision
	return true, nil
}

// ahead is how far revisions go on beyond those of a store that has lost data, so that none comes again.
const ahead = 1 << 32

// renew gives a store that has lost data, or may have, a new identity, from which all its clients see that. It ends all
// sessions, so that nothing that they hold can be extended, and opens the floor: nobody claims a
// node ID until a member has said from when on it may be used. It does nothing if another client has done so.
func (s *Store) renew(ctx context.Context, conn *pgx.Conn, from state, why string) error {
	host, err := os.Hostname()
	if err != nil {
		host = "a client"
	}
	put, err := floor.Open(from.Floor, host, why)
	if err != nil {
		return fmt.Errorf("%w: %w", store.ErrRefused, err)
	}
	s.mu.Lock()
	known := s.known.revision
	s.mu.Unlock()
	const guard = "EXISTS (SELECT FROM head WHERE identity::text = @identity)"
	a := args{
		"identity": newIdentity(), "format": format, "former": from.Identity, "revision": from.Revision, "known": known,
		"ahead": int64(ahead),
		"key":   binary(put.Key), "value": binary(put.Value),
	}
	return exec(ctx, conn, func(m *message) {
		for _, sql := range []string{
			"LOCK TABLE head IN EXCLUSIVE MODE", // there may be no row to lock
			"DELETE FROM head WHERE identity::text = @former AND coalesce((SELECT max(revision) FROM latest), 0) = " +
				"@revision",
			"INSERT INTO head (format, identity, origin) SELECT @format::integer, @identity::uuid, " + origin +
				" WHERE NOT EXISTS (SELECT FROM head)",
			"DELETE FROM sessions WHERE " + guard,
			"DELETE FROM log WHERE NOT EXISTS (SELECT FROM checkpoint) AND " + guard, // its rest means nothing without
			"INSERT INTO log (position, id, data) SELECT 0, '', '' WHERE " + guard + " ON CONFLICT DO NOTHING",
			"INSERT INTO checkpoint (position, version, value) SELECT 0, 0, '' WHERE " + guard +
				" ON CONFLICT DO NOTHING",
			`WITH former AS (DELETE FROM latest WHERE ` + guard + ` RETURNING revision)
				INSERT INTO latest (revision, verdict) SELECT @ahead + greatest(@known,
					(extract(epoch FROM clock_timestamp()) * 1000)::bigint, (SELECT max(revision) FROM former),
					(SELECT max(version) FROM keys), (SELECT max(position) FROM log),
					(SELECT max(version) FROM checkpoint)), 0 WHERE ` + guard,
			"INSERT INTO keys (key, value, version, created) SELECT '', '', revision, revision FROM latest WHERE " +
				guard + " ON CONFLICT DO NOTHING",
			`INSERT INTO keys (key, value, version, created) SELECT @key::bytea, @value::bytea, revision, revision
				FROM latest WHERE ` + guard + `
				ON CONFLICT (key) DO UPDATE SET value = excluded.value, version = excluded.version, session = NULL`,
			"SELECT pg_notify(current_schema(), '')",
		} {
			m.do(sql, a)
		}
	})
}

// newIdentity returns a random UUID.
func newIdentity() string {
	b := fresh.Bytes()
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:16])
}
