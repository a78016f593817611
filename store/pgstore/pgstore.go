// Package pgstore is the store over a schema of a PostgreSQL database.
//
// All transactions that write lock one row first and count its revision up, so that they take revisions in the order in
// which they commit. Each is one message to the server, so that a client that stops holds no lock. Notifications are
// hints to look; each client also looks every second. A client has one connection.
//
// It is not a client for PostgreSQL in general, and no pool.
package pgstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/internal/appends"
)

// Store is one client of a cluster's schema. Open makes it. It implements store.Store and is safe for concurrent use.
type Store struct {
	settings
	life     context.Context // ends at Close
	end      context.CancelFunc
	appender *appends.Appender

	free  chan *pgx.Conn // the connection, while nobody uses it
	hints chan struct{}  // filled when there may be news
	quiet chan struct{}  // filled when the last call has got the connection
	over  overdue        // of the goroutine that polls

	mu        sync.Mutex // guards what follows
	closed    bool
	lose      context.CancelFunc // tells that the connection is of no use
	wanted    int                // the calls that wait for the connection
	interrupt context.CancelFunc // ends the wait for notifications
	failure   error              // why there is no connection; nil: there is one, or the first is being made
	changed   chan struct{}      // closed when failure changes
	known     known
	untold    bool // data was lost, and neither an Append nor a Follow has told so
	age       age
	warning   string // what the server said while it carried out the latest message
	sessions  map[*session]bool
	watches   map[*watch]bool
	news      chan struct{} // closed when the log has grown or the epoch has changed; nil: nobody waits
	running   sync.WaitGroup
}

// known is the latest state of the store that the client has seen.
type known struct {
	identity string // empty: none was seen
	revision int64
	epoch    int            // counts losses of data
	log      store.Position // of its last entry, or of its checkpoint
}

var _ store.Store = (*Store)(nil)

// Open makes a client. No server need be reachable yet: later calls find one that comes up. Open returns an error when
// the configuration is wrong.
func Open(config Config) (*Store, error) {
	settings, err := config.settings()
	if err != nil {
		return nil, err
	}
	return open(settings), nil
}

func open(settings settings) *Store {
	s := &Store{
		settings: settings,
		free:     make(chan *pgx.Conn, 1),
		hints:    make(chan struct{}, 1),
		quiet:    make(chan struct{}, 1),
		changed:  make(chan struct{}),
		sessions: make(map[*session]bool),
		watches:  make(map[*watch]bool),
	}
	s.appender = appends.New(tries{s}, retryAfter)
	s.life, s.end = context.WithCancel(context.Background())
	s.running.Go(s.keep)
	return s
}

// Traits says that the database is shared with other processes.
func (s *Store) Traits() store.Traits {
	return store.Traits{Shared: true, OldestTransaction: s.oldestTransaction}
}

// closeWithin is how long Close waits for the server to confirm the end of the sessions.
const closeWithin = 3 * time.Second

// Close ends every session, watch and Follow of this client and frees its resources. It returns ErrUnavailable when the
// server did not confirm the end of the sessions, which then end by themselves within their TTLs.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	sessions := slices.Collect(maps.Keys(s.sessions))
	s.mu.Unlock()
	var err error
	if len(sessions) > 0 {
		ctx, cancel := context.WithTimeout(s.life, closeWithin)
		defer cancel()
		err = s.endSessions(ctx, sessions...)
	}
	s.end()
	s.running.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	for session := range s.sessions {
		s.forgetLocked(session)
	}
	for w := range s.watches {
		w.forget()
		delete(s.watches, w)
	}
	return err
}

func (s *Store) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// acquire returns the connection for one message; release gives it back. Errors: a refusal by the server; that of ctx,
// with the reason why there is no connection; errClosed.
func (s *Store) acquire(ctx context.Context) (*pgx.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.wanted++
	if s.interrupt != nil {
		s.interrupt()
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.wanted--; s.wanted == 0 {
			signal(s.quiet)
		}
	}()
	for {
		s.mu.Lock()
		failure, changed := s.failure, s.changed
		s.mu.Unlock()
		if errors.Is(failure, store.ErrRefused) {
			return nil, failure
		}
		select {
		case conn := <-s.free:
			return conn, nil
		case <-changed:
		case <-s.life.Done():
			return nil, errClosed
		case <-ctx.Done():
			if failure != nil {
				return nil, fmt.Errorf("%w: %w", failure, ctx.Err())
			}
			return nil, ctx.Err()
		}
	}
}

// release gives the connection back, or tells that it is of no use.
func (s *Store) release(conn *pgx.Conn) {
	if !conn.IsClosed() {
		s.free <- conn
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lose()
}

// failed notes why there is no connection; nil: there is one.
func (s *Store) failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure == nil && err == nil {
		return
	}
	s.failure = err
	close(s.changed)
	s.changed = make(chan struct{})
}

// signal fills a channel that holds one signal.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
