package etcdstore

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"path"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/firn-id/firn/store/internal/answers"
	"github.com/firn-id/firn/store/internal/clienttls"
)

const (
	// DefaultPrefix is what firn's keys in etcd begin with.
	DefaultPrefix = "/firn"

	// DefaultCallDeadline is how long a call waits for its answer: longer than etcd
	// takes to replace a leader that hangs, which is up to 3.3 s.
	DefaultCallDeadline = 5 * time.Second

	// The client probes a connection that is silent for this long, and drops it when
	// no answer comes. Servers don't allow shorter times.
	probeAfter, probeDeadline = 10 * time.Second, 5 * time.Second

	// A new connection takes up to five round trips, with TLS and the beginning of
	// HTTP/2, and so may take longer than a call: ten seconds suffice for round trips
	// of two.
	connectWithin = 10 * time.Second

	// The longest pause before the client tries an unreachable server again. With
	// gRPC's own two minutes a server that is back would stay unused as long.
	longestBackoff = time.Second

	// How often a client that follows asks who the servers are.
	followEvery = 10 * time.Second
)

// Config says which etcd cluster to use, and how.
type Config struct {
	// Endpoints are the servers, at least one: "host:port", "http://host:port",
	// "https://host:port" or "unix:///path". Either all of them are https or
	// none. Without a scheme they are https if a CAFile or CertFile is given.
	Endpoints []string

	// CAFile holds the PEM certificates of the authorities that may have signed
	// the servers' certificates. Empty: those that the system trusts.
	CAFile string

	// CertFile and KeyFile hold the client's own certificate and its key, in PEM;
	// both or neither. The client reads them for each connection, so that you can
	// replace them at any time.
	CertFile, KeyFile string

	// Follow makes Endpoints the servers to begin with: the client asks them every ten seconds who the
	// servers are now.
	Follow bool

	// Username and Password log in to a cluster with authentication; both or
	// neither. Every renewal of a session logs in again, so that a server checks a
	// password each time: with many members use certificates instead.
	Username, Password string

	// Prefix stands before every key: with "/firn" the key "peers/7" is kept
	// as "/firn/peers/7". It begins with "/" and does not end in one.
	// Empty: DefaultPrefix.
	Prefix string

	// CallDeadline is how long a call waits for its answer, unless its context
	// ends sooner. Zero: DefaultCallDeadline. Negative is an error.
	CallDeadline time.Duration

	// DialOptions are further options of the gRPC connections to the servers, such as
	// interceptors that trace calls.
	DialOptions []grpc.DialOption

	// Logger gets lost sessions. Nil: no log.
	Logger *slog.Logger
}

// settings is a valid Config.
type settings struct {
	etcd     clientv3.Config
	prefix   string // with the "/" that follows it
	deadline time.Duration
	piece    int64         // how many entries of the log a follower reads at once
	recheck  time.Duration // how often a watched key is read without a hint
}

func (c Config) settings() (settings, error) {
	s := settings{deadline: c.CallDeadline, prefix: c.Prefix, recheck: defaultRecheck, piece: defaultPiece}
	if s.deadline == 0 {
		s.deadline = DefaultCallDeadline
	}
	if s.deadline < 0 {
		return s, fmt.Errorf("the call deadline is %v; want a positive one, or zero for %v", c.CallDeadline,
			DefaultCallDeadline)
	}
	if s.prefix == "" {
		s.prefix = DefaultPrefix
	}
	if s.prefix[0] != '/' || s.prefix == "/" || path.Clean(s.prefix) != s.prefix {
		return s, fmt.Errorf("the key prefix is %q; it must begin with one slash and not end in one, like %q",
			c.Prefix, DefaultPrefix)
	}
	s.prefix += "/"
	if (c.Username == "") != (c.Password == "") {
		return s, fmt.Errorf("the user name is %q and the password has %d characters; give both or neither", c.Username,
			len(c.Password))
	}
	endpoints, secure, err := c.endpoints()
	if err != nil {
		return s, err
	}
	s.etcd = clientv3.Config{
		Endpoints:            endpoints,
		Username:             c.Username,
		Password:             c.Password,
		DialTimeout:          connectWithin, // of the login
		DialKeepAliveTime:    probeAfter,
		DialKeepAliveTimeout: probeDeadline,
		MaxCallRecvMsgSize:   answers.Max,
		DialOptions: append([]grpc.DialOption{
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff: backoff.Config{
					BaseDelay: longestBackoff / 4, Multiplier: 1.6, Jitter: 0.2,
					MaxDelay: longestBackoff,
				},
				MinConnectTimeout: connectWithin,
			}),
			grpc.WithChainUnaryInterceptor(tellWhy, checked),
			grpc.WithChainStreamInterceptor(checkedStream),
		}, c.DialOptions...),
		Logger: zap.NewNop(), // it also returns every error that it would log
	}
	if c.Follow {
		s.etcd.AutoSyncInterval = followEvery
	}
	if secure {
		s.etcd.TLS, err = clienttls.Config(c.CAFile, c.CertFile, c.KeyFile)
	}
	return s, err
}

// endpoints gives each endpoint its scheme, and says whether they are secure.
func (c Config) endpoints() (endpoints []string, secure bool, err error) {
	if len(c.Endpoints) == 0 {
		return nil, false, errors.New(`no endpoints; give at least one, like "127.0.0.1:2379"`)
	}
	files := c.CAFile != "" || c.CertFile != "" || c.KeyFile != ""
	for i, given := range c.Endpoints {
		endpoint := given
		if !strings.Contains(endpoint, "://") {
			endpoint = "http://" + given
			if files {
				endpoint = "https://" + given
			}
		}
		if err := checkEndpoint(endpoint); err != nil {
			return nil, false,
				fmt.Errorf(`the endpoint %q %w; want "host:port", "http://host:port", "https://host:port" or `+
					`"unix:///path"`, given, err)
		}
		https := strings.HasPrefix(endpoint, "https://")
		if i > 0 && https != secure {
			return nil, false, fmt.Errorf("the endpoints %q and %q are not both https; all of them must be, or none",
				c.Endpoints[0], given)
		}
		secure = https
		endpoints = append(endpoints, endpoint)
	}
	if files && !secure {
		return nil, false,
			fmt.Errorf("TLS files are given, but the endpoint %q does not use TLS; want https", c.Endpoints[0])
	}
	return endpoints, secure, nil
}

func checkEndpoint(endpoint string) error {
	u, err := url.Parse(endpoint)
	if err != nil {
		return errors.New("is not a URL")
	}
	if u.Scheme == "unix" && u.Host == "" && len(u.Path) > 1 {
		return nil
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("has the scheme %q", u.Scheme)
	}
	host, port, err := net.SplitHostPort(u.Host)
	switch {
	case err != nil || port == "":
		return errors.New("has no port")
	case host == "":
		return errors.New("has no host")
	case u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.User != nil:
		return errors.New("has more than a host and a port")
	}
	return nil
}
