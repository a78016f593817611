package etcdstore

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

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/pkg/v3/fileutil"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"google.golang.org/grpc"
)

// startDeadline is how long an embedded server may take to be ready. It replays
// its log first, which takes seconds when it was killed under load.
const startDeadline = time.Minute

// How often, and how many times more, a directory that is in use is tried.
const (
	lockEvery = 20 * time.Millisecond
	lockTries = 25
)

// EmbedConfig says how to run a cluster of one in this process.
type EmbedConfig struct {
	// Dir is the data directory. It is made, for the owner only, when it does not
	// exist. One process at a time uses it.
	Dir string

	// Prefix, CallDeadline and DialOptions are those of Config.
	Prefix       string
	CallDeadline time.Duration
	DialOptions  []grpc.DialOption

	// Logger is told about lost sessions and the server's errors. Nil: nobody is.
	Logger *slog.Logger

	// Fatal is called, once at most, with the reason why a server that ran can't go on: it can't write its data, or
	// found it damaged. It ends the process; if it returns, the process ends with status 1. Nil: Logger is told.
	Fatal func(*DataError)
}

// Embedded is a cluster of one in this process, and its client.
type Embedded struct {
	*Store
	config EmbedConfig
	server *embed.Etcd
	log    *etcdLog
	socket socket
	lock   *fileutil.LockedFile
	ended  chan struct{}  // closed when the server is closed
	errors sync.WaitGroup // the goroutines that wait for the server's errors
	once   sync.Once
	closed error
}

// Embed starts a cluster of one, new or with the data of its directory, and waits
// until it serves: normally well under a second. An error is returned when the
// directory can't be used, for one because another process uses it, and does so
// half a second later still. It is a *DataError when the data is damaged, or there
// is no room for more.
//
// The sessions of a process that used the directory before and ended without
// closing them are over when Embed returns; nobody need wait for their TTLs.
//
// Clients connect through a unix socket in a directory that only the owner can
// enter, made before the socket is. Nothing else listens, for peers neither:
// there are none.
//
// A server that ran and finds its data damaged, or can't write it, must not go on, and
// the process ends: see EmbedConfig.Fatal. One that finds so as it starts can't be
// closed: what it holds remains taken until the process ends.
func Embed(config EmbedConfig) (*Embedded, error) {
	if config.Dir == "" {
		return nil, errors.New("etcdstore: no data directory is given")
	}
	dir, err := filepath.Abs(config.Dir)
	if err != nil {
		return nil, fmt.Errorf("etcdstore: data directory %q: %w", config.Dir, err)
	}
	config.Dir = dir
	if _, err := config.client("unix:///unknown yet").settings(); err != nil {
		return nil, fmt.Errorf("etcdstore: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("etcdstore: data directory: %w", err)
	}
	e := &Embedded{config: config, log: newEtcdLog(dir, loggerOrNone(config.Logger)), ended: make(chan struct{})}
	if err := e.start(); err != nil {
		if e.Store != nil {
			_ = e.Store.Close()
		}
		e.stop()
		if data, ok := errors.AsType[*DataError](err); ok {
			return nil, data
		}
		if noRoom(err) {
			return nil, dataError(dir, "etcd can't start", err)
		}
		return nil, fmt.Errorf("etcdstore: data directory %q: %w", dir, err)
	}
	return e, nil
}

// InUse tells whether a process uses a data directory now. Should one begin to at that very moment, it may be told that
// the directory is in use.
func InUse(dir string) bool {
	lock, err := fileutil.TryLockFile(filepath.Join(dir, "lock"), os.O_WRONLY, 0o600)
	if err != nil {
		return errors.Is(err, fileutil.ErrLocked)
	}
	_ = lock.Close() // nothing was written
	return false
}

// Endpoint is what other clients in this process give to Open.
func (e *Embedded) Endpoint() string { return e.socket.endpoint() }

// Close ends the client's sessions and watches, and then the server, cleanly.
// Its error is that of Store.Close.
func (e *Embedded) Close() error {
	e.once.Do(func() {
		e.closed = e.Store.Close()
		e.stop()
	})
	return e.closed
}

// client is the configuration of a client of this server.
func (c EmbedConfig) client(endpoint string) Config {
	return Config{Endpoints: []string{endpoint}, Prefix: c.Prefix, CallDeadline: c.CallDeadline, DialOptions: c.DialOptions, Logger: c.Logger}
}

// start takes what an Embedded holds, one by one; stop gives back what was taken.
func (e *Embedded) start() (err error) {
	if e.lock, err = lockDir(e.config.Dir); err != nil {
		return err
	}
	if e.socket, err = newSocket(e.config.Dir); err != nil {
		return err
	}
	if err := checkData(e.config.Dir); err != nil {
		return err
	}
	smallSegments()
	if err := e.startServer(); err != nil {
		return err
	}
	e.errors.Go(e.endWithServer)
	e.errors.Go(func() {
		for err := range e.server.Err() {
			e.log.error("the embedded etcd failed", err)
		}
	})
	if err := e.socket.protect(); err != nil {
		return err
	}
	if e.Store, err = Open(e.config.client(e.Endpoint())); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startDeadline)
	defer cancel()
	return e.endSessions(ctx)
}

// startServer starts the server and waits until it is ready. What a server holds that can't go on is not given back.
func (e *Embedded) startServer() error {
	type result struct {
		server *embed.Etcd
		err    error
	}
	started := make(chan result, 1)
	go func() {
		defer func() {
			if found := recover(); found != nil {
				started <- result{err: dataError(e.config.Dir, fmt.Sprintf("etcd can't start: %v", found), nil)}
			}
		}()
		server, err := embed.StartEtcd(serverConfig(e.config.Dir, e.socket, e.log))
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
		e.server = r.server
		if r.err != nil {
			return fmt.Errorf("starting etcd: %w", r.err)
		}
	case err := <-e.log.died:
		return err
	}
	return nil
}

// endWithServer ends the process when the server can't go on, be it while it is closed.
func (e *Embedded) endWithServer() {
	select {
	case reason := <-e.log.died:
		if e.config.Fatal != nil {
			e.config.Fatal(reason)
		} else {
			e.log.to.Error(reason.Error())
		}
		os.Exit(1)
	case <-e.ended:
	}
}

// lockDir takes a directory for this process. One that is in use it tries again for a moment: its user may be about to
// be gone, and a process that another part of this program is starting has copies of all open files until it runs, and
// with them the locks.
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

// endSessions revokes every lease. Only this process can reach the server, and it
// has granted none yet: they belong to processes that ended without closing them.
func (e *Embedded) endSessions(ctx context.Context) error {
	failed := func(err error) error {
		return fmt.Errorf("ending the sessions of the process before: %w", err)
	}
	conn, err := e.connect(ctx)
	if err != nil {
		return failed(err)
	}
	found, err := conn.Leases(ctx)
	if err != nil {
		return failed(err)
	}
	const atOnce = 16
	slots, errs := make(chan struct{}, atOnce), make(chan error, len(found.Leases))
	for _, lease := range found.Leases {
		slots <- struct{}{}
		go func() {
			_, err := conn.Revoke(ctx, lease.ID)
			if isAny(err, rpctypes.ErrLeaseNotFound) { // it expired just now
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
		return failed(err)
	}
	return nil
}

func (e *Embedded) stop() {
	e.log.mute() // a listener that is closed is an error to etcd
	if e.server != nil {
		e.server.Close()
	}
	close(e.ended)
	e.errors.Wait()
	e.socket.remove()
	if e.lock != nil {
		_ = e.lock.Close()
	}
}

// smallSegments makes etcd write its log in segments of that size.
var smallSegments = sync.OnceFunc(func() { wal.SegmentSizeBytes = segment })

func serverConfig(dir string, socket socket, log *etcdLog) *embed.Config {
	c := embed.NewConfig()
	c.Name = "firn"
	c.Dir = dir
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(log.zap())

	// There are no peers, so nothing listens for them. The member's name for them is part of its identity; nobody
	// connects to it.
	c.ListenPeerUrls, c.AdvertisePeerUrls = nil, []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	client := []url.URL{{Scheme: "unix", Path: socket.path}}
	c.ListenClientUrls, c.AdvertiseClientUrls = client, client
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.EnableGRPCGateway = false

	// A member that is alone elects itself: short ticks only make it ready sooner
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
