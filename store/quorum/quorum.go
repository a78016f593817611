// Package quorum is a store that its users keep themselves: one, three or five machines each run an
// etcd server in their process, and together they are one store that survives the loss of any
// minority of them. Further processes use it as clients and keep nothing.
//
// The machines find out by themselves who forms the cluster, who joins it and who has lost its disk;
// see docs/quorum.md for the rules, and package plan for them as pure functions. All traffic between
// machines uses one port, and mutual TLS 1.3 with certificates that each process makes from a key.
package quorum

import (
	"context"
	"io"
	"log/slog"
	"time"

	"google.golang.org/grpc"

	"github.com/firn-id/firn/store"
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

	// KeyFile holds the keys that all machines share, see NewKey. Empty: CAFile, CertFile and KeyOfCert are given, or
	// all Machines have loopback addresses, and the key is one that this user's processes on this machine share.
	KeyFile string

	// CAFile, CertFile and CertKeyFile are PEM files of an authority of one's own that replace the key: whoever has a
	// certificate of this authority is admitted. All or none.
	CAFile, CertFile, CertKeyFile string

	// Dir is the data directory, see etcdembed.Config. Only a process that is one of Machines uses it.
	Dir string

	// Window is how far ahead of their clocks the members of the cluster reserve time, and so how long processes that
	// know an earlier, lost cluster may go on. Zero: 30 s.
	Window time.Duration

	// Version of the program, for Status.
	Version string

	// DialOptions are those of the client, see etcdstore.Config.
	DialOptions []grpc.DialOption

	// Logger gets what happens to the quorum. Nil: no log.
	Logger *slog.Logger

	// Fatal is as in etcdembed.Config.
	Fatal func(error)
}

// Status is what a process knows of the quorum at one moment.
type Status struct {
	Cluster  string    `json:"cluster"`           // identity of the cluster; empty: none is formed, as far as this process knows
	Self     string    `json:"self"`              // address of this machine; empty: it is a client
	Waiting  string    `json:"waiting,omitempty"` // what this process waits for before it can use the store; empty: nothing
	Majority bool      `json:"majority"`          // a majority of the voters can be reached
	Machines []Machine `json:"machines"`          // ordered by address
}

// Machine is one machine of the quorum, as the process that was asked sees it.
type Machine struct {
	Address   string        `json:"address"`
	Err       string        `json:"error,omitempty"` // why it can't be reached; the other fields are then what was known last
	Role      Role          `json:"role"`
	Leader    bool          `json:"leader"`
	Index     uint64        `json:"index"`           // the last entry of etcd's log that it has applied
	Behind    uint64        `json:"behind"`          // how many entries fewer than the leader
	Size      int64         `json:"size"`            // bytes of its database
	InUse     int64         `json:"in_use"`          // bytes of it that hold data
	LogSize   int64         `json:"log_size"`        // bytes of its log
	Version   string        `json:"version"`         // of the program
	Etcd      string        `json:"etcd"`            // version of the etcd server in it
	Clock     time.Duration `json:"clock_ns"`        // how far its clock is ahead of this machine's, give or take half of RoundTrip
	RoundTrip time.Duration `json:"rtt_ns"`          // how long it took to answer
	Sync      time.Duration `json:"fsync_ns"`        // how long its disk took to sync the latest small write
	Doing     string        `json:"doing,omitempty"` // what it waits for or is at, in words; empty: nothing
}

// Role is what a machine is to the quorum.
type Role string

// The roles of a machine.
const (
	Voter   Role = "voter"
	Learner Role = "learner" // catches up, and becomes a voter by itself
	Empty   Role = "empty"   // keeps no data yet
	Removed Role = "removed" // was one of the quorum, and is not any more
)

// Store is a client of the quorum. Its Close ends the client, and not the server in this process.
type Store interface {
	store.Store
	Close() error
}

// Quorum is this process's part in a quorum. Make it with New, and call Start once. Its methods are safe for
// concurrent use.
type Quorum struct{}

// New checks a configuration and reads the key or the certificates. It does not listen. Every error is about the
// configuration.
func New(c Config) (*Quorum, error) { panic("not built yet") }

// Start listens, if this process is one of the machines, and begins to find or form the cluster. It returns an error
// when it can't listen or can't use the data directory.
func (q *Quorum) Start() error { panic("not built yet") }

// Addr returns the host:port that it listens on; empty: it is a client.
func (q *Quorum) Addr() string { panic("not built yet") }

// Open returns a client of the store once the cluster is there and, if this process is one of its machines, the
// server in it has caught up and is a voter. It waits for up to a second, and then returns store.ErrUnavailable and
// what it waits for; it goes on by itself, and another call may succeed. Any other error lasts: this machine's data
// belongs to another cluster, or its key is not that of the others.
func (q *Quorum) Open(ctx context.Context) (Store, error) { panic("not built yet") }

// Status asks every machine, for up to two seconds. It needs no majority.
func (q *Quorum) Status(ctx context.Context) Status { panic("not built yet") }

// Replace has another machine take the place of one that is lost for good: it is told to join when it is started with
// an address of its own, catches up and becomes a voter. Errors: one that says which address is wrong and which ones
// there are; store.ErrUnavailable without a majority.
func (q *Quorum) Replace(ctx context.Context, lost, instead string) error { panic("not built yet") }

// Remove takes machines out of the quorum, so that 1 or 3 are left. Those removed go on as clients. Errors: as of
// Replace.
func (q *Quorum) Remove(ctx context.Context, machines ...string) error { panic("not built yet") }

// Backup writes a backup of the store for Restore. Errors: store.ErrUnavailable, or that of w.
func (q *Quorum) Backup(ctx context.Context, w io.Writer) error { panic("not built yet") }

// Close hands leadership over if this process has it, and ends the server and everything else.
func (q *Quorum) Close() { panic("not built yet") }

// RestoreConfig says what to restore, and where to.
type RestoreConfig struct {
	Backup string        // a file written by Backup, or the data directory of a machine that nobody uses
	Dir    string        // the data directory to make; it must be empty or not exist
	Window time.Duration // see Config
	Key    string        // KeyFile, see Config; with it, Restore asks the machines that the backup knows whether they are alive
	Logger *slog.Logger
}

// Restored says what Restore found and did.
type Restored struct {
	Former    string    // identity of the cluster that the backup is from
	Cluster   string    // that of the new one
	Machines  []string  // those that the backup knows
	Silent    []string  // those of them that could not be asked whether they are alive
	NotBefore time.Time // no node ID is used below this instant
}

// Restore makes a data directory from a backup, for the first machine of a new cluster. An error is returned when a
// machine of the former cluster is alive, when Dir is not empty, or when the backup is damaged; Dir is then as before.
func Restore(ctx context.Context, c RestoreConfig) (Restored, error) { panic("not built yet") }
