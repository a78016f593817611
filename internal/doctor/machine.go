package doctor

import (
	"fmt"
	"io/fs"
	"time"
)

// Clock is what the kernel knows of this machine's clock.
type Clock struct {
	Synchronised bool
	MaxError     time.Duration // by which it is wrong at the most, as it is estimated
}

// poorClock is an error of a clock that those who look at IDs would notice.
const poorClock = time.Second

func (c Clock) check() Finding {
	switch {
	case !c.Synchronised:
		return Finding{
			Warn, "clock", "nothing keeps it right, as far as the kernel knows",
			"run chrony, ntpd or systemd-timesyncd, in a container or a virtual machine on its host; a wrong clock makes no duplicates, but the times in the IDs are wrong, and others may refuse this node",
		}
	case c.MaxError > poorClock:
		return Finding{
			Warn, "clock", fmt.Sprintf("kept right, but it may be wrong by %v", c.MaxError.Round(time.Millisecond)),
			"look at the time sources: chronyc sources, or timedatectl timesync-status",
		}
	}
	return ok("clock", "kept right, to within %v", c.MaxError.Round(time.Millisecond))
}

// Layout is the time of the default sequencer's layout.
type Layout struct {
	Name  string
	Until time.Time // when its time ends
	Now   time.Time
}

func (l Layout) check() Finding {
	left := l.Until.Sub(l.Now)
	if left < 365*24*time.Hour {
		return Finding{
			Warn, "layout", fmt.Sprintf("%s: its time ends in %s, on %s", l.Name, days(left), l.Until.UTC().Format(time.DateOnly)),
			"prepare a sequencer with a later epoch or more bits of time; after that day there are no more IDs of this one",
		}
	}
	return ok("layout", "%s, until %s", l.Name, l.Until.UTC().Format(time.DateOnly))
}

// Certificate is one that a file holds, with its key.
type Certificate struct {
	Flag    string // that names the file
	Path    string
	Until   time.Time
	Now     time.Time
	Key     string      // the file with the key; empty: there is none
	KeyMode fs.FileMode // of that file
}

// soon is how long before the end of a certificate it is to be renewed.
const soon = 30 * 24 * time.Hour

func (c Certificate) check() (all []Finding) {
	const renew = "renew it; firn reads it again by itself"
	left := c.Until.Sub(c.Now)
	day := c.Until.UTC().Format(time.DateOnly)
	switch {
	case left <= 0:
		all = append(all, Finding{Fail, c.Flag, fmt.Sprintf("%s expired on %s", c.Path, day), renew})
	case left < soon:
		all = append(all, Finding{Warn, c.Flag, fmt.Sprintf("%s expires in %s, on %s", c.Path, days(left), day), renew})
	default:
		all = append(all, ok(c.Flag, "%s is good until %s", c.Path, day))
	}
	if c.Key != "" && c.KeyMode.Perm()&0o007 != 0 {
		all = append(all, Finding{Warn, c.Flag, fmt.Sprintf("everybody on this machine can use the key %s, mode %04o", c.Key, c.KeyMode.Perm()), "chmod o= " + c.Key})
	}
	return all
}

// OpenFiles is the limit of this process.
type OpenFiles struct {
	Limit       uint64
	Connections int64 // that callers may have
}

// beside is how many files are open beside those of callers: to etcd, and its own.
const beside = 512

func (o OpenFiles) check() Finding {
	needed := uint64(o.Connections) + beside
	if o.Limit < needed {
		return Finding{
			Warn, "open files", fmt.Sprintf("at most %d; %d connections of callers need %d", o.Limit, o.Connections, needed),
			fmt.Sprintf("ulimit -n %d, or LimitNOFILE=%[1]d in the unit, or a smaller --max-connections; the unit of the packages has its own limit", needed),
		}
	}
	return ok("open files", "at most %d, %d are needed", o.Limit, needed)
}

// DataDir is where an etcd inside keeps its data.
type DataDir struct {
	Path   string
	Absent bool
	InUse  bool   // a process has it
	Error  string // why it can't be used; empty: it can
	Owner  string
	Mode   fs.FileMode
	Free   int64         // bytes; negative: not known
	Fsync  time.Duration // that a write takes until it is on the disk, usually; 0: not measured
}

const (
	fewBytes   = 1 << 30
	tooFew     = 100 << 20
	slowFsync  = 50 * time.Millisecond
	aboutData  = "data directory"
	embeddedDo = "give the directory to the user who runs firn, as with: chown -R firn: "
)

func (d DataDir) check() (all []Finding) {
	switch {
	case d.Error != "":
		return []Finding{{Fail, aboutData, d.Path + ": " + d.Error, embeddedDo + d.Path}}
	case d.Absent:
		all = append(all, ok(aboutData, "%s is not there yet; firn serve makes it", d.Path))
	case d.Mode.Perm()&0o077 != 0:
		all = append(all, Finding{Warn, aboutData, fmt.Sprintf("%s, mode %04o: others can get at it", d.Path, d.Mode.Perm()), "chmod 700 " + d.Path})
	case d.InUse:
		all = append(all, ok(aboutData, "%s of %s, in use by a node", d.Path, d.Owner))
	default:
		all = append(all, ok(aboutData, "%s of %s", d.Path, d.Owner))
	}
	const room = "make room; without, the etcd inside ends the process"
	switch {
	case d.Free < 0: // not known
	case d.Free < tooFew:
		all = append(all, Finding{Fail, "disk", bytes(d.Free) + " are free", room})
	case d.Free < fewBytes:
		all = append(all, Finding{Warn, "disk", bytes(d.Free) + " are free", room})
	default:
		all = append(all, ok("disk", "%s are free", bytes(d.Free)))
	}
	switch {
	case d.Fsync > slowFsync:
		all = append(all, Finding{Warn, "disk", fmt.Sprintf("a write takes %v", d.Fsync.Round(time.Millisecond)), "use a disk that is faster, or not shared: joining and extending wait for each write"})
	case d.Fsync > 0:
		all = append(all, ok("disk", "a write takes %v", d.Fsync.Round(10*time.Microsecond)))
	}
	return all
}

// Port is an address to listen on.
type Port struct {
	Flag, Address string
	InUse         bool
	Firn          bool   // by a firn
	Error         string // why nobody can listen there, but for its being in use
}

func (p Port) check() Finding {
	about := p.Flag
	switch {
	case p.Error != "":
		return Finding{Fail, about, p.Address + ": " + p.Error, "take another address with --" + p.Flag + "; ports below 1024 need CAP_NET_BIND_SERVICE"}
	case p.InUse && p.Firn:
		return ok(about, "%s: a node serves there", p.Address)
	case p.InUse:
		return Finding{Fail, about, p.Address + ": another program listens there", "end it (ss -ltnp says which it is), or take another address with --" + p.Flag}
	}
	return ok(about, "%s is free", p.Address)
}
