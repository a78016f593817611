package pgstore

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
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
	servers := hosts(&config.Config)
	r.Servers = make([]ServerReport, len(servers))
	var all sync.WaitGroup
	for i, host := range servers {
		all.Go(func() { r.Servers[i] = s.examineServer(ctx, config.Copy(), host) })
	}
	all.Wait()
	if _, err := s.read(ctx, "read", nothing); err != nil { // the first one waits for the connection
		return r, err
	}
	began := time.Now()
	var found struct {
		Size    *int64
		Missing *string
		Oldest  int64
		Who     string
		Dead    *int64
	}
	_, err = s.read(ctx, "read", func(m *message) {
		one(m, &found, `SELECT (SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class
			WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r') AS size,
			(SELECT string_agg(name || ' (' || "right" || ')', ', ') FROM unnest(ARRAY[`+names+`]) AS name,
				unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS "right"
					WHERE NOT has_table_privilege(name, "right")) AS missing,
			`+oldest+` AS oldest, coalesce((SELECT format('process %s, "%s", %s', pid, application_name, state)
				FROM pg_stat_activity
				WHERE datname = current_database() AND pid <> pg_backend_pid()
					AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
				ORDER BY xact_start LIMIT 1), 'a prepared one') AS who,
			(SELECT sum(n_dead_tup)::bigint FROM pg_stat_user_tables WHERE schemaname = current_schema()) AS dead`, nil)
	})
	if err != nil {
		return r, err
	}
	r.Read, r.Oldest, r.Who = time.Since(began), time.Duration(found.Oldest)*time.Millisecond, found.Who
	if found.Size != nil {
		r.Size = *found.Size
	}
	if found.Dead != nil {
		r.Dead = *found.Dead
	}
	if found.Missing != nil {
		return r, fmt.Errorf("write: %w: the role has no right to these tables: %s", store.ErrRefused, *found.Missing)
	}
	_, err = s.write(ctx, "write", always, nothing)
	return r, err
}

func (s *Store) examineServer(ctx context.Context, config *pgx.ConnConfig,
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
	var found struct {
		Version, Synchronous  string
		Standby               bool
		Connections, MaxConns int64
	}
	err = exec(ctx, conn, func(m *message) {
		one(m, &found, `SELECT current_setting('server_version') AS version, pg_is_in_recovery() AS standby,
			current_setting('synchronous_standby_names') AS synchronous,
			(SELECT coalesce(sum(numbackends), 0)::bigint FROM pg_stat_database) AS connections,
				current_setting('max_connections')::bigint AS maxconns`, nil)
	})
	if err != nil {
		r.Err = err
		return r
	}
	r.Took = time.Since(began)
	r.Version, r.Standby, r.Synchronous = found.Version, found.Standby, found.Synchronous
	r.Connections, r.MaxConns = found.Connections, found.MaxConns
	return r
}
