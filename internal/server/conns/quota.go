package conns

import (
	"net"
	"net/netip"
	"sync"
)

// Quota is how many of something there may be at a time, of which callers from one address have seven eighths at most (an
// IPv6 address with the rest of its /64), and one at least. Make it with NewQuota. Its methods are safe for concurrent
// use.
type Quota struct {
	most int

	mu    sync.Mutex // guards what follows
	taken int
	hosts map[netip.Prefix]int
}

// NewQuota returns one of so many.
func NewQuota(most int) *Quota { return &Quota{most: most, hosts: map[netip.Prefix]int{}} }

// Take takes one for who comes from an address, and tells whether there was one. It is to be given back with Give.
func (q *Quota) Take(from net.Addr) bool {
	host := hostOf(from)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.taken >= q.most || q.hosts[host] >= share(q.most) {
		return false
	}
	q.taken++
	q.hosts[host]++
	return true
}

// Give gives one back that was taken by who came from the address.
func (q *Quota) Give(from net.Addr) {
	host := hostOf(from)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.taken--
	if q.hosts[host]--; q.hosts[host] == 0 {
		delete(q.hosts, host)
	}
}

// share is how many of all one host has at most.
func share(all int) int { return all - all/8 }

// hostOf is where somebody comes from; the zero value: it can't be told.
func hostOf(a net.Addr) netip.Prefix {
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
