// Package etcdstore is the store over etcd: a client of servers that run
// elsewhere, or of the one that package quorum runs in this process.
//
// It decides nothing: the errors of package store tell callers what a lost answer,
// a leader change or an expired lease means.
package etcdstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/internal/appends"
)

var errClosed = fmt.Errorf("%w: the store is closed", store.ErrRefused)

// Store is one client of an etcd cluster. Open makes it. It
// implements store.Store and is safe for concurrent use.
type Store struct {
	settings
	log *slog.Logger

	life context.Context // ends at Close
	end  context.CancelFunc

	conn        atomic.Pointer[clientv3.Client]
	connections connections
	trusted     atomic.Bool // the servers are recent enough

	appender *appends.Appender

	mu       sync.Mutex // guards what follows
	closed   bool
	dialing  *dialing // nil: no call has needed conn, or it could not be made
	sessions map[*session]bool
	tail     *tail          // nil when nobody follows the log
	running  sync.WaitGroup // renewals and watches; added to only while not closed
}

// dialing is an attempt to connect.
type dialing struct {
	done chan struct{} // closed at its end
	err  error         // why it failed; to be read after that
}

var _ store.Store = (*Store)(nil)

// Open makes a client. No server need be reachable yet: later calls find one that comes
// up. Open returns an error when the configuration is wrong.
func Open(config Config) (*Store, error) {
	settings, err := config.settings()
	if err != nil {
		return nil, err
	}
	s := &Store{
		settings: settings,
		log:      cmp.Or(config.Logger, slog.New(slog.DiscardHandler)),
		sessions: make(map[*session]bool),
	}
	s.appender = appends.New(tries{s}, retryAfter)
	s.life, s.end = context.WithCancel(context.Background())
	return s, nil
}

// Close ends every session, watch and Follow of this client and frees its resources. It
// returns ErrUnavailable when the servers did not confirm the end of a session, which
// then ends by itself within its TTL.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	sessions := s.sessions
	s.sessions = nil
	s.mu.Unlock()

	ctx, cancel := context.WithTimeout(s.life, closeWithin)
	defer cancel()
	errs := make([]error, len(sessions))
	var all sync.WaitGroup
	for i, session := range slices.Collect(maps.Keys(sessions)) {
		all.Go(func() { errs[i] = session.revoke(ctx) })
	}
	all.Wait()
	s.end()
	s.running.Wait()
	if conn := s.conn.Load(); conn != nil {
		_ = conn.Close() // its only error is that it was closed
	}
	return errors.Join(errs...)
}

// Traits says that the servers are shared with other processes.
func (s *Store) Traits() store.Traits { return store.Traits{Shared: true} }

// begin starts a call: it returns a context with the deadline, and the connection. Its
// errors are not those of package store, except when the store is closed.
func (s *Store) begin(ctx context.Context) (context.Context, context.CancelFunc, *clientv3.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, s.deadline)
	conn, err := s.connect(ctx)
	if err != nil {
		cancel()
		return nil, nil, nil, err
	}
	return ctx, cancel, conn, nil
}

// connect returns the connection, once it is made. Open can't make it, because with a
// user name it logs in, which takes a server.
func (s *Store) connect(ctx context.Context) (*clientv3.Client, error) {
	if s.isClosed() {
		return nil, errClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if conn := s.conn.Load(); conn != nil {
		return conn, nil
	}
	d, err := s.dial()
	if err != nil {
		return nil, err
	}
	select {
	case <-d.done:
		return s.conn.Load(), d.err
	case <-ctx.Done():
		return nil, cmp.Or(s.unreachable(ctx), ctx.Err())
	case <-s.life.Done():
		return nil, errClosed
	}
}

// dial begins to connect, unless that has begun. It goes on when the call ends: over a
// slow network it may take longer than a call.
func (s *Store) dial() (*dialing, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	if s.dialing != nil {
		return s.dialing, nil
	}
	d := &dialing{done: make(chan struct{})}
	s.dialing = d
	s.running.Go(func() {
		defer close(d.done)
		etcd := s.etcd
		etcd.Context = s.life
		etcd.DialOptions = append(slices.Clip(etcd.DialOptions), grpc.WithStatsHandler(&s.connections))
		conn, err := clientv3.New(etcd)
		if err != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.dialing, d.err = nil, err
			return
		}
		conn.ActiveConnection().Connect()
		s.conn.Store(conn)
	})
	return d, nil
}

func (s *Store) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}
