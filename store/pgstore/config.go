package pgstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/firn-id/firn/internal/base/files"
)

const (
	// DefaultCallDeadline is how long a call waits for its answer.
	DefaultCallDeadline = 5 * time.Second

	// A new connection takes up to eight round trips, and a server that is busy may be slow to begin one. With several
	// servers none has all of it: one that is silent must not use up the time in which calls wait for the next.
	connectWithin = 10 * time.Second

	// How often a client asks the server for news that it got no notification of.
	pollEvery = time.Second
)

// Config says which database to use, and how.
type Config struct {
	// URL is the address of the database, such as "postgres://user@host:5432/database?sslmode=verify-full", with the
	// parameters of PostgreSQL's own clients. With several hosts, "postgres://user@a,b/database", the client uses the
	// one that is the primary, and goes on to the next when one is silent for 2.5 s, or for connect_timeout. What the
	// URL leaves out comes from PGHOST and its like, as everywhere. It must lead to the server itself: poolers are
	// refused.
	URL string

	// PasswordFile holds the password on its first line. It is read for each connection, so that you can replace it at
	// any time. Empty: the password is that of the URL, PGPASSWORD or ~/.pgpass, if there is one.
	PasswordFile string

	// CAFile holds the PEM certificates of the authorities that may have signed the server's certificate. With it the
	// client uses TLS alone and checks the server's name, unless the URL has another sslmode. Empty: as the URL says.
	CAFile string

	// CertFile and KeyFile hold the client's own certificate and its key, in PEM; both or neither. They are read for
	// each connection.
	CertFile, KeyFile string

	// Schema holds the tables, for this cluster alone: 1 to 63 characters a-z, 0-9 and _, the first no digit. Empty:
	// DefaultSchema. If it does not exist, the client makes it, for which its role must be allowed to create schemas in
	// the database; see SQL.
	Schema string

	// CallDeadline is how long a call waits for its answer, unless its context ends sooner. Zero: DefaultCallDeadline.
	// Negative is an error.
	CallDeadline time.Duration

	// Logger gets lost sessions and losses of data. Nil: no log.
	Logger *slog.Logger
}

// settings is a valid Config.
type settings struct {
	Config
	url  string          // with the files
	dial pgconn.DialFunc // nil: as the library does
}

func (c Config) settings() (settings, error) {
	c.CallDeadline = cmp.Or(c.CallDeadline, DefaultCallDeadline)
	c.Schema = cmp.Or(c.Schema, DefaultSchema)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	s := settings{Config: c}
	if c.CallDeadline < 0 {
		return s, fmt.Errorf("the call deadline is %v; want a positive one, or zero for %v", c.CallDeadline,
			DefaultCallDeadline)
	}
	if !schemaName.MatchString(c.Schema) {
		return s, fmt.Errorf("the schema is called %q; want 1 to 63 characters a-z, 0-9 and _, the first no digit",
			c.Schema)
	}
	if (c.CertFile == "") != (c.KeyFile == "") {
		return s, fmt.Errorf("the certificate file is %q and the key file is %q; give both or neither",
			c.CertFile, c.KeyFile)
	}
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		// it may hold a password
		return s, errors.New(`the address of the database is not a URL like "postgres://user@host:5432/database"`)
	}
	q := u.Query()
	if c.CAFile != "" {
		q.Set("sslrootcert", c.CAFile)
		if q.Get("sslmode") == "" {
			q.Set("sslmode", "verify-full")
		}
	}
	if c.CertFile != "" {
		q.Set("sslcert", c.CertFile)
		q.Set("sslkey", c.KeyFile)
	}
	for name := range q {
		if forPools(name) {
			c.Logger.Warn("firn has one connection, and no use for a setting of a pool in the address of the database",
				"setting", name, "value", q.Get(name))
			q.Del(name)
		}
	}
	u.RawQuery = q.Encode()
	// all is in the environment; pgx reads no "postgres:"
	if s.url = u.String(); u.Host == "" && u.User == nil && u.Path == "" {
		s.url = strings.Replace(s.url, ":", "://", 1)
	}
	_, err = s.connection()
	return s, err
}

// forPools is whether pgx and its pool alone understand a setting, in a URL that a service has for both. A server
// refuses it.
func forPools(name string) bool {
	return strings.HasPrefix(name, "pool_") ||
		slices.Contains([]string{"default_query_exec_mode", "statement_cache_capacity", "description_cache_capacity"},
			name)
}

// checkFiles returns an error when others can write a file that the URL names.
func (s settings) checkFiles() error {
	u, err := url.Parse(s.url)
	if err != nil {
		return err
	}
	for _, name := range []string{"sslrootcert", "sslcert", "sslkey"} {
		if path := u.Query().Get(name); path != "" && path != "system" {
			if err := files.CheckWriters(path); err != nil {
				return err
			}
		}
	}
	return nil
}

// connection returns how to connect. It reads the files.
func (s settings) connection() (*pgx.ConnConfig, error) {
	if err := s.checkFiles(); err != nil {
		return nil, err
	}
	c, err := pgx.ParseConfig(s.url)
	if err != nil {
		_, why, _ := strings.Cut(err.Error(), "`: ") // what is before it is the address, which may hold a password
		return nil, fmt.Errorf("the address of the database: %s", why)
	}
	if s.dial != nil {
		c.DialFunc = s.dial
	}
	if s.PasswordFile != "" {
		password, err := files.ReadOnce(s.PasswordFile)
		if err != nil {
			return nil, fmt.Errorf("the password file can't be read: %w", err)
		}
		line, _, _ := strings.Cut(string(password), "\n")
		c.Password = strings.TrimSuffix(line, "\r")
	}
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "firn"
	}
	// see message
	c.DefaultQueryExecMode, c.StatementCacheCapacity, c.DescriptionCacheCapacity = pgx.QueryExecModeSimpleProtocol, 0, 0
	if c.ValidateConnect == nil && len(c.Fallbacks) > 0 {
		c.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsPrimary
	}
	if c.ConnectTimeout == 0 {
		c.ConnectTimeout = connectWithin
		if len(hosts(&c.Config)) > 1 {
			c.ConnectTimeout = connectWithin / 4
		}
	}
	return c, nil
}

// hosts are the servers of a configuration, each once: one that is tried with and without TLS is there twice.
func hosts(c *pgconn.Config) []*pgconn.FallbackConfig {
	all := []*pgconn.FallbackConfig{{Host: c.Host, Port: c.Port, TLSConfig: c.TLSConfig}}
	for _, next := range c.Fallbacks {
		if !slices.ContainsFunc(all, func(h *pgconn.FallbackConfig) bool {
			return h.Host == next.Host && h.Port == next.Port
		}) {
			all = append(all, next)
		}
	}
	return all
}

// until has connections, also those that are being made, end with a context. left is how many bytes a server may send.
func until(life context.Context, c *pgconn.Config, left *atomic.Int64) {
	dial := c.DialFunc
	c.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(life, cancel)()
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		left.Store(greeting)
		return &mortal{&metered{conn, left}, context.AfterFunc(life, func() { _ = conn.Close() })}, nil
	}
}

// mortal is a connection that the end of a context closes.
type mortal struct {
	net.Conn
	live func() bool // so that it does not close it
}

func (m *mortal) Close() error {
	m.live()
	return m.Conn.Close()
}
