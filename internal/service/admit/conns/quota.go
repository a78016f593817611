package conns

import (
	"net"
	"net/netip"
	"sync"

	"github.com/firn-id/firn/internal/base/host"
)

// Quota limits how many of something there are at a time. Callers from one address (an IPv6 address with the rest of
// its /64) can have seven eighths of all, and at least one. Make it with NewQuota. Its methods are safe for concurrent
// use.
type Quota struct {
	most int

	mu    sync.Mutex // guards what follows
	taken int
	hosts map[netip.Prefix]int
}

// NewQuota returns a Quota of so many.
func NewQuota(most int) *Quota { return &Quota{most: most, hosts: map[netip.Prefix]int{}} }

// Take takes one for a caller from an address, and tells whether there was one left. Give gives it back.
func (q *Quota) Take(from net.Addr) bool {
	at := host.Of(from)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.taken >= q.most || q.hosts[at] >= share(q.most) {
		return false
	}
	q.taken++
	q.hosts[at]++
	return true
}

// Give gives one back that a caller from the address had taken.
func (q *Quota) Give(from net.Addr) {
	at := host.Of(from)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.taken--
	if q.hosts[at]--; q.hosts[at] == 0 {
		delete(q.hosts, at)
	}
}

// share is how many of all one host can have.
func share(all int) int { return all - all/8 }
