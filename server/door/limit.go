package door

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Limit returns a listener of at most so many open connections; zero or less: as many as come. Whatever comes beyond is
// closed at once, so that callers fail fast and try elsewhere, and that is logged once a minute at most. Connections
// count until they are closed. It is safe for concurrent use. A listener that has a limit is a Counter.
func Limit(l net.Listener, most int, log *slog.Logger) net.Listener {
	if most <= 0 {
		return l
	}
	return &limited{Listener: l, most: int64(most), log: log}
}

// Counter counts connections. It is safe for concurrent use.
type Counter interface {
	Open() int64     // how many there are
	Refused() uint64 // how many were turned away since it listens
}

type limited struct {
	net.Listener
	most    int64
	log     *slog.Logger
	open    atomic.Int64
	refused atomic.Uint64

	mu     sync.Mutex // guards the rest
	away   int        // turned away since that was last said
	spoken time.Time
}

func (l *limited) Open() int64     { return l.open.Load() }
func (l *limited) Refused() uint64 { return l.refused.Load() }

func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) <= l.most {
			return &counted{Conn: c, leave: sync.OnceFunc(func() { l.open.Add(-1) })}, nil
		}
		l.open.Add(-1)
		_ = c.Close() // nothing was sent
		l.refused.Add(1)
		l.turnedAway()
	}
}

func (l *limited) turnedAway() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away++
	now := time.Now()
	if !l.spoken.IsZero() && now.Sub(l.spoken) < time.Minute {
		return
	}
	l.log.Warn("connections were turned away: as many are open as may be", "limit", l.most, "turned_away", l.away)
	l.away, l.spoken = 0, now
}

// counted is a connection that leaves room for another when it is closed.
type counted struct {
	net.Conn
	leave func()
}

func (c *counted) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// CloseWrite lets net/http send the whole of an answer before it closes a connection on which there is more to read.
func (c *counted) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
