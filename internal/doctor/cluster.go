package doctor

import (
	"fmt"
	"time"
)

// Store is an etcd cluster elsewhere.
type Store struct {
	Servers []Server
	Read    time.Duration // what a linearizable read took
	Refused string        // why a read or a write is not allowed; empty: both are
	Down    string        // why there is no answer; empty: there is
	Prefix  string
}

// Server is one of its servers.
type Server struct {
	Endpoint string
	Error    string // why it does not answer
	Version  string
	TooOld   string // why it can't be used; empty: it can
	Alarms   []string
	Size     int64 // of its database
	Took     time.Duration
}

const (
	slowRead = 100 * time.Millisecond
	largeDB  = 1 << 30 // half of the quota that etcd has when nobody says otherwise
)

func (s Store) check() (all []Finding) {
	down := 0
	for _, e := range s.Servers {
		f := e.check()
		if e.Error != "" {
			down++
		}
		all = append(all, f...)
	}
	if down > 0 && 2*down < len(s.Servers) { // the others are enough
		for i := range all {
			if all[i].Level == Fail && all[i].Do == doReach {
				all[i].Level = Warn
			}
		}
	}
	switch {
	case s.Down != "":
		all = append(all, Finding{Fail, "etcd", "no answer: " + s.Down, "see etcdctl endpoint status --cluster: more than half of the servers must run and reach each other"})
	case s.Refused != "":
		all = append(all, Finding{
			Fail, "etcd", "it refuses: " + s.Refused,
			fmt.Sprintf("grant the user what it needs: etcdctl role grant-permission ROLE --prefix=true readwrite %s/", s.Prefix),
		})
	case s.Read > slowRead:
		all = append(all, Finding{Warn, "etcd", fmt.Sprintf("keys below %s/ may be read and written; a read takes %v", s.Prefix, s.Read.Round(time.Millisecond)), "look at etcd's disks and network; joining waits for it, giving IDs does not"})
	default:
		all = append(all, ok("etcd", "keys below %s/ may be read and written; a read takes %v", s.Prefix, s.Read.Round(10*time.Microsecond)))
	}
	return all
}

const doReach = "start it, or correct --etcd; with TLS, --etcd-ca, --etcd-cert and --etcd-key must be right, too"

func (e Server) check() (all []Finding) {
	if e.Error != "" {
		return []Finding{{Fail, e.Endpoint, "no answer: " + e.Error, doReach}}
	}
	if e.TooOld != "" {
		all = append(all, Finding{Fail, e.Endpoint, e.TooOld, "upgrade it"})
	} else {
		all = append(all, ok(e.Endpoint, "etcd %s, a database of %s, answers in %v", e.Version, bytes(e.Size), e.Took.Round(10*time.Microsecond)))
	}
	for _, alarm := range e.Alarms {
		all = append(all, Finding{
			Fail, e.Endpoint, "it raises an alarm: " + alarm,
			"NOSPACE: compact and defragment it, or raise its quota, then etcdctl alarm disarm; CORRUPT: replace the member",
		})
	}
	if e.Size > largeDB {
		all = append(all, Finding{Warn, e.Endpoint, "its database has " + bytes(e.Size), "compact it (--auto-compaction-retention) and defragment it, before it reaches its quota, by default 2 GiB"})
	}
	return all
}

// Nodes is what the store knows of the default sequencer's node IDs.
type Nodes struct {
	NodeIDs  int64
	Live     int           // that have a holder now
	Members  int           // whose pulse is there
	Horizon  time.Duration // the latest that a holder has written down, from now by this clock
	Furthest time.Duration // the latest of all
	Window   time.Duration
}

// maxSkew is how far ahead of the others a clock may be.
const maxSkew = 10 * time.Second

func (n Nodes) check() (all []Finding) {
	all = append(all, ok("members", "%d alive", n.Members))
	free := n.NodeIDs - int64(n.Live)
	found := fmt.Sprintf("%d of %d are free in the default sequencer", free, n.NodeIDs)
	const more = "a layout with more bits for nodes, in a new sequencer; or fewer nodes; with --wait nodes stand in line"
	switch {
	case free <= 0:
		all = append(all, Finding{Fail, "node IDs", found, more})
	case free*10 < n.NodeIDs:
		all = append(all, Finding{Warn, "node IDs", found, more})
	default:
		all = append(all, ok("node IDs", "%s", found))
	}
	// Who lives writes down its horizon every third of its window: it never lies in the past.
	switch latest := max(n.Horizon, n.Furthest); {
	case n.Live > 0 && n.Horizon < -maxSkew:
		all = append(all, Finding{
			Fail, "clocks", fmt.Sprintf("this machine's clock is ahead of all other nodes' by %v or more", (-n.Horizon).Round(time.Second)),
			"set it right: the others would refuse this node",
		})
	case latest > 3*n.Window+maxSkew:
		all = append(all, Finding{
			Warn, "clocks", fmt.Sprintf("a node ID was used until %v from now, by this machine's clock", latest.Round(time.Second)),
			"this clock is behind, or another was ahead: set them right; that node ID is left alone until then",
		})
	case n.Live > 0:
		all = append(all, ok("clocks", "this machine's agrees with the other nodes'"))
	}
	return all
}

// Node is the node that runs here already.
type Node struct {
	URL   string
	Why   string // it is not ready; empty: it is
	Over  bool   // it is not, as the layout of the default sequencer has no IDs for this time
	Dead  int    // members that are in the cluster and whose pulse is gone
	Free  int64  // node IDs of the default sequencer; negative: not known
	Alive int    // members; negative: not known
}

func (n Node) check() (all []Finding) {
	switch {
	case n.Over:
		all = append(all, Finding{Fail, "node", n.URL + " is not ready: " + n.Why, "if this machine's clock is right, take IDs of another sequencer: firn sequencer create"})
	case n.Why != "":
		all = append(all, Finding{Fail, "node", n.URL + " is not ready: " + n.Why, "its log says more; it goes on by itself when the reason is gone"})
	default:
		all = append(all, ok("node", "%s is ready", n.URL))
	}
	if n.Alive < 0 {
		return all
	}
	if n.Dead > 0 {
		all = append(all, Finding{Warn, "members", fmt.Sprintf("%d alive, %d whose pulse is gone", n.Alive, n.Dead), "they are taken out within --ttl; if not, see firn cluster status"})
	} else {
		all = append(all, ok("members", "%d alive", n.Alive))
	}
	return all
}
