package pgstore

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/firn-id/firn/store"
)

// ServerReport is what one server of the URL says of itself.
type ServerReport struct {
	Server      string        // host:port, or the path of a socket
	Err         error         // why it does not answer
	Version     string        // such as "15.4"
	Standby     bool          // it is not the primary
	Synchronous string        // the setting synchronous_standby_names; empty: a failover may lose commits
	Connections int64         // that all clients have
	MaxConns    int64         // the setting max_connections
	Took        time.Duration // how long a question took
}

// Report is what Examine has found.
type Report struct {
	Servers []ServerReport
	Size    int64         // of the tables with their indexes, in bytes
	Read    time.Duration // how long a read took
	Oldest  time.Duration // how long the oldest transaction has been open, as far as the role may see
	Who     string        // whose that is, such as `process 17, "psql", idle in transaction`
	Dead    int64         // former versions of rows that the server has not removed, roughly
}

// Examine asks every server of the URL for its state, and whether this client may use the tables: if not, it returns an
// error of package store. It makes the tables if there are none. To try a write it sends a transaction that changes no
// key.
func (s *Store) Examine(ctx context.Context) (Report, error) {
	var r Report
	config, err := s.connection()
	if err != nil {
		return r, wrap("connect", store.ErrRefused, err)
	}
	servers := hosts(config)
	r.Servers = make([]ServerReport, len(servers))
	var all sync.WaitGroup
	for i, host := range servers {
		all.Go(func() { r.Servers[i] = s.examineServer(ctx, config.Copy(), host) })
	}
	all.Wait()
	if _, err := s.read(ctx, "read"); err != nil { // the first one waits for the connection
		return r, err
	}
	began := time.Now()
	found, err := s.read(ctx, "read",
		one(`SELECT (SELECT sum(pg_total_relation_size(oid)) FROM pg_class
			WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'),
			(SELECT string_agg(name || ' (' || "right" || ')', ', ') FROM unnest(ARRAY[`+names+`]) AS name,
				unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS "right"
					WHERE NOT has_table_privilege(name, "right")),
			`+oldest+`, coalesce((SELECT format('process %s, "%s", %s', pid, application_name, state)
				FROM pg_stat_activity
				WHERE datname = current_database() AND pid <> pg_backend_pid()
					AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
				ORDER BY xact_start LIMIT 1), 'a prepared one'),
			(SELECT sum(n_dead_tup) FROM pg_stat_user_tables WHERE schemaname = current_schema())`, "ITitI"))
	if err != nil {
		return r, err
	}
	r.Read, r.Size = time.Since(began), found[1].int(0, 0)
	r.Oldest, r.Who, r.Dead = time.Duration(found[1].int(0, 2))*time.Millisecond, found[1].text(0, 3),
		found[1].int(0, 4)
	if missing := found[1].text(0, 1); missing != "" {
		return r, fmt.Errorf("write: %w: the role has no right to these tables: %s", store.ErrRefused, missing)
	}
	_, err = s.write(ctx, "write", "0")
	return r, err
}

func (s *Store) examineServer(ctx context.Context, config *pgconn.Config,
	host *pgconn.FallbackConfig,
) (r ServerReport) {
	r.Server = host.Host // a socket's folder
	if host.Host != "" && host.Host[0] != '/' {
		r.Server = net.JoinHostPort(host.Host, strconv.Itoa(int(host.Port)))
	}
	same := slices.DeleteFunc(slices.Clone(config.Fallbacks), func(f *pgconn.FallbackConfig) bool {
		return f.Host != host.Host || f.Port != host.Port || f == host
	})
	config.Host, config.Port, config.TLSConfig, config.Fallbacks, config.ValidateConnect = host.Host, host.Port,
		host.TLSConfig, same, nil
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	conn, err := connect(ctx, s.life, config)
	if err != nil {
		r.Err = oneLineError{err}
		return r
	}
	defer closeNow(conn)
	began := time.Now()
	all, err := exec(ctx, conn, one(`SELECT current_setting('server_version'), pg_is_in_recovery(),
		current_setting('synchronous_standby_names'),
		(SELECT sum(numbackends) FROM pg_stat_database), current_setting('max_connections')`, "tbtIi"))
	if err != nil {
		r.Err = err
		return r
	}
	r.Took = time.Since(began)
	found := all[0]
	r.Version, r.Standby, r.Synchronous = found.text(0, 0), found.is(0, 1), found.text(0, 2)
	r.Connections, r.MaxConns = found.int(0, 3), found.int(0, 4)
	return r
}
