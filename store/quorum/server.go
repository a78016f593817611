package quorum

import (
	"net"
	"sync"
	"time"

	"github.com/firn-id/firn/store/etcdstore"
	"github.com/firn-id/firn/store/internal/etcdserver"
)

const (
	lookEvery = time.Second      // how often a machine looks at the others while its server runs
	keptAfter = 10 * time.Second // when what a server has applied is taken to be on its disk
	doWithin  = 5 * time.Second  // how long a change of the members may take

	// leaderlessFor is how long a server has clients without a leader. An election takes a moment; after that, the
	// others may have a leader that they alone can reach, and clients are to go to them.
	leaderlessFor = 2 * time.Second
)

// server is an etcd server of the quorum in this process.
type server struct {
	*etcdserver.Server
	local   *etcdstore.Store // a client of this server alone
	clients connections      // of other clients

	leadsSince time.Time // zero: it does not lead; belongs to serve

	mu      sync.Mutex // guards what follows
	ready   bool       // it is a voter, and has applied what was committed when it began
	applied []uint64   // each second, the oldest first; up to keptAfter
	known   record     // as this server knows it
}

// connections can all be closed at once. The zero value is ready to use.
type connections struct {
	mu     sync.Mutex
	open   map[net.Conn]bool
	closed bool // and so are new ones
}

// add returns false if all are closed.
func (cs *connections) add(c net.Conn) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.open == nil {
		cs.open = map[net.Conn]bool{}
	}
	cs.open[c] = true
	return !cs.closed
}

func (cs *connections) remove(c net.Conn) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	delete(cs.open, c)
}

func (cs *connections) close() {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.closed = true
	for c := range cs.open {
		_ = c.Close() // its client connects to another server
	}
}

func (cs *connections) reopen() {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.closed = false
}

// isReady reports whether the server is a voter that has caught up.
func (s *server) isReady() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready
}

// running reports whether the server is one of a cluster that has a leader, and so a majority, and knows who is to keep
// it.
func (s *server) running() bool { return s.Leader() != 0 && len(s.record().Machines) > 0 }

// votes reports whether the server is a voter.
func (s *server) votes() bool {
	m := s.Cluster().Member(s.MemberID()) // etcd's own IsLearner ends the process if it was removed
	return m != nil && !m.IsLearner
}

// sample notes how far the server is now.
func (s *server) sample() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.applied) > int(keptAfter/lookEvery) {
		s.applied = s.applied[1:]
	}
	s.applied = append(s.applied, s.AppliedIndex())
}

// leads reports whether the server leads and the orders of a former leader are over: what it knows of the members is
// then what it decides on.
func (s *server) leads(members int) bool {
	if s.Leader() != s.MemberID() {
		s.leadsSince = time.Time{}
		return false
	}
	if s.leadsSince.IsZero() {
		s.leadsSince = time.Now()
	}
	return members == 1 || time.Since(s.leadsSince) > doWithin
}

// confirmed adds to what this machine saw of the others what they have confirmed to the server here, if that leads.
func (s *server) confirmed(saw map[string]uint64) map[string]uint64 {
	confirmed := s.Confirmed()
	for _, m := range s.members() {
		if index := confirmed[m.ID]; index > saw[m.Address] && m.ID != uint64(s.MemberID()) {
			if saw == nil {
				saw = map[string]uint64{}
			}
			saw[m.Address] = index
		}
	}
	return saw
}

// kept is the index up to which the server has its log on disk for sure.
func (s *server) kept() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.applied[0]
}

// openToClients lets clients connect while there is a leader, and closes their connections once there has been none for
// leaderlessFor. It takes when there was one last, and returns when that is now.
func (s *server) openToClients(led time.Time) time.Time {
	switch {
	case s.Leader() != 0:
		s.clients.reopen()
		return time.Now()
	case time.Since(led) >= leaderlessFor:
		s.clients.close()
	}
	return led
}
