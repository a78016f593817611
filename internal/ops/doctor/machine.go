package doctor

import (
	"fmt"
	"io/fs"
	"time"

	"github.com/firn-id/firn/internal/base/space"
	"github.com/firn-id/firn/internal/base/unixsocket"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/calls"
)

// Clock is what the kernel knows about this machine's clock.
type Clock struct {
	Synchronised bool
	MaxError     time.Duration // the kernel's estimate of the largest error
}

// poorClock is a clock error that people would notice in IDs.
const poorClock = time.Second

func (c Clock) check() Finding {
	switch {
	case !c.Synchronised:
		return Warn.about("clock", "not synchronised, according to the kernel").
			do("run chrony, ntpd or systemd-timesyncd (for a container or a virtual machine: on its host); a wrong " +
				"clock causes no duplicates, but wrong times in IDs, and other nodes may refuse this node")
	case c.MaxError > poorClock:
		return Warn.about("clock", "synchronised, but it may be wrong by %v", c.MaxError.Round(time.Millisecond)).
			do("check its time sources: chronyc sources, or timedatectl timesync-status")
	}
	return OK.about("clock", "synchronised, to within %v", c.MaxError.Round(time.Millisecond))
}

// Layout is the lifetime of the default sequencer's layout.
type Layout struct {
	Name  string
	Until time.Time // when its time ends
}

// sequencer is as much of the default sequencer as its layout tells.
func (l Layout) sequencer() calls.StatusSequencer {
	return calls.StatusSequencer{Name: peer.DefaultSequencer, Until: l.Until}
}

// Certificate is a certificate in a file, with its key.
type Certificate struct {
	Flag    string // that names the file
	Path    string
	Until   time.Time
	Key     string      // the file with the key
	KeyMode fs.FileMode // of that file
}

// soon is how long before its end an operator should renew a certificate.
const soon = 30 * 24 * time.Hour

func (c Certificate) check(now time.Time) (all []Finding) {
	const renew = "renew it; firn reads the new one without a restart"
	left := c.Until.Sub(now)
	day := c.Until.UTC().Format(time.DateOnly)
	switch {
	case left <= 0:
		all = append(all, Fail.about(c.Flag, "%s expired on %s", c.Path, day).do(renew))
	case left < soon:
		all = append(all, Warn.about(c.Flag, "%s expires in %s, on %s", c.Path, days(left), day).do(renew))
	default:
		all = append(all, OK.about(c.Flag, "%s is good until %s", c.Path, day))
	}
	if c.KeyMode.Perm()&0o007 != 0 {
		all = append(all, Warn.about(c.Flag, "everybody on this machine can use the key %s, mode %04o", c.Key,
			c.KeyMode.Perm()).do("chmod o= "+c.Key))
	}
	return all
}

// OpenFiles is this process's limit of open files.
type OpenFiles struct {
	Limit       uint64
	Connections int64 // most connections of callers
}

// beside is how many files are open beside those of callers: connections to etcd, and its own files.
const beside = 512

func (o OpenFiles) check() Finding {
	needed := uint64(o.Connections) + beside
	if o.Limit < needed {
		return Warn.about("open files", "at most %d; %d connections of callers need %d", o.Limit,
			o.Connections, needed).
			do(fmt.Sprintf("ulimit -n %d, or LimitNOFILE=%[1]d in the unit, or a smaller --max-connections; the unit "+
				"of the packages has its own limit", needed))
	}
	return OK.about("open files", "at most %d, %d are needed", o.Limit, needed)
}

// DataDir is the data directory of a quorum, of one or several machines.
type DataDir struct {
	Path   string
	System error // why this system can't keep data; nil: it can
	Absent bool
	InUse  bool   // a process uses it
	Alone  error  // why a node must not use it without --quorum; nil: it may, or there is a quorum
	Place  error  // why it is refused: it belongs elsewhere; nil: it belongs here
	Error  string // why it can't be used; empty: it can
	Owner  string
	Mode   fs.FileMode
	Full   bool          // Error says that the disk is full
	Room   *space.Room   // on the disk; nil: unknown
	Fsync  time.Duration // median time of a write to the disk; 0: not measured
}

// slowFsync is how long the median of several writes to a disk may take. Of the single write that a machine of the
// quorum tells calls.Problems bears more.
const slowFsync = 50 * time.Millisecond

func (d DataDir) check() (all []Finding) {
	const about = "data directory"
	switch {
	case d.System != nil:
		return []Finding{failed(d.System)}
	case d.Full:
		return []Finding{Fail.about("disk", "%s: %s", d.Path, d.Error).
			do("free some space, or inodes; a node whose data directory is full ends, or can't start")}
	case d.Error != "":
		return []Finding{Fail.about(about, "%s: %s", d.Path, d.Error).
			do("make the user of firn its owner, as with: chown -R firn: " + d.Path)}
	case d.Absent:
		all = append(all, OK.about(about, "%s is not there yet; firn serve makes it", d.Path))
	case d.Mode.Perm()&0o077 != 0:
		all = append(all, Warn.about(about, "%s, mode %04o: other users can access it", d.Path, d.Mode.Perm()).
			do("chmod 700 "+d.Path))
	case d.InUse:
		all = append(all, OK.about(about, "%s of %s, in use by a node", d.Path, d.Owner))
	default:
		all = append(all, OK.about(about, "%s of %s", d.Path, d.Owner))
	}
	for _, refused := range []error{d.Alone, d.Place} {
		if refused != nil {
			all = append(all, failed(refused))
		}
	}
	if d.Room != nil {
		all = append(all, OK.about("disk", "%s are free", bytes(d.Room.Free)))
	}
	switch {
	case d.Fsync > slowFsync:
		all = append(all, Warn.about("disk", "a write takes %v", d.Fsync.Round(time.Millisecond)).
			do("use a faster disk, or one that is not shared: joining and renewing node IDs wait for each write"))
	case d.Fsync > 0:
		all = append(all, OK.about("disk", "a write takes %v", d.Fsync.Round(10*time.Microsecond)))
	}
	return all
}

// Port is the state of an address to listen on.
type Port struct {
	Flag, Address string
	Passed        bool // systemd listens, and passes the socket to the node
	InUse         bool
	Firn          bool   // by a firn node
	Error         string // why no process can listen there, if it is not in use
}

func (p Port) check() Finding {
	switch {
	case p.Passed:
		return OK.about(p.Flag, "%s: systemd listens, and passes the socket to the node", p.Address)
	case p.Error != "" && unixsocket.Is(p.Address):
		return Fail.about(p.Flag, "%s: %s", p.Address, p.Error).
			do("choose a path in a directory that this user can write, such as /run/firn")
	case p.Error != "":
		return Fail.about(p.Flag, "%s: %s", p.Address, p.Error).
			do("choose another address with --" + p.Flag + "; ports below 1024 need CAP_NET_BIND_SERVICE")
	case p.InUse && p.Firn:
		return OK.about(p.Flag, "%s: a node serves there", p.Address)
	case p.InUse:
		return Fail.about(p.Flag, "%s: another program listens there", p.Address).
			do("end it (ss -ltnxp shows it), or choose another address with --" + p.Flag)
	}
	return OK.about(p.Flag, "%s is free", p.Address)
}
