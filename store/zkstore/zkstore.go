// Package zkstore is the store over ZooKeeper, 3.5 or newer: a client of servers that run elsewhere.
//
// It decides nothing: the errors of package store tell callers what a lost answer, another leader or an expired
// session means.
package zkstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/internal/appends"
	"github.com/firn-id/firn/store/zkstore/internal/wire"
)

// Store is one client of a ZooKeeper ensemble. Open makes it. It implements store.Store and is safe for concurrent
// use.
//
// It has one connection for all calls, and one for each session, since ZooKeeper's ephemeral nodes belong to the
// connection that makes them.
type Store struct {
	settings
	log      *slog.Logger
	appender *appends.Appender

	life context.Context // ends at Close
	end  context.CancelFunc

	mu       sync.Mutex // guards what follows
	closed   bool
	conn     *wire.Conn // for calls; nil: none, or it has ended
	dialing  *dialing   // nil: nobody connects
	next     int        // the server to try next
	sessions map[*session]bool
	hints    map[string]map[chan struct{}]bool // who waits for events, by path
	running  sync.WaitGroup                    // added to only while not closed

	known  tidemark
	losses int  // how often the service was found to have lost data
	untold bool // of the last loss nobody was told

	nodes map[string]node // by key: what was read or written last
}

// tidemark is what the client knows of the service's past.
type tidemark struct {
	seen    int64 // the latest transaction that a server has told of
	origin  int64 // the transaction that made the tree; zero: unknown
	written int64 // the latest transaction of this client
}

// dialing is an attempt to connect, which goes on when the call that began it ends.
type dialing struct {
	done chan struct{} // closed at its end

	mu  sync.Mutex // guards err
	err error      // why the last server could not be used
}

func (d *dialing) note(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

func (d *dialing) why() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

var _ store.Store = (*Store)(nil)

// pause is how long to wait before another try of a server.
var pause = retry.Backoff{First: 50 * time.Millisecond, Max: time.Second}

// Open makes a client. No server need be reachable yet: later calls find one that comes up. Open returns an error
// when the configuration is wrong.
func Open(config Config) (*Store, error) {
	settings, err := config.settings()
	if err != nil {
		return nil, err
	}
	s := &Store{
		settings: settings,
		log:      cmp.Or(config.Logger, slog.New(slog.DiscardHandler)),
		sessions: make(map[*session]bool),
		hints:    make(map[string]map[chan struct{}]bool),
		nodes:    make(map[string]node),
		next:     rand.IntN(len(settings.servers)),
	}
	s.appender = appends.New(tries{s}, retryAfter)
	s.life, s.end = context.WithCancel(context.Background())
	return s, nil
}

// Close ends every session, watch and Follow of this client and frees its resources. It returns ErrUnavailable when
// the servers did not confirm the end of a session, which then ends by itself within its TTL.
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

	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	errs := make([]error, len(sessions))
	var all sync.WaitGroup
	for i, session := range slices.Collect(maps.Keys(sessions)) {
		all.Go(func() { errs[i] = session.finish(ctx) })
	}
	all.Wait()
	s.end()
	s.running.Wait()
	s.mu.Lock()
	conn := s.conn
	s.mu.Unlock()
	if conn != nil {
		_ = conn.Close(ctx) // its session owns nothing
	}
	return errors.Join(errs...)
}

// Traits says that the servers are shared with other processes.
func (s *Store) Traits() store.Traits { return store.Traits{Shared: true} }

func (s *Store) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed
}

// link returns the connection for calls, once it is made.
func (s *Store) link(ctx context.Context) (*wire.Conn, error) {
	for {
		s.mu.Lock()
		switch {
		case s.closed:
			s.mu.Unlock()
			return nil, errClosed
		case ctx.Err() != nil:
			s.mu.Unlock()
			return nil, ctx.Err()
		case s.conn != nil && s.conn.Err() == nil:
			conn := s.conn
			s.mu.Unlock()
			return conn, nil
		case s.dialing == nil:
			d := &dialing{done: make(chan struct{})}
			s.dialing = d
			s.running.Go(func() { s.dial(d) })
		}
		d := s.dialing
		s.mu.Unlock()
		select {
		case <-d.done:
			if err := d.why(); err != nil {
				return nil, err
			}
		case <-ctx.Done():
			if err := d.why(); err != nil {
				return nil, fmt.Errorf("%w: %w", err, ctx.Err())
			}
			return nil, ctx.Err()
		case <-s.life.Done():
			return nil, errClosed
		}
	}
}

// dial tries the servers in turn until one can be used, or another try is of no use.
func (s *Store) dial(d *dialing) {
	defer close(d.done)
	for tries := 0; ; tries++ {
		conn, err := s.dialOnce()
		d.note(err)
		if err != nil && !isLasting(err) && !errors.Is(err, store.ErrRefused) {
			if tries >= len(s.servers)-1 && retry.Sleep(s.life, pause.After(tries-len(s.servers)+1)) != nil {
				d.note(errClosed)
			} else {
				continue
			}
		}
		s.mu.Lock()
		s.dialing, s.conn = nil, conn
		s.mu.Unlock()
		if conn != nil {
			s.running.Go(func() { s.attend(conn) })
		}
		return
	}
}

// attend wakes all who wait for events when a connection ends: they missed what happens until the next.
func (s *Store) attend(conn *wire.Conn) {
	select {
	case <-conn.Done():
	case <-s.life.Done():
		return
	}
	conn.Abandon()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == conn {
		s.conn = nil
	}
	for _, waiting := range s.hints {
		wake(waiting)
	}
}

// dialOnce tries one server.
func (s *Store) dialOnce() (*wire.Conn, error) {
	s.mu.Lock()
	server := s.servers[s.next]
	s.next = (s.next + 1) % len(s.servers)
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(s.life, s.patience(connectWithin))
	defer cancel()
	conn, err := s.reach(ctx, server, wire.Session{}, 2*s.deadline, max(s.deadline/2, time.Millisecond), s.event)
	if err != nil {
		return nil, err
	}
	if err := s.examineTree(ctx, conn); err != nil {
		conn.Abandon()
		return nil, fmt.Errorf("%s: %w", server, err)
	}
	return conn, nil
}

// read sends requests that change nothing, until they are answered. The answers are from one server, in order, and
// not older than the call: sync has the server catch up with its leader, and an answer that is behind what this
// client has seen is not taken. Its errors are not those of package store, except when the store is closed.
func (s *Store) read(ctx context.Context, requests ...wire.Request) ([]wire.Reply, error) {
	return s.ask(ctx, true, requests)
}

// peek is read without sync: the answers may be older than the call, but not than what this client has seen.
func (s *Store) peek(ctx context.Context, requests ...wire.Request) ([]wire.Reply, error) {
	return s.ask(ctx, false, requests)
}

func (s *Store) ask(ctx context.Context, sync bool, requests []wire.Request) ([]wire.Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, s.deadline)
	defer cancel()
	synced := append([]wire.Request{wire.Sync(s.root)}, requests...)
	for {
		conn, err := s.link(ctx)
		if err != nil {
			return nil, err
		}
		before, losses := s.tide()
		sent := requests
		if sync {
			sent = synced
		}
		replies, err := conn.Do(ctx, sent...)
		switch {
		case ctx.Err() != nil && err != nil:
			return nil, err
		case err != nil:
			continue
		case replies[0].Zxid < before.seen && !sync: // a session's server may be ahead of this one
			sync = true
			continue
		case replies[0].Zxid < before.seen: // the server has been left behind, or has lost data
			conn.Abandon()
			continue
		}
		s.saw(losses, replies[len(replies)-1].Zxid, 0)
		for _, r := range replies {
			if r.Err != 0 && r.Err != wire.ErrNoNode {
				return nil, r.Err
			}
		}
		return replies[len(replies)-len(requests):], nil
	}
}

// transact sends a transaction once, over this connection. The Stat of the reply is that of a node that each
// transaction writes.
func (s *Store) transact(ctx context.Context, conn *wire.Conn, parts []wire.Request) (wire.Reply, error) {
	parts = append(parts, wire.Set(s.root+revision, nil, wire.AnyVersion))
	request := wire.Multi(parts...)
	if size := request.Size(); size > maxRequest {
		return wire.Reply{},
			fmt.Errorf("%w: a transaction of %d bytes with all that surrounds them; ZooKeeper takes %d",
				store.ErrRefused, size, maxRequest)
	}
	_, losses := s.tide()
	replies, err := conn.Do(ctx, request)
	if err != nil {
		return wire.Reply{}, err
	}
	reply := replies[0]
	failed, code := reply.Failed()
	if failed == len(parts)-1 && code == wire.ErrNoNode {
		conn.Abandon() // the tree is gone: the next connection finds out what that means
	}
	if code == 0 {
		reply.Stat = reply.Parts[len(parts)-1].Stat
		if reply.Stat.Modified != reply.Zxid { // nobody can tell what it did
			return wire.Reply{},
				fmt.Errorf("%w: the server answers that transaction %#x wrote %#x; want the same number", wire.ErrLost,
					reply.Zxid, reply.Stat.Modified)
		}
	}
	s.saw(losses, reply.Zxid, reply.Stat.Modified)
	return reply, nil
}

// event wakes those who wait for one.
func (s *Store) event(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wake(s.hints[path])
}

func wake(waiting map[chan struct{}]bool) {
	for hint := range waiting {
		select {
		case hint <- struct{}{}:
		default:
		}
	}
}

// hinted returns a channel that gets a value when there may be an event for a path, or none may come any more.
func (s *Store) hinted(path string) (hint <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hints[path] == nil {
		s.hints[path] = make(map[chan struct{}]bool)
	}
	s.hints[path][c] = true
	return c, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.hints[path], c)
		if len(s.hints[path]) == 0 {
			delete(s.hints, path)
		}
	}
}
