package zkstore

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path"
	"strings"
	"time"

	"github.com/firn-id/firn/internal/base/files"
	"github.com/firn-id/firn/store/internal/clienttls"
	"github.com/firn-id/firn/store/zkstore/internal/wire"
)

const (
	// DefaultChroot is the node below which firn's nodes are.
	DefaultChroot = "/firn"

	// DefaultCallDeadline is how long a call waits for its answer.
	DefaultCallDeadline = 5 * time.Second

	// DefaultPort is that of a server whose address has none.
	DefaultPort = "2181"

	// DefaultTLSPort is that of a server that speaks TLS.
	DefaultTLSPort = "2281"

	// A new connection takes several round trips, and so may take longer than a call.
	connectWithin = 10 * time.Second
)

// Config says which ZooKeeper to use, and how.
type Config struct {
	// Servers are those of one ensemble, at least one: "host" or "host:port". The client uses one at a time, in
	// an order of its own, and goes on to the next when one is silent.
	Servers []string

	// Chroot is the node below which all of firn's nodes are: "/firn" or "/apps/firn". The client makes it where
	// it may. Empty: DefaultChroot.
	Chroot string

	// Username logs in with SASL, by DIGEST-MD5; PasswordFile holds the password, and a newline after it is not
	// part of it. Both or neither. The client reads the file for each connection. With a user, only that user
	// can use the nodes that the client makes.
	Username, PasswordFile string

	// TLS makes the client speak TLS. A CAFile or CertFile does so, too.
	TLS bool

	// CAFile holds the PEM certificates of the authorities that may have signed the servers' certificates. Empty:
	// those that the system trusts.
	CAFile string

	// CertFile and KeyFile hold the client's own certificate and its key, in PEM; both or neither. The client
	// reads them for each connection, so that you can replace them at any time.
	CertFile, KeyFile string

	// CallDeadline is how long a call waits for its answer, unless its context ends sooner. Zero:
	// DefaultCallDeadline. Negative is an error.
	CallDeadline time.Duration

	// Logger gets lost sessions and lost data. Nil: no log.
	Logger *slog.Logger
}

// settings is a valid Config.
type settings struct {
	servers  []string
	root     string
	user     string
	password string // the file
	tls      *tls.Config
	deadline time.Duration
	recheck  time.Duration // how often what is watched is read without a hint
	piece    int           // how many entries of the log a follower reads at once
	dial     func(ctx context.Context, network, address string) (net.Conn, error)
}

func (c Config) settings() (settings, error) {
	s := settings{
		deadline: c.CallDeadline, root: cmp.Or(c.Chroot, DefaultChroot), user: c.Username,
		password: c.PasswordFile, recheck: defaultRecheck, piece: defaultPiece, dial: new(net.Dialer).DialContext,
	}
	if s.deadline == 0 {
		s.deadline = DefaultCallDeadline
	}
	if s.deadline < 0 {
		return s, fmt.Errorf("the call deadline is %v; want a positive one, or zero for %v", c.CallDeadline,
			DefaultCallDeadline)
	}
	if s.root[0] != '/' || s.root == "/" || path.Clean(s.root) != s.root || s.root == "/zookeeper" ||
		strings.HasPrefix(s.root, "/zookeeper/") {
		return s, fmt.Errorf("the node is %q; it must begin with one slash, not end in one, and not be ZooKeeper's "+
			"own, like %q", c.Chroot, DefaultChroot)
	}
	if (c.Username == "") != (c.PasswordFile == "") {
		return s, fmt.Errorf("the user name is %q and the password file is %q; give both or neither", c.Username,
			c.PasswordFile)
	}
	var err error
	if c.TLS || c.CAFile != "" || c.CertFile != "" || c.KeyFile != "" {
		if s.tls, err = clienttls.Config(c.CAFile, c.CertFile, c.KeyFile); err != nil {
			return s, err
		}
	}
	if len(c.Servers) == 0 {
		return s, errors.New(`no servers; give at least one, like "127.0.0.1:2181"`)
	}
	for _, given := range c.Servers {
		server, err := address(given, s.tls != nil)
		if err != nil {
			return s, fmt.Errorf(`the server %q %w; want "host" or "host:port"`, given, err)
		}
		s.servers = append(s.servers, server)
	}
	if s.user != "" {
		if _, err := s.login(); err != nil {
			return s, err
		}
	}
	return s, nil
}

// address returns a server's host:port.
func address(given string, secure bool) (string, error) {
	if strings.ContainsAny(given, "/@?# ") {
		return "", errors.New("has more than a host and a port")
	}
	host, port, err := net.SplitHostPort(given)
	if err != nil {
		host, port = strings.TrimSuffix(strings.TrimPrefix(given, "["), "]"), DefaultPort
		if secure {
			port = DefaultTLSPort
		}
		if strings.Contains(host, ":") && net.ParseIP(host) == nil {
			return "", errors.New("is no address")
		}
	}
	switch {
	case host == "":
		return "", errors.New("has no host")
	case port == "":
		return "", errors.New("has no port")
	}
	return net.JoinHostPort(host, port), nil
}

// login reads the password; nil: nobody logs in.
func (s settings) login() (*wire.Login, error) {
	if s.user == "" {
		return nil, nil
	}
	password, err := files.ReadOnce(s.password)
	if err != nil {
		return nil, fmt.Errorf("the password file can't be read: %w", err)
	}
	text := strings.TrimSuffix(strings.TrimSuffix(string(password), "\n"), "\r")
	if text == "" {
		return nil, fmt.Errorf("the password file %q is empty; want a password", s.password)
	}
	return &wire.Login{User: s.user, Password: text}, nil
}

// connect makes the connection below that of ZooKeeper's protocol.
func (s settings) connect(server string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		if s.tls == nil {
			return s.dial(ctx, "tcp", server)
		}
		return (&tls.Dialer{Config: s.tls}).DialContext(ctx, "tcp", server)
	}
}

// reach connects to one server, to begin or continue a session.
func (s settings) reach(ctx context.Context, server string, session wire.Session, timeout, silence time.Duration,
	event func(string),
) (*wire.Conn, error) {
	login, err := s.login()
	if err != nil {
		return nil, err
	}
	conn, err := wire.Dial(ctx, wire.Options{
		Connect: s.connect(server), Session: session, Timeout: timeout, Silence: silence, Login: login, Event: event,
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", server, err)
	}
	return conn, nil
}

// patience is how long one of several servers is waited for, when all together are waited for as long as within.
func (s settings) patience(within time.Duration) time.Duration {
	if len(s.servers) > 1 {
		return within / 4
	}
	return within
}
