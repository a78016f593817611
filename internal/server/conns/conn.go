package conns

import (
	"errors"
	"math"
	"net"
	"net/netip"
	"sync/atomic"
	"time"
)

// limitedConn is a connection that has a place of a Limiter until it is closed.
type limitedConn struct {
	net.Conn
	limiter *Limiter
	from    *limited
	host    netip.Prefix
	until   *time.Timer // closes it; nil: it may do more than ask how the node is

	calls atomic.Int64 // in progress; below zero: it was evicted
	since atomic.Int64 // no call was begun or ended, on the limiter's clock
}

// gone is far below any number of calls.
const gone = math.MinInt64 / 2

func (v *limitedConn) Close() error {
	v.limiter.mu.Lock()
	v.limiter.leave(v)
	v.limiter.mu.Unlock()
	return v.Conn.Close()
}

// CloseWrite lets net/http send the whole of an answer before it closes a connection on which there is more to read.
func (v *limitedConn) CloseWrite() error {
	if half, ok := v.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// limitedConnOf finds the place of a connection, which TLS may be around; nil: it has none.
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

// Begin says that a call begins on a connection, which is not idle until each was ended with End. It does nothing for a
// connection without a place. It is safe for concurrent use, as is End.
func Begin(c net.Conn) {
	if v := limitedConnOf(c); v != nil {
		v.calls.Add(1)
	}
}

// End says that a call has ended that Begin was called for.
func End(c net.Conn) {
	if v := limitedConnOf(c); v != nil {
		v.since.Store(v.limiter.now())
		v.calls.Add(-1)
	}
}

// ProbesOnly tells whether a connection was let in only to be told how the node is, as all places are taken. Calls for
// anything else are to be refused.
func ProbesOnly(c net.Conn) bool {
	v := limitedConnOf(c)
	return v != nil && v.until != nil
}
