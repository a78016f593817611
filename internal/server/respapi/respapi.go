// Package respapi speaks the protocol of Redis, RESP2 and RESP3, for a server.Service: whoever has a Redis client can
// take IDs with it.
//
//	INCR name                 an ID of the sequencer; "default" serves those who want none in particular
//	INCRBY name n             n consecutive IDs; the reply is the last, so they are reply-n+1 to reply
//	FIRN.NEXT name            an ID
//	FIRN.NEXT name count      an array of IDs, ascending; count is 1 to 100000
//	FIRN.DECODE [name] id     what an ID says: a map; in RESP2 an array of names and values
//
// INCRBY needs IDs that lie side by side in one tick: n is at most 2^sequence bits, and the node must not lie lowest in
// the layout. FIRN.NEXT has no such limits. An ID is never given back: n below 1 is an error, and there is no DECR.
//
// What clients send beside is answered as Redis does, as far as it makes sense: AUTH, CLIENT, COMMAND, CONFIG GET, ECHO,
// HELLO, INFO, PING, QUIT, RESET and SELECT. AUTH takes a token, as "AUTH token" or "AUTH anyname token"; who is let in
// is asked again each second, so a token that is withdrawn stops working on open connections too. Any other command is
// unknown.
//
// An error begins with a word that says its kind:
//
//	ERR                what was given is wrong, and what would be right; or no such command
//	NOAUTH             a token is wanted, and none was shown, or it was withdrawn
//	WRONGPASS          nobody's token
//	NOPROTO            HELLO with a version other than 2 and 3
//	NOPERM             the token does not allow that
//	UNKNOWNSEQUENCER   there is no sequencer of this name, or it was destroyed
//	RATELIMITED        more than the token allows
//	NOTREADY           no ID can be given now; try another server, or again
//	WAITING            all node IDs are taken, and the member stands in line; try another server
//	DETACHED           the member is not attached, and this call does not attach it; try another server
//	UNFIT              the member's window or wished-for node IDs do not go with the sequencer; try another
//	UNAVAILABLE        the store does not answer
//	OVERLOADED         more is asked for than the node ID can give in 10 s, or by too many at a time
//	LIFETIME           the layout's time is over, or has not begun
//	UNREADABLE         the log holds what this program can't read; it is logged
//	INTERNAL           a bug; it is logged
//
// No client can make it use much memory or hold a connection for nothing: see the limits below New. What is no command,
// or too large, is told as "ERR Protocol error" and ends the connection.
package respapi

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn/internal/server"
	"github.com/firn-id/firn/internal/server/auth"
)

// Server serves what a server.Service does to Redis clients. Make it with New. Its methods are safe for concurrent use.
type Server struct {
	service  *server.Service
	policy   *auth.Policy
	log      *slog.Logger
	commands map[string]command // by name in lower case
	context  context.Context    // of all calls; ends with Close
	cancel   context.CancelFunc
	started  time.Time
	metered  bool
	other    server.Call // counts the commands that take no IDs
	closing  atomic.Bool // Shutdown or Close was called; set with mu held

	mu        sync.Mutex // guards what follows
	listeners map[net.Listener]struct{}
	conns     map[*conn]struct{}
	gone      chan struct{} // closed when closing and there are no conns
	lastID    int64         // of a connection
}

// New returns a server for callers under a policy. A nil log: nobody is told.
//
// How many connections there may be is for the listener to limit. A command has at most 16 KiB and 1024 arguments. A
// connection is closed when it is idle for 5 minutes, when a command that was begun is not complete within 30 s, and when
// the client does not take its replies for 30 s, or a list of IDs at server.LeastTaken.
func New(s *server.Service, e *auth.Policy, log *slog.Logger) *Server {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	r := &Server{
		service: s, policy: e, log: log, commands: byName(), started: time.Now(),
		listeners: map[net.Listener]struct{}{}, conns: map[*conn]struct{}{}, gone: make(chan struct{}),
	}
	r.context, r.cancel = context.WithCancel(context.Background())
	r.counters()
	return r
}

// Limits on what clients may do to the server.
const (
	idleFor     = 5 * time.Minute
	readWithin  = 30 * time.Second // a command, once it was begun
	writeWithin = 30 * time.Second
	admitAgain  = time.Second // when it was as long ago, who is let in is asked again
)

// Serve accepts connections from a listener, and serves each, until Shutdown or Close. Then it returns nil; the
// listener is closed in any case. Another error is returned when the listener fails for good.
func (s *Server) Serve(l net.Listener) error {
	defer func() { _ = l.Close() }() // closed already, as a rule
	if !s.track(l) {
		return nil
	}
	defer s.untrack(l)
	for pause := time.Duration(0); ; {
		accepted, err := l.Accept()
		switch {
		case err == nil:
			pause = 0
			s.begin(accepted)
		case s.closing.Load():
			return nil
		case lasting(err):
			return err
		default: // such as too many open files
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			s.log.Warn("can't accept a connection; trying again", "err", err, "in", pause)
			select {
			case <-time.After(pause):
			case <-s.context.Done():
			}
		}
	}
}

// lasting tells whether there is no use in accepting again.
func lasting(err error) bool {
	var temporary interface{ Temporary() bool }
	return !errors.As(err, &temporary) || !temporary.Temporary()
}

func (s *Server) track(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Load() {
		return false
	}
	s.listeners[l] = struct{}{}
	return true
}

func (s *Server) untrack(l net.Listener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.listeners, l)
}

// begin serves a connection.
func (s *Server) begin(accepted net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Load() {
		_ = accepted.Close() // nothing was said yet
		return
	}
	s.lastID++
	c := newConn(s, accepted, s.lastID)
	s.conns[c] = struct{}{}
	go func() {
		defer s.end(c)
		c.serve()
	}()
}

func (s *Server) end(c *conn) {
	_ = c.net.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	if s.closing.Load() && len(s.conns) == 0 {
		close(s.gone)
	}
}

// connected is how many connections there are.
func (s *Server) connected() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// stop closes the listeners, and sees that no connection waits for another command.
func (s *Server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing.Swap(true) {
		return
	}
	for l := range s.listeners {
		_ = l.Close() // Serve sees what comes of it
	}
	for c := range s.conns {
		_ = c.net.SetReadDeadline(longAgo)
	}
	if len(s.conns) == 0 {
		close(s.gone)
	}
}

// longAgo is a deadline that has passed.
var longAgo = time.Unix(1, 0)

// Shutdown closes the listeners and all connections, each as soon as the commands that were read from it are answered.
// It returns nil when they are closed. When ctx ends first, its error is returned; Close then ends the rest.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stop()
	select {
	case <-s.gone:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close closes the listeners and all connections at once. It does not wait for their goroutines.
func (s *Server) Close() {
	s.stop()
	s.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		_ = c.net.Close()
	}
}
