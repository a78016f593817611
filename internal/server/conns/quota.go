package conns

import (
	"net"
	"net/netip"
	"sync"
)

// Quota limits how many of something there are at a time. Callers from one address (an IPv6 address with the rest of its
// /64) can have seven eighths of all, and at least one. Make it with NewQuota. Its methods are safe for concurrent use.
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
	host := HostOf(from)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.taken >= q.most || q.hosts[host] >= share(q.most) {
		return false
	}
	q.taken++
	q.hosts[host]++
	return true
}

// Give gives one back that a caller from the address had taken.
func (q *Quota) Give(from net.Addr) {
	host := HostOf(from)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.taken--
	if q.hosts[host]--; q.hosts[host] == 0 {
		delete(q.hosts, host)
	}
}

// share is how many of all one host can have.
func share(all int) int { return all - all/8 }

// HostOf returns the host of an address, an IPv6 address with the rest of its /64; the zero value: it has none.
func HostOf(a net.Addr) netip.Prefix {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	addr := tcp.AddrPort().Addr().Unmap().WithZone("")
	bits := 64
	if addr.Is4() {
		bits = 32
	}
	p, _ := addr.Prefix(bits) // they all have as many
	return p
}
