package calls

import (
	"context"
	"net/netip"
	"slices"
	"sync"

	"github.com/firn-id/firn/internal/service/admit/auth"
)

// shares divides the bytes that undelivered answers may take. There is always room for one more caller: the more
// a caller holds, the more it must leave free. Make it with newShares.
type shares struct {
	mu          sync.Mutex // guards what follows
	free        int64
	callers     map[party]int64 // bytes held by each, more than 0
	connections map[string]int64
	waiting     []*claim // the oldest first
}

// party identifies a caller: by its token, or without one by its network address.
type party struct {
	token   string
	network netip.Prefix
}

// claim is a number of bytes that a caller holds or waits for.
type claim struct {
	caller     party
	connection string // the address of its other end
	size       int64
	granted    chan struct{}
	released   bool // guarded by the shares
}

// maxWaiting is the most claims that wait at a time: only callers that already hold much wait.
const maxWaiting = 1000

func newShares(size int64) *shares {
	return &shares{free: size, callers: map[party]int64{}, connections: map[string]int64{}}
}

// partyOf returns the party of a caller at host:port; all without a valid address are one. An IPv6 party is a
// /64.
func partyOf(who *auth.Caller, at string) party {
	if name := who.Name(); name != "" {
		return party{token: name}
	}
	from, err := netip.ParseAddrPort(at)
	if err != nil {
		return party{}
	}
	address, bits := from.Addr().Unmap().WithZone(""), 64
	if address.Is4() {
		bits = 32
	}
	network, _ := address.Prefix(bits) // the address has at least as many
	return party{network: network}
}

// hold takes size bytes until release is called; a second release does nothing. It waits for others to release
// theirs until ctx ends, and returns the error of ctx. It returns ErrCrowded when too many wait.
func (s *shares) hold(ctx context.Context, caller party, connection string, size int64) (release func(), err error) {
	c := &claim{caller: caller, connection: connection, size: size}
	s.mu.Lock()
	switch {
	case s.fits(c):
		s.take(c)
		s.mu.Unlock()
	case len(s.waiting) >= maxWaiting:
		s.mu.Unlock()
		return nil, ErrCrowded
	default:
		c.granted = make(chan struct{})
		s.waiting = append(s.waiting, c)
		s.mu.Unlock()
		if err := s.wait(ctx, c); err != nil {
			return nil, err
		}
	}
	return func() { s.release(c) }, nil
}

func (s *shares) wait(ctx context.Context, c *claim) error {
	select {
	case <-c.granted:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.waiting, c)
	if i < 0 {
		return nil // granted meanwhile
	}
	s.waiting = slices.Delete(s.waiting, i, i+1)
	return ctx.Err()
}

// fits reports whether a claim leaves enough for others. With s bytes in all, n connections of one caller that
// take all they can end at s/(2n+8) each: a lone connection has a tenth at most, a caller half. One more
// connection gets as much as each of those before it, and another caller more.
func (s *shares) fits(c *claim) bool {
	return s.callers[c.caller]+8*s.connections[c.connection]+c.size <= s.free
}

func (s *shares) take(c *claim) {
	s.free -= c.size
	s.callers[c.caller] += c.size
	s.connections[c.connection] += c.size
}

func (s *shares) release(c *claim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.released {
		return
	}
	c.released = true
	s.free += c.size
	if s.callers[c.caller] -= c.size; s.callers[c.caller] == 0 {
		delete(s.callers, c.caller)
	}
	if s.connections[c.connection] -= c.size; s.connections[c.connection] == 0 {
		delete(s.connections, c.connection)
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(w *claim) bool {
		if !s.fits(w) {
			return false
		}
		s.take(w)
		close(w.granted)
		return true
	})
}

// try is hold without waiting: it is not ok when a claim does not fit now.
func (s *shares) try(caller party, connection string, size int64) (release func(), ok bool) {
	c := &claim{caller: caller, connection: connection, size: size}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.fits(c) {
		return nil, false
	}
	s.take(c)
	return func() { s.release(c) }, true
}
