package conns

import (
	"errors"
	"math"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"time"
)

// maxUnread is how long the kernel keeps what the other end does not take.
const maxUnread = 30 * time.Second

// limitedConn is a connection that has a place of a Limiter until it is closed.
type limitedConn struct {
	net.Conn
	limiter *Limiter
	from    *limited
	host    netip.Prefix
	until   *time.Timer // closes it, if it is for health checks only; else nil

	calls atomic.Int64 // in progress, those of changes with a weight of change; below zero: it was evicted
	since atomic.Int64 // when the last call ended, by the limiter's clock
}

const (
	gone   = math.MinInt64 / 2 // far below any number of calls
	change = 1 << 32           // far above any number of calls that change nothing
)

func (v *limitedConn) Close() error {
	v.limiter.mu.Lock()
	v.limiter.leave(v)
	v.limiter.mu.Unlock()
	return v.Conn.Close()
}

// CloseWrite lets net/http deliver a whole answer before it closes a connection that it has not read to the end.
func (v *limitedConn) CloseWrite() error {
	if half, ok := v.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// limitedConnOf returns the connection as its limiter knows it, below TLS; nil: no limiter does.
func limitedConnOf(c net.Conn) *limitedConn {
	for {
		switch layer := c.(type) {
		case *limitedConn:
			return layer
		case interface{ NetConn() net.Conn }:
			c = layer.NetConn()
		default:
			return nil
		}
	}
}

// Begin says that a call begins on a connection, which is then not idle until End. It does nothing for a connection
// that no limiter knows. Begin and End are safe for concurrent use.
func Begin(c net.Conn) { begin(c, 1) }

// End says that a call has ended.
func End(c net.Conn) { end(c, 1) }

// BeginChange is Begin for a call that changes something: Shed closes its connection last. EndChange ends it.
func BeginChange(c net.Conn) { begin(c, change) }

// EndChange is End for a call of BeginChange.
func EndChange(c net.Conn) { end(c, change) }

func begin(c net.Conn, weight int64) {
	if v := limitedConnOf(c); v != nil {
		v.calls.Add(weight)
	}
}

func end(c net.Conn, weight int64) {
	if v := limitedConnOf(c); v != nil {
		v.since.Store(v.limiter.now())
		v.calls.Add(-weight)
	}
}

// leaveAt marks a connection as gone unless its calls weigh more than most. It is false if they do, and if it was gone.
func (v *limitedConn) leaveAt(most int64) bool {
	for {
		calls := v.calls.Load()
		if calls < 0 || calls > most {
			return false
		}
		if v.calls.CompareAndSwap(calls, gone) {
			return true
		}
	}
}

// Unread returns how many bytes that were written to a connection wait for its other end to have room. It is zero for a
// connection that no limiter knows, and on other systems than Linux.
func Unread(c net.Conn) int {
	v := limitedConnOf(c)
	if v == nil {
		return 0
	}
	return unread(v.Conn)
}

// Reset makes the next Close of a connection forget what the other end has not read; otherwise the kernel would keep
// that.
func Reset(c net.Conn) {
	if v := limitedConnOf(c); v != nil {
		v.reset()
	}
}

func (v *limitedConn) reset() {
	if l, ok := v.Conn.(interface{ SetLinger(seconds int) error }); ok {
		_ = l.SetLinger(0) // if it fails the kernel keeps it for maxUnread
	}
}

// Write implements [net.Conn]. When the other end has not read in time, the connection's Close forgets what is left.
func (v *limitedConn) Write(b []byte) (int, error) {
	n, err := v.Conn.Write(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		v.reset()
	}
	return n, err
}

// ProbesOnly tells whether a connection beyond the limit was accepted for health checks only. Any other call on it is
// to be refused.
func ProbesOnly(c net.Conn) bool {
	v := limitedConnOf(c)
	return v != nil && v.until != nil
}
