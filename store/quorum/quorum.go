// Package quorum is a store that its users keep themselves: one, three or five machines each run an
// etcd server in their process, and together they are one store that survives the loss of any
// minority of them. Further processes use it as clients and keep nothing.
//
// The machines find out by themselves who forms the cluster, who joins it and who has lost its disk;
// see docs/quorum.md for the rules, and package plan for them as pure functions. All traffic between
// machines uses one port, and mutual TLS 1.3 with certificates that each process makes from a key. A
// quorum of one needs neither, see One. Programs that use etcd servers elsewhere need store/etcdstore only.
package quorum

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/internal/etcdserver"
	"github.com/firn-id/firn/store/internal/place"
	"github.com/firn-id/firn/store/quorum/internal/keyring"
	"github.com/firn-id/firn/store/quorum/internal/plan"
	"github.com/firn-id/firn/store/quorum/internal/port"
)

// NoMachine is the Config.Self of a process that keeps no data, on a machine whose addresses would say otherwise.
const NoMachine = "none"

// Config says who keeps the store, and what this process is to it.
type Config struct {
	// Machines are the 1, 3 or 5 addresses, each host:port, of those who keep the data, in any order. All processes
	// have the same. They name whom to ask; whoever has joined since is found by asking.
	Machines []string

	// Self is the address in Machines that is this process's own. Empty: the one whose host is a name or an address
	// of this machine; if there is none, the process is a client, and if there are several, that is an error.
	// NoMachine: the process is a client.
	Self string

	// Listen is the host:port to listen on. Empty: the port of Self, on all addresses of this machine, or on
	// the loopback address if Self is one.
	Listen string

	// KeyFile holds the keys that all machines share, see NewKey, or those for clients, see ClientKey. Empty: CAFile,
	// CertFile and CertKeyFile are given, or all Machines have loopback addresses, and the key is one that this user's
	// processes with the same Machines share.
	KeyFile string

	// CAFile, CertFile and CertKeyFile are PEM files of an authority of one's own that replace the key. Who has a
	// certificate of this authority that names the host of one of the Machines is taken for a machine, and who has one
	// that names client.quorum.firn.internal for a client. All or none.
	CAFile, CertFile, CertKeyFile string

	// Dir is the data directory. Start creates it, for the owner only, when it does not exist. One process at a time
	// can use it. Only a process that is one of Machines does. It belongs to the address of its machine; that of a
	// quorum of one belongs to where it was used first, so that no copy of it makes the same IDs.
	Dir string

	// Moved says that the directory of a quorum of one was moved, and that nobody uses the original: it belongs to
	// where it is now. False: a directory that was copied or moved is refused, as docs/recover.md says under "A copied
	// directory". That of another machine of a quorum is refused in any case.
	Moved bool

	// Version of the program, for Status.
	Version string

	// Node returns the name of the node in this process, for Status; empty: unknown. It may be called at any time after
	// Start. Nil: unknown.
	Node func() string

	// DialOptions are those of the client, see etcdstore.Config.
	DialOptions []grpc.DialOption

	// Logger gets what happens to the quorum. Nil: no log.
	Logger *slog.Logger

	// Fatal is called, at most once, when the running server in this process can't go on because it can't write its
	// data or finds it damaged. It should end the process; if it returns, the process exits with status 1. Nil: Logger
	// gets the error first.
	Fatal func(error)
}

// Store is a client of the quorum. Its Close ends the client, and not the server in this process.
type Store interface {
	store.Store
	Close() error
}

// Quorum is this process's part in a quorum. Make it with New or One, and call Start once. Its methods are safe for
// concurrent use.
type Quorum struct {
	config       Config
	log          *slog.Logger
	ring         *keyring.Ring
	since        time.Time // there may be a cluster since then; zero: nobody knows
	asker        *asker
	callDeadline time.Duration   // how long a call of its clients waits for its answer
	lifeID       string          // random
	life         context.Context // ends at Close
	end          context.CancelFunc
	dead         context.Context // ends at Kill
	die          context.CancelFunc
	parts        sync.WaitGroup // goroutines

	// These belong to run.
	decided string  // what plan.Decide said last
	former  []int64 // leases of the process before on this machine

	mu      sync.Mutex // guards what follows
	self    string     // address of this machine; empty: it is a client, or that is not known yet
	port    *port.Port // nil: it does not listen
	disk    *disk      // nil: it keeps nothing
	server  *server    // nil: none runs
	index   uint64     // the last entry in the log before a server ran
	member  uint64     // whose log it is; zero: there is none
	said    map[string]answer
	cluster string        // identity of the cluster that can be used; empty: there is none yet
	doing   string        // what it waits for
	noted   time.Time     // when it last wrote down what the others have kept
	synced  time.Duration // how long the disk took for that
	failed  error         // why it can't go on
	changed chan struct{} // closed when cluster, doing or failed changes
}

// New checks a configuration and reads the key or the certificates. It does not listen. Every error is about the
// configuration.
func New(c Config) (*Quorum, error) {
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if err := checkMachines(c.Machines); err != nil {
		return nil, err
	}
	c.Machines = slices.Sorted(slices.Values(c.Machines))
	if c.Self != "" && c.Self != NoMachine && !slices.Contains(c.Machines, c.Self) {
		return nil, fmt.Errorf("%s is none of the machines %s; name one of them, or %q for a client", c.Self,
			strings.Join(c.Machines, ", "), NoMachine)
	}
	if err := checkProxy(c.Machines); err != nil {
		return nil, err
	}
	q := newQuorum(c)
	if err := q.openRing(); err != nil {
		return nil, err
	}
	return q, nil
}

func newQuorum(c Config) *Quorum {
	q := &Quorum{
		config: c, callDeadline: callDeadline, lifeID: newIdentity(), log: c.Logger, changed: make(chan struct{}),
		said: map[string]answer{}, doing: "it has not started yet",
	}
	q.asker = newAsker(q.connectFor)
	q.life, q.end = context.WithCancel(context.Background())
	q.dead, q.die = context.WithCancel(context.Background())
	return q
}

// openRing reads the key, or the certificates.
func (q *Quorum) openRing() (err error) {
	c := q.config
	files := []string{c.CAFile, c.CertFile, c.CertKeyFile}
	switch given := slices.DeleteFunc(slices.Clone(files), func(f string) bool { return f == "" }); {
	case len(given) > 0 && c.KeyFile != "":
		return errors.New("a key and certificates are given; give one of the two")
	case len(given) > 0 && len(given) < len(files):
		return fmt.Errorf("of an authority of your own only %s is given; want the authority's certificate, one that "+
			"it signed, and its key", strings.Join(given, ", "))
	case len(given) > 0:
		q.ring, err = keyring.FromFiles(c.CAFile, c.CertFile, c.CertKeyFile, q.hosts, q.log)
		return err
	case c.KeyFile == "" && !onLoopback(c.Machines):
		return fmt.Errorf("the machines %s are reached over a network, and need a key; make one with firn quorum key, "+
			"and give it to all of them", strings.Join(c.Machines, ", "))
	case c.KeyFile == "":
		if c.KeyFile, err = keyring.UserFile(c.Machines); err != nil {
			return err
		}
	}
	keys, err := keyring.ReadFile(c.KeyFile)
	if err != nil {
		return err
	}
	q.since = keys.Since()
	q.ring, err = keyring.FromKeys(keys)
	return err
}

// Start listens, if this process is one of the machines, and begins to find or form the cluster. It returns an error
// when it can't listen or can't use the data directory: a *DirError if it can't be opened, such as one that another
// process uses, which shows half a second later; a *PlaceError when it was copied or moved; a *DataError when the data
// is damaged or the disk is full.
func (q *Quorum) Start() error {
	err := q.begin()
	var unknown *unknownError
	if err != nil && !errors.As(err, &unknown) {
		return err
	}
	q.parts.Go(func() { q.run(q.life, err) })
	return nil
}

// begin finds out what this process is, and, if it is one of the machines, opens its data and listens. An
// *unknownError passes.
func (q *Quorum) begin() error {
	if q.isOne() {
		return q.beginOne()
	}
	self, err := q.whoAmI()
	if err != nil || self == "" {
		return err
	}
	if err := q.ring.CheckMachine(self); err != nil {
		return err
	}
	disk, index, err := q.openData(self)
	if err != nil {
		return err
	}
	member, err := disk.dir.MemberID()
	if err != nil {
		disk.dir.Close()
		return err
	}
	listen := q.listenAddr(self)
	p, err := port.Listen(listen, q.ring, q.log)
	if err != nil {
		disk.dir.Close()
		return fmt.Errorf("can't listen for the other machines on %s: %w", listen, err)
	}
	q.former = disk.get().Leases
	q.mu.Lock()
	q.self, q.disk, q.port, q.index, q.member = self, disk, p, index, member
	q.mu.Unlock()
	exchanges, web := newAccepted(), &http.Server{Handler: q.exchanges(), ErrorLog: slog.NewLogLogger(q.log.Handler(),
		slog.LevelDebug), ReadTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, ConnContext: knowWho}
	p.Handle(port.Exchange, func(c *tls.Conn) { exchanges.take(c, q.ring.IsMachine(c.ConnectionState())) })
	q.parts.Go(func() { _ = web.Serve(exchanges) })
	context.AfterFunc(q.life, func() { _ = web.Close() })
	return nil
}

// openData opens the data directory, and returns the index of the last entry in its log. self is the address of this
// machine; empty: a quorum of one.
func (q *Quorum) openData(self string) (*disk, uint64, error) {
	dir, err := etcdserver.OpenDir(q.config.Dir)
	if err != nil {
		return nil, 0, &DirError{err}
	}
	if q.isOne() {
		err = CheckOne(q.config.Dir)
	}
	var d *disk
	var index uint64
	if err == nil {
		d, index, err = q.examine(dir, self)
	}
	if err != nil {
		dir.Close()
		return nil, 0, err
	}
	return d, index, nil
}

// examine reads a data directory, and returns the index of the last entry in its log. Data that is damaged is set aside
// if other machines have it, too: it is like a disk that was emptied.
func (q *Quorum) examine(dir *etcdserver.Dir, self string) (*disk, uint64, error) {
	if err := place.Enter(dir.Path, self, q.config.Moved, q.log); err != nil {
		return nil, 0, err
	}
	disk, err := openDisk(dir)
	if err != nil {
		return nil, 0, err
	}
	index, err := dir.Check()
	if data, ok := errors.AsType[*etcdserver.DataError](err); ok && data.Damaged() {
		if w := disk.get(); w.State == plan.Started && len(w.Known) > 1 {
			q.log.Error("the data of this machine is damaged; setting it aside, to get a copy from the other machines",
				"err", data.Err, "file", data.File)
			return disk, 0, disk.lose(w.Disk, plan.Disk{State: plan.Lost, Cluster: w.Cluster})
		}
	}
	return disk, index, err
}

// listenAddr returns the host:port on which a machine listens for the others.
func (q *Quorum) listenAddr(self string) string {
	_, number, _ := net.SplitHostPort(self)
	switch {
	case q.config.Listen != "":
		return q.config.Listen
	case onLoopback([]string{self}):
		return self
	default:
		return ":" + number
	}
}

// whoAmI returns the address of this machine; empty: it is a client.
func (q *Quorum) whoAmI() (string, error) {
	switch q.config.Self {
	case NoMachine:
		return "", nil
	case "":
		ctx, cancel := context.WithTimeout(q.life, askWithin)
		defer cancel()
		return thisMachine().find(ctx, q.config.Machines, net.DefaultResolver.LookupIPAddr)
	default:
		return q.config.Self, nil
	}
}

// Addr returns the host:port that it listens on; empty: it is a client, or a quorum of one.
func (q *Quorum) Addr() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.port == nil {
		return ""
	}
	return q.port.Addr()
}

// Close hands leadership over if this process has it, and ends the server and everything else.
func (q *Quorum) Close() {
	q.end()
	q.parts.Wait()
	q.asker.CloseIdleConnections()
	q.mu.Lock()
	p, disk := q.port, q.disk
	q.port, q.disk = nil, nil
	q.mu.Unlock()
	if p != nil {
		p.Close()
	}
	if disk != nil {
		disk.dir.Close()
	}
}

// Kill ends everything as the end of the process does: nothing is handed over, and the clients that Open has returned
// reach no machine any more. It is for demonstrations.
func (q *Quorum) Kill() {
	q.die()
	q.Close()
}
