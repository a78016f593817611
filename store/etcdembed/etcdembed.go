// Package etcdembed runs an etcd cluster of one server inside this process.
// Programs that use etcd servers elsewhere need store/etcdstore only, and those
// that keep a store on several machines of their own store/quorum.
package etcdembed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/lease"
	"google.golang.org/grpc"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/etcdstore"
	"github.com/firn-id/firn/store/internal/etcdserver"
	"github.com/firn-id/firn/store/internal/place"
)

// startDeadline is how long the server may take to be ready. It replays its log
// first, which takes seconds when it was killed under load.
const startDeadline = time.Minute

// DataError says why the server can't use its data directory, and what to do.
type DataError = etcdserver.DataError

// PlaceError is returned when a data directory was copied or moved, see Config.Moved.
type PlaceError = place.Error

// Config says where the server keeps its data, and how its client behaves.
type Config struct {
	// Dir is the data directory. Open creates it, for the owner only, when it does
	// not exist. One process at a time can use it. It belongs to where it was used
	// first, so that no copy of it makes the same IDs. Required.
	Dir string

	// Moved says that the directory was moved, and that nobody uses the original:
	// it belongs to where it is now. False: a directory that was copied or moved is
	// refused, as docs/recover.md says under "A copied directory".
	Moved bool

	// DialOptions are those of the client, see etcdstore.Config.
	DialOptions []grpc.DialOption

	// Logger gets lost sessions and the server's errors. Nil: no log.
	Logger *slog.Logger

	// Fatal is called, at most once, when a running server can't go on because it
	// can't write its data or finds it damaged. It should end the process; if it
	// returns, the process exits with status 1. Nil: Logger gets the error first.
	Fatal func(*DataError)
}

// Store is an etcd cluster of one server in this process, and a client of it with
// the default prefix and deadline. It is safe for concurrent use.
type Store struct {
	*etcdstore.Store
	dir    *etcdserver.Dir
	server *etcdserver.Server
	once   sync.Once
	closed error
}

// Open starts the server, with an empty or an existing data directory, and waits
// until it serves: normally well under a second. It returns an error when it can't
// use the directory; if another process uses it, half a second later. The error is
// a *PlaceError when the directory was copied or moved, and a *DataError when the
// data is damaged or the disk is full.
//
// Sessions of an earlier process that ended without closing them have ended when
// Open returns; nobody waits for their TTLs.
//
// Clients connect through a unix socket in a directory that only the owner can
// enter. The server listens on nothing else.
//
// A running server that can't write its data, or finds it damaged, ends the
// process: see Config.Fatal. One that fails so while it starts can't be closed:
// its resources remain taken until the process ends.
func Open(config Config) (*Store, error) {
	config.Logger = cmp.Or(config.Logger, slog.New(slog.DiscardHandler))
	dir, err := etcdserver.OpenDir(config.Dir)
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir}
	if err := s.start(config); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// InUse tells whether a process uses a data directory now. A process that tries to
// use it at that very moment may be told that it is in use.
func InUse(dir string) bool { return etcdserver.InUse(dir) }

// CheckSystem returns why no process can keep data on this system, such as Windows, or nil.
func CheckSystem() error { return etcdserver.CheckSystem() }

// Endpoint is what other clients in this process give to etcdstore.Open.
func (s *Store) Endpoint() string { return s.server.Endpoint() }

// Traits says that the server is not shared: it begins and ends with this process.
func (s *Store) Traits() store.Traits { return store.Traits{} }

// Close ends the client's sessions and watches, and then the server, cleanly.
// Its error is that of the client's Close.
func (s *Store) Close() error {
	s.once.Do(func() {
		s.closed = s.Store.Close()
		s.stop()
	})
	return s.closed
}

// start acquires what a server needs, one by one; stop gives back what was acquired.
func (s *Store) start(config Config) error {
	if err := place.Enter(s.dir.Path, "", config.Moved, config.Logger); err != nil {
		return err
	}
	if _, err := s.dir.Check(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startDeadline)
	defer cancel()
	var err error
	if s.server, err = s.dir.Start(etcdserver.Config{Logger: config.Logger, Fatal: config.Fatal}); err != nil {
		return err
	}
	if err := s.server.Wait(ctx); err != nil {
		return fmt.Errorf("data directory %q: etcd is not ready after %v: %w", s.dir.Path, startDeadline, err)
	}
	if err := s.endSessions(ctx); err != nil {
		return fmt.Errorf("data directory %q: %w", s.dir.Path, err)
	}
	s.Store, err = etcdstore.Open(etcdstore.Config{
		Endpoints: []string{s.Endpoint()}, DialOptions: config.DialOptions, Logger: config.Logger,
	})
	return err
}

// endSessions revokes every lease. Only this process can reach the server, and
// nobody has opened a session yet: they belong to processes that ended without
// closing theirs.
func (s *Store) endSessions(ctx context.Context) error {
	found, err := s.server.LeaseLeases(ctx, &etcdserverpb.LeaseLeasesRequest{})
	if err != nil {
		return fmt.Errorf("listing the sessions of the process before: %w", err)
	}
	const atOnce = 16
	slots, errs := make(chan struct{}, atOnce), make(chan error, len(found.Leases))
	for _, old := range found.Leases {
		slots <- struct{}{}
		go func() {
			_, err := s.server.LeaseRevoke(ctx, &etcdserverpb.LeaseRevokeRequest{ID: old.ID})
			if errors.Is(err, lease.ErrLeaseNotFound) { // it expired just now
				err = nil
			}
			errs <- err
			<-slots
		}()
	}
	for range found.Leases {
		err = cmp.Or(err, <-errs)
	}
	if err != nil {
		return fmt.Errorf("ending the sessions of the process before: %w", err)
	}
	return nil
}

func (s *Store) stop() {
	if s.server != nil {
		s.server.Close()
	}
	s.dir.Close()
}
