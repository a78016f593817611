// Package conns guards the connections of callers, whatever protocol they speak: how many there are at a time, and TLS.
// It does not know what callers may do: package auth does.
package conns

import (
	"cmp"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Limiter limits how many connections there are at a time, over all listeners that it is given. When all places are taken,
// a newcomer gets that of a connection without a call in progress: of the address that has the most connections, and
// there of the one that has been idle for longest. An address has seven eighths of the places at most (an IPv6 address
// with the rest of its /64), so that nobody takes all.
//
// Where nobody is idle, a few are let in beside, to be told how the node is and nothing else: see ProbesOnly. Others are
// closed at once. That is logged once a minute at most.
//
// Make it with NewLimiter. Its methods are safe for concurrent use.
type Limiter struct {
	places int
	log    *slog.Logger
	began  time.Time

	mu      sync.Mutex // guards what follows
	taken   map[*limitedConn]struct{}
	hosts   map[netip.Prefix]int // how many of these are from there
	probes  map[*limitedConn]struct{}
	evicted int // since that was last said
	refused int // likewise
	said    time.Time
}

const (
	probePlaces  = 64              // for those who get no other
	probesWithin = 2 * time.Second // they have to be done
)

// NewLimiter returns one with so many places; zero or less: one place.
func NewLimiter(places int, log *slog.Logger) *Limiter {
	return &Limiter{
		places: max(1, places), log: log, began: time.Now(),
		taken: map[*limitedConn]struct{}{}, hosts: map[netip.Prefix]int{}, probes: map[*limitedConn]struct{}{},
	}
}

// Counter counts the connections of a listener. It is safe for concurrent use.
type Counter interface {
	Open() int64     // how many there are
	Evicted() uint64 // how many were closed, since it listens, to make room for others
	Refused() uint64 // how many found no place: they were closed at once, or let in for probes only
}

// Limit returns a listener whose connections take places of the limiter until they are closed. It is a Counter.
func (l *Limiter) Limit(inner net.Listener) net.Listener {
	return &limited{Listener: inner, limiter: l}
}

type limited struct {
	net.Listener
	limiter          *Limiter
	open             atomic.Int64
	evicted, refused atomic.Uint64
}

func (l *limited) Open() int64     { return l.open.Load() }
func (l *limited) Evicted() uint64 { return l.evicted.Load() }
func (l *limited) Refused() uint64 { return l.refused.Load() }

func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if v := l.limiter.admit(l, c); v != nil {
			return v, nil
		}
		_ = c.Close() // nothing was sent
	}
}

// admit finds a place for a connection. Nil: there is none.
func (l *Limiter) admit(from *limited, c net.Conn) *limitedConn {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.say()
	v := &limitedConn{Conn: c, limiter: l, from: from, host: hostOf(c.RemoteAddr())}
	v.since.Store(l.now())
	if l.full(v.host) {
		l.makeRoom(v.host)
	}
	switch {
	case !l.full(v.host):
		l.taken[v] = struct{}{}
		l.hosts[v.host]++
	case l.probePlace():
		l.probes[v] = struct{}{}
		v.until = time.AfterFunc(probesWithin, func() { _ = v.Close() })
		l.refuse(from)
	default:
		l.refuse(from)
		return nil
	}
	from.open.Add(1)
	return v
}

// full tells whether there is no place for one more from a host.
func (l *Limiter) full(host netip.Prefix) bool {
	return len(l.taken) >= l.places || l.hasShare(host)
}

// hasShare tells whether a host has as many places as it may.
func (l *Limiter) hasShare(host netip.Prefix) bool { return l.hosts[host] >= share(l.places) }

// makeRoom closes idle connections for one that comes from a host: a 64th of all, so that not everybody who comes has to
// look for them. Those of a host that has no more than the newcomer's are left alone.
func (l *Limiter) makeRoom(host netip.Prefix) {
	own, only := l.hosts[host], l.hasShare(host)
	l.evicted += l.evict(max(1, l.places/64), func(v *limitedConn, rank int) bool {
		return (v.host == host || !only && rank > own) && v.calls.CompareAndSwap(0, gone)
	})
}

// Shed closes an eighth of all connections, because memory runs out, and returns how many: those that are idle before
// others.
func (l *Limiter) Shed() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	most := (len(l.taken) + 7) / 8
	closed := l.evict(most, func(v *limitedConn, _ int) bool { return v.calls.CompareAndSwap(0, gone) })
	return closed + l.evict(most-closed, func(v *limitedConn, _ int) bool { return v.calls.Swap(gone) >= 0 })
}

// evict closes up to most connections that may go, and returns how many: those first whose host has the most, and of one
// host those that have been idle for longest. The rank of a connection is how many its host has when those before it
// are gone.
func (l *Limiter) evict(most int, mayGo func(v *limitedConn, rank int) bool) (closed int) {
	type candidate struct {
		*limitedConn
		since int64
		rank  int
	}
	all := make([]candidate, 0, len(l.taken))
	for v := range l.taken {
		all = append(all, candidate{v, v.since.Load(), 0})
	}
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Compare(a.since, b.since) })
	before := make(map[netip.Prefix]int, len(l.hosts))
	for i, c := range all {
		all[i].rank = l.hosts[c.host] - before[c.host]
		before[c.host]++
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(b.rank, a.rank) })
	for _, c := range all {
		if closed == most {
			break
		}
		if mayGo(c.limitedConn, c.rank) {
			closed++
			l.leave(c.limitedConn)
			_ = c.Conn.Close() // its server sees the end
			c.from.evicted.Add(1)
		}
	}
	return closed
}

// probePlace tells whether there is a place for probes, of which the one that is idle for longest is taken.
func (l *Limiter) probePlace() bool {
	if len(l.probes) < probePlaces {
		return true
	}
	var oldest *limitedConn
	for v := range l.probes {
		if v.calls.Load() == 0 && (oldest == nil || v.since.Load() < oldest.since.Load()) {
			oldest = v
		}
	}
	if oldest == nil || !oldest.calls.CompareAndSwap(0, gone) {
		return false
	}
	l.leave(oldest)
	_ = oldest.Conn.Close()
	return true
}

func (l *Limiter) refuse(from *limited) {
	from.refused.Add(1)
	l.refused++
}

// leave gives a place back, once.
func (l *Limiter) leave(v *limitedConn) {
	_, regular := l.taken[v]
	_, probes := l.probes[v]
	switch {
	case regular:
		delete(l.taken, v)
		if l.hosts[v.host]--; l.hosts[v.host] == 0 {
			delete(l.hosts, v.host)
		}
	case probes:
		delete(l.probes, v)
		v.until.Stop()
	default:
		return
	}
	v.from.open.Add(-1)
}

// say logs what happened since it was last said.
func (l *Limiter) say() {
	if l.evicted+l.refused == 0 || !l.said.IsZero() && time.Since(l.said) < time.Minute {
		return
	}
	l.log.Warn("all places for connections are taken: idle ones are closed to make room, others are refused",
		"limit", l.places, "closed", l.evicted, "refused", l.refused)
	l.evicted, l.refused, l.said = 0, 0, time.Now()
}

func (l *Limiter) now() int64 { return int64(time.Since(l.began)) }
