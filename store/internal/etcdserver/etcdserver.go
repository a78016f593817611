// Package etcdserver runs an etcd server in this process, for package quorum: the only one, or one of
// several. It checks the data before it starts a server, and ends the process
// when a running one can't go on. The server listens on unix sockets that only the owner can reach.
package etcdserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/storage/datadir"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"google.golang.org/grpc"

	"github.com/firn-id/firn/internal/base/files"
	"github.com/firn-id/firn/internal/base/space"
)

// How often, and how many times more, a directory that is in use is tried.
const (
	lockEvery = 20 * time.Millisecond
	lockTries = 25
)

// Dir is a data directory that belongs to this process until Close.
type Dir struct {
	Path string // absolute
	lock *fileutil.LockedFile
}

// OpenDir makes a data directory, for its owner only, unless it exists, and locks it. An error is
// returned when another process uses it for half a second, when others than its user and root can write it or own
// something in it, and always on a system that is no Unix.
func OpenDir(path string) (*Dir, error) {
	if path == "" {
		return nil, errors.New("no data directory is given")
	}
	if errSystem != nil {
		return nil, fmt.Errorf("data directory %q: %w", path, errSystem)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("data directory %q: %w", path, err)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if err := files.CheckTree(path); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	lock, err := lockDir(path)
	if err != nil {
		return nil, fmt.Errorf("data directory %q: %w", path, err)
	}
	return &Dir{path, lock}, nil
}

// Close unlocks the directory. Call it once.
func (d *Dir) Close() { _ = d.lock.Close() } // nothing was written

// HasLog reports whether a server has ever run on the directory, and its log is there.
func (d *Dir) HasLog() bool { return wal.Exist(datadir.ToWALDir(d.Path)) }

// Check examines the data and returns the index of the last entry in its log. The error is a *DataError
// when the data is damaged or the disk is full.
func (d *Dir) Check() (last uint64, err error) {
	last, err = checkData(d.Path)
	return last, d.explain("the data can't be examined", err)
}

// LastEntry returns the index of the last entry in the log, which need not be committed; 0: the log is empty. It reads
// only the log. The errors are those of Check.
func (d *Dir) LastEntry() (last uint64, err error) {
	names, err := d.segments()
	if err == nil {
		last, err = checkLog(d.Path, names)
	}
	return last, d.explain("the log can't be read", err)
}

// segments returns the names of the files of the log, in order; none if there is no log.
func (d *Dir) segments() ([]string, error) {
	names, err := fileutil.ReadDir(datadir.ToWALDir(d.Path), fileutil.WithExt(".wal"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return names, err
}

// SetAside moves the data to "set-aside" in the directory, in place of what was there, so that a server may begin
// again.
func (d *Dir) SetAside() error {
	aside := filepath.Join(d.Path, "set-aside")
	if err := os.RemoveAll(aside); err != nil {
		return err
	}
	return os.Rename(filepath.Join(d.Path, "member"), aside)
}

// explain returns err as a *DataError if it is one or the disk is full, and otherwise with the directory's name.
func (d *Dir) explain(what string, err error) error {
	if err == nil {
		return nil
	}
	if data, ok := errors.AsType[*DataError](err); ok {
		return data
	}
	if space.Full(err) {
		return dataError(d.Path, what, err)
	}
	return fmt.Errorf("data directory %q: %w", d.Path, err)
}

// CheckSystem returns why no process can keep data on this system, or nil.
func CheckSystem() error { return errSystem }

// InUse reports whether a process uses a data directory now. A process that tries to
// use it at that very moment may be told that it is in use.
func InUse(dir string) bool {
	if errSystem != nil {
		return false
	}
	lock, err := fileutil.TryLockFile(filepath.Join(dir, "lock"), os.O_WRONLY, 0o600)
	if err != nil {
		return errors.Is(err, fileutil.ErrLocked)
	}
	_ = lock.Close() // nothing was written
	return false
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

// Config says how a server runs.
type Config struct {
	// Logger gets the server's errors. Required.
	Logger *slog.Logger

	// Fatal is called, at most once, when a running server can't go on because it
	// can't write its data or finds it damaged. It should end the process; if it
	// returns, the process exits with status 1. Nil: Logger gets the error first.
	Fatal func(*DataError)

	// Peers are the others. Nil: there are none.
	Peers *Peers
}

// Peers say how a server finds the others, and how they find it. A server that has a log uses only Self and the
// files: the log has the rest.
type Peers struct {
	Self    string   // its own address, host:port, which is also its name
	All     []string // the addresses of all, Self among them
	Cluster string   // identity of a cluster that all begin together; empty: the server joins one that runs

	CAFile, CertFile, KeyFile string // PEM, for its connections to the others
	ServerName                string // what their certificates must be for; empty: the host of each one's address

	// May judges the calls that come over LimitedSocket: the method, such as "/etcdserverpb.KV/Range", and a message of
	// etcdserverpb; nil: that is about to come, in a stream.
	May func(method string, message any) bool
}

// URL is how etcd writes an address.
func URL(address string) string { return "https://" + address }

// Server is an etcd server in this process.
type Server struct {
	*etcdserver.EtcdServer // not before Start has returned

	dir     *Dir
	config  Config
	etcd    *embed.Etcd
	log     *etcdLog
	socket  socket
	calls   answering
	ended   chan struct{}  // closed when the server is closed
	errors  sync.WaitGroup // the goroutines that wait for the server's errors
	closing sync.Once
}

// answering are what answers clients, one for each socket; none: the server is not ready.
type answering struct {
	mu  sync.Mutex
	all []*grpc.Server
}

func (a *answering) add(s *grpc.Server) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.all = append(a.all, s)
}

func (a *answering) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.all {
		s.Stop()
	}
}

// Start starts a server. It does not wait until the server is ready, see ReadyNotify, nor check the data, see
// Dir.Check. The error is a *DataError when the data is damaged or the disk is full.
//
// A running server that can't write its data, or finds it damaged, ends the process: see Config.Fatal. One that
// fails so while it starts can't be closed: its resources remain taken until the process ends.
func (d *Dir) Start(config Config) (*Server, error) {
	s := &Server{dir: d, config: config, log: newEtcdLog(d.Path, config.Logger), ended: make(chan struct{})}
	if err := s.start(); err != nil {
		s.Close()
		return nil, d.explain("etcd can't start", err)
	}
	return s, nil
}

// start acquires what a server needs, one by one; Close gives back what was acquired.
func (s *Server) start() (err error) {
	if s.socket, err = newSocket(s.dir.Path); err != nil {
		return err
	}
	smallSegments()
	if err := s.startEtcd(); err != nil {
		return err
	}
	s.EtcdServer = s.etcd.Server
	s.errors.Go(s.endWithServer)
	s.errors.Go(func() {
		for err := range s.etcd.Err() {
			s.log.error("etcd failed", err)
		}
	})
	return s.socket.protect()
}

// startEtcd starts the server. One that can't go on gives back nothing.
func (s *Server) startEtcd() error {
	type result struct {
		etcd *embed.Etcd
		err  error
	}
	started := make(chan result, 1)
	go func() {
		defer func() {
			if found := recover(); found != nil {
				started <- result{err: dataError(s.dir.Path, fmt.Sprintf("etcd can't start: %v", found), nil)}
			}
		}()
		etcd, err := embed.StartEtcd(s.settings())
		started <- result{etcd, err}
	}()
	select {
	case r := <-started:
		s.etcd = r.etcd
		if r.err != nil {
			s.etcd = nil // it has closed itself
			return fmt.Errorf("starting etcd: %w", r.err)
		}
	case err := <-s.log.died:
		return err
	}
	return nil
}

// Wait waits until the server is ready: it has found the others, if there are any, and has applied what was
// committed when it began. The error is that of ctx, or says why the server can't go on.
func (s *Server) Wait(ctx context.Context) error {
	select {
	case <-s.ReadyNotify():
		return nil
	case <-s.StopNotify():
		return errStopped
	case <-ctx.Done():
		return ctx.Err()
	}
}

var errStopped = errors.New("the etcd server in this process has stopped")

// Range reads as the server does for its clients. An error is returned when the server has stopped, as it does by
// itself once the others have removed it: it closes its database, even under a read, which then panics.
func (s *Server) Range(ctx context.Context, r *etcdserverpb.RangeRequest) (found *etcdserverpb.RangeResponse,
	err error,
) {
	defer func() {
		p := recover()
		select {
		case <-s.StoppingNotify():
			found, err = nil, errStopped
		default:
			if p != nil {
				panic(p)
			}
		}
	}()
	return s.EtcdServer.Range(ctx, r)
}

// Endpoint is what clients in this process connect to: "unix:///path".
func (s *Server) Endpoint() string { return "unix://" + s.socket.path }

// Socket is the path of the unix socket for clients.
func (s *Server) Socket() string { return s.socket.path }

// LimitedSocket is the path of the unix socket for clients whose calls Peers.May judges. A server without peers has
// none.
func (s *Server) LimitedSocket() string { return s.socket.limited() }

// PeerSocket is the path of the unix socket for other servers.
func (s *Server) PeerSocket() string { return s.socket.peers() }

// endWithServer ends the process when the server can't go on, even while it is being closed.
func (s *Server) endWithServer() {
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

// Close ends the server, cleanly. The directory remains locked. Further calls do nothing.
func (s *Server) Close() { s.closing.Do(s.close) }

func (s *Server) close() {
	s.log.muted.Store(true) // etcd logs it as an error that a listener is closed
	if s.etcd != nil {
		// etcd closes its database even under a read, which then panics: so calls must have ended before.
		s.calls.stop()
		// etcd's Close would wait until the server is ready, and for seconds until a leader that nobody follows has
		// handed over.
		s.HardStop()
		s.etcd.Close()
	}
	close(s.ended)
	s.errors.Wait()
	s.socket.remove()
}
