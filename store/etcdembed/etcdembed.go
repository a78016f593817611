// Package etcdembed runs an etcd cluster of one server inside this process, and
// is the only package that links etcd's server. Programs that use etcd servers
// elsewhere need store/etcdstore only.
package etcdembed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/lease"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"google.golang.org/grpc"

	"github.com/firn-id/firn/store/etcdstore"
)

// startDeadline is how long the server may take to be ready. It replays its log
// first, which takes seconds when it was killed under load.
const startDeadline = time.Minute

// How often, and how many times more, a directory that is in use is tried.
const (
	lockEvery = 20 * time.Millisecond
	lockTries = 25
)

// Config says where the server keeps its data, and how its client behaves.
type Config struct {
	// Dir is the data directory. Open creates it, for the owner only, when it does
	// not exist. One process at a time can use it. Required.
	Dir string

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
	config Config
	server *embed.Etcd
	log    *etcdLog
	socket socket
	lock   *fileutil.LockedFile
	ended  chan struct{}  // closed when the server is closed
	errors sync.WaitGroup // the goroutines that wait for the server's errors
	once   sync.Once
	closed error
}

// Open starts the server, with an empty or an existing data directory, and waits
// until it serves: normally well under a second. It returns an error when it can't
// use the directory; if another process uses it, half a second later. The error is
// a *DataError when the data is damaged or the disk is full.
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
	if config.Dir == "" {
		return nil, errors.New("no data directory is given")
	}
	dir, err := filepath.Abs(config.Dir)
	if err != nil {
		return nil, fmt.Errorf("data directory %q: %w", config.Dir, err)
	}
	config.Dir = dir
	config.Logger = cmp.Or(config.Logger, slog.New(slog.DiscardHandler))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	s := &Store{config: config, log: newEtcdLog(dir, config.Logger), ended: make(chan struct{})}
	if err := s.start(); err != nil {
		s.stop()
		if data, ok := errors.AsType[*DataError](err); ok {
			return nil, data
		}
		if noRoom(err) {
			return nil, dataError(dir, "etcd can't start", err)
		}
		return nil, fmt.Errorf("data directory %q: %w", dir, err)
	}
	return s, nil
}

// InUse tells whether a process uses a data directory now. A process that tries to
// use it at that very moment may be told that it is in use.
func InUse(dir string) bool {
	lock, err := fileutil.TryLockFile(filepath.Join(dir, "lock"), os.O_WRONLY, 0o600)
	if err != nil {
		return errors.Is(err, fileutil.ErrLocked)
	}
	_ = lock.Close() // nothing was written
	return false
}

// Endpoint is what other clients in this process give to etcdstore.Open.
func (s *Store) Endpoint() string { return s.socket.endpoint() }

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
func (s *Store) start() (err error) {
	if s.lock, err = lockDir(s.config.Dir); err != nil {
		return err
	}
	if s.socket, err = newSocket(s.config.Dir); err != nil {
		return err
	}
	if err := checkData(s.config.Dir); err != nil {
		return err
	}
	smallSegments()
	if err := s.startServer(); err != nil {
		return err
	}
	s.errors.Go(s.endWithServer)
	s.errors.Go(func() {
		for err := range s.server.Err() {
			s.log.error("the embedded etcd failed", err)
		}
	})
	if err := s.socket.protect(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startDeadline)
	defer cancel()
	if err := s.endSessions(ctx); err != nil {
		return err
	}
	s.Store, err = etcdstore.Open(etcdstore.Config{
		Endpoints: []string{s.Endpoint()}, DialOptions: s.config.DialOptions, Logger: s.config.Logger,
	})
	return err
}

// startServer starts the server and waits until it is ready. A server that can't
// go on gives back nothing.
func (s *Store) startServer() error {
	type result struct {
		server *embed.Etcd
		err    error
	}
	started := make(chan result, 1)
	go func() {
		defer func() {
			if found := recover(); found != nil {
				started <- result{err: dataError(s.config.Dir, fmt.Sprintf("etcd can't start: %v", found), nil)}
			}
		}()
		server, err := embed.StartEtcd(serverConfig(s.config.Dir, s.socket, s.log))
		if err == nil {
			select {
			case <-server.Server.ReadyNotify():
			case err = <-server.Err():
			case <-time.After(startDeadline):
				err = fmt.Errorf("it is not ready after %v", startDeadline)
			}
		}
		started <- result{server, err}
	}()
	select {
	case r := <-started:
		s.server = r.server
		if r.err != nil {
			return fmt.Errorf("starting etcd: %w", r.err)
		}
	case err := <-s.log.died:
		return err
	}
	return nil
}

// endWithServer ends the process when the server can't go on, even while it is being closed.
func (s *Store) endWithServer() {
	select {
	case reason := <-s.log.died:
		if s.config.Fatal != nil {
			s.config.Fatal(reason)
		} else {
			s.config.Logger.Error(reason.Error())
		}
		os.Exit(1)
	case <-s.ended:
	}
}

// lockDir locks a directory for this process. It tries one that is in use again for
// a moment: its user may be about to end, and a process that another part of this
// program starts has copies of all open files until it runs, and with them the locks.
func lockDir(dir string) (*fileutil.LockedFile, error) {
	for tries := 0; ; tries++ {
		lock, err := fileutil.TryLockFile(filepath.Join(dir, "lock"), os.O_WRONLY|os.O_CREATE, 0o600)
		if !errors.Is(err, fileutil.ErrLocked) {
			return lock, err
		}
		if tries == lockTries {
			return nil, errors.New("it is in use by another process")
		}
		time.Sleep(lockEvery)
	}
}

// endSessions revokes every lease. Only this process can reach the server, and
// nobody has opened a session yet: they belong to processes that ended without
// closing theirs.
func (s *Store) endSessions(ctx context.Context) error {
	etcd := s.server.Server
	found, err := etcd.LeaseLeases(ctx, &etcdserverpb.LeaseLeasesRequest{})
	if err != nil {
		return fmt.Errorf("listing the sessions of the process before: %w", err)
	}
	const atOnce = 16
	slots, errs := make(chan struct{}, atOnce), make(chan error, len(found.Leases))
	for _, old := range found.Leases {
		slots <- struct{}{}
		go func() {
			_, err := etcd.LeaseRevoke(ctx, &etcdserverpb.LeaseRevokeRequest{ID: old.ID})
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
	s.log.muted.Store(true) // etcd logs it as an error that a listener is closed
	if s.server != nil {
		s.server.Close()
	}
	close(s.ended)
	s.errors.Wait()
	s.socket.remove()
	if s.lock != nil {
		_ = s.lock.Close()
	}
}

// smallSegments makes etcd write its log in segments of that size.
var smallSegments = sync.OnceFunc(func() { wal.SegmentSizeBytes = segment })

func serverConfig(dir string, socket socket, log *etcdLog) *embed.Config {
	c := embed.NewConfig()
	c.Name = "firn"
	c.Dir = dir
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(log.zap())

	// The server has no peers, so that nothing listens for them. Its address for
	// them is part of its identity; nobody connects to it.
	c.ListenPeerUrls, c.AdvertisePeerUrls = nil, []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	client := []url.URL{{Scheme: "unix", Path: socket.path}}
	c.ListenClientUrls, c.AdvertiseClientUrls = client, client
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.EnableGRPCGateway = false

	// A server that is alone elects itself: short ticks only make it ready sooner
	// and allow sessions of one second.
	c.TickMs, c.ElectionMs = 10, 100

	// What keeps the directory small: a snapshot of the log every so many writes,
	// after which older segments can go; old revisions dropped every five
	// minutes, whose room in the database is used again; and a database with
	// much unused room is rewritten at the next start.
	c.SnapshotCount, c.SnapshotCatchUpEntries = 10_000, 1_000
	c.MaxSnapFiles, c.MaxWalFiles = 2, 2
	c.AutoCompactionMode, c.AutoCompactionRetention = embed.CompactorModeRevision, "1000"
	c.BootstrapDefragThresholdMegabytes = 64
	return c
}
