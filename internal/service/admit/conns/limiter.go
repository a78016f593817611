// Package conns guards the connections of callers, whatever protocol they speak: how many there are at a time, and TLS.
// It does not know what callers may do: package auth does.
package conns

import (
	"cmp"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn/internal/base/host"
)

// Limiter limits how many connections are open at a time over all listeners that share it. At the limit a new
// connection replaces one without a call in progress: the one idle for longest, of the address with the most
// connections. One address (an IPv6 address with the rest of its /64) can have at most seven eighths of all, so that
// nobody takes all.
//
// If none is idle, a few more are accepted for health checks only, see ProbesOnly, and others are closed at once. That
// is logged at most once a minute.
//
// Make it with NewLimiter. Its methods are safe for concurrent use.
type Limiter struct {
	places int
	log    *slog.Logger
	began  time.Time

	mu      sync.Mutex // guards what follows
	taken   map[*limitedConn]struct{}
	hosts   map[netip.Prefix]int // how many of taken are from each
	probes  map[*limitedConn]struct{}
	evicted int // since logged
	refused int // since logged
	logged  time.Time
}

const (
	probePlaces  = 64
	probesWithin = 2 * time.Second // then a probe's connection is closed
)

// NewLimiter returns a Limiter of so many connections; zero or less: of one.
func NewLimiter(places int, log *slog.Logger) *Limiter {
	return &Limiter{
		places: max(1, places), log: log, began: time.Now(),
		taken: map[*limitedConn]struct{}{}, hosts: map[netip.Prefix]int{}, probes: map[*limitedConn]struct{}{},
	}
}

// Counter counts the connections of a listener. It is safe for concurrent use.
type Counter interface {
	Open() int64     // now
	Evicted() uint64 // closed so far to make room for others
	Refused() uint64 // so far closed at once, or accepted for health checks only
}

// Limit returns a listener whose connections count until they are closed. It is a Counter.
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

// admit finds a place for a connection, or returns nil.
func (l *Limiter) admit(from *limited, c net.Conn) *limitedConn {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.report()
	v := &limitedConn{Conn: c, limiter: l, from: from, host: host.Of(c.RemoteAddr())}
	v.since.Store(l.now())
	limitUnread(c, maxUnread)
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

func (l *Limiter) hasShare(host netip.Prefix) bool { return l.hosts[host] >= share(l.places) }

// makeRoom closes idle connections for a new one from a host: a 64th of all at once, so that not every new connection
// has to search. Hosts with no more connections than the new one's keep theirs.
func (l *Limiter) makeRoom(host netip.Prefix) {
	own, only := l.hosts[host], l.hasShare(host)
	l.evicted += l.evict(max(1, l.places/64), func(v *limitedConn, rank int) bool {
		return (v.host == host || !only && rank > own) && v.leaveAt(0)
	})
}

// Shed closes an eighth of all connections because memory runs out: idle ones first, and those with calls that change
// something last. It returns how many.
func (l *Limiter) Shed() (closed int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	most := (len(l.taken) + 7) / 8
	for _, weight := range []int64{0, change - 1, math.MaxInt64} {
		closed += l.evict(most-closed, func(v *limitedConn, _ int) bool { return v.leaveAt(weight) })
	}
	return closed
}

// evict closes up to most connections for which mayGo returns true, and returns how many: those of the host with the
// most first, and of one host those idle for longest. The rank of a connection is how many its host has left by then.
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
			if unread(c.Conn) > 0 {
				c.reset()
			}
			_ = c.Conn.Close() // its server sees the end
			c.from.evicted.Add(1)
		}
	}
	return closed
}

// probePlace tells whether there is a place for a health check; the one that is idle for longest makes room.
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
	if oldest == nil || !oldest.leaveAt(0) {
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

// leave gives a place back. It does nothing the second time.
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

// report logs what happened, at most once a minute.
func (l *Limiter) report() {
	if l.evicted+l.refused == 0 || !l.logged.IsZero() && time.Since(l.logged) < time.Minute {
		return
	}
	l.log.Warn("the limit of connections is reached: the node closes idle ones, and refuses others",
		"limit", l.places, "closed", l.evicted, "refused", l.refused)
	l.evicted, l.refused, l.logged = 0, 0, time.Now()
}

func (l *Limiter) now() int64 { return int64(time.Since(l.began)) }
