// Package respapi serves a calls.Service over the protocol of Redis, RESP2 and RESP3, so that any Redis client can take
// IDs.
//
//	FIRN.ID name [form]       an ID of the sequencer, as a bulk string; "default" is the default one
//	FIRN.IDS name count [form]
//	                          an array of IDs, ascending, as bulk strings; count is 1 to 100000
//	FIRN.DECODE [name] id     the parts of an ID, in any form: a map; in RESP2 an array of names and values
//	FIRN.DECODE name id form [as]  the same, with its text in a form; as is the form that id has
//
//	INCR name                 an ID, as an integer
//	INCRBY name 1             the same; another number than 1 is an error, unless the sequencer is a counter
//	INCRBY name n             takes n consecutive numbers of a counter, 1 to 100000, and replies with the last of them
//	FIRN.NEXT name [count]    as FIRN.ID, and with a count as FIRN.IDS, with integers
//
// Clients whose numbers are doubles, such as those in JavaScript, round integers above 2^53: different IDs then become
// the same number. They need the bulk strings.
//
// IDs can't be given back: there is no DECR.
//
// AUTH, CLIENT, COMMAND, CONFIG GET, ECHO, HELLO, INFO, PING, QUIT, RESET and SELECT answer as Redis does, as far as
// that makes sense; other commands are unknown. AUTH takes a token, as "AUTH token" or "AUTH anyname token". It is
// checked again each second, so a revoked token stops working on open connections too.
//
// An error begins with a word, see docs/errors.md. The limits below New keep clients from using much memory, or a
// connection without need. Anything that is not a command, or is too large, gets "ERR Protocol error" and ends the
// connection.
package respapi

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
)

// Server serves a calls.Service to Redis clients. Make it with New. Its methods are safe for concurrent use.
type Server struct {
	// Texts says that INCR, INCRBY and FIRN.NEXT reply with bulk strings instead of integers, which JavaScript rounds.
	// It is set before Serve.
	Texts bool

	service  *calls.Service
	policy   *auth.Policy
	log      *slog.Logger
	commands map[string]command // by name in lower case
	context  context.Context    // of all calls, until Close
	cancel   context.CancelFunc
	started  time.Time
	other    calls.Call  // counts the commands that take no IDs
	closing  atomic.Bool // Shutdown or Close was called; set with mu held

	mu        sync.Mutex // guards what follows
	listeners map[net.Listener]struct{}
	conns     map[*conn]struct{}
	gone      chan struct{} // closed when closing and there are no conns
	lastID    int64         // of a connection
}

// New returns a server for callers under a policy. The log may be nil.
//
// The listener limits the number of connections. A command has at most 16 KiB and 1024 arguments. A connection is
// closed when it is idle for 5 minutes, when a command takes more than 30 s to arrive, and when the client does not
// read its replies for 10 s, or reads a list of IDs slower than calls.LeastTaken.
func New(s *calls.Service, e *auth.Policy, log *slog.Logger) *Server {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	r := &Server{
		service: s, policy: e, log: log, started: time.Now(), other: s.Call("redis", "other"),
		listeners: map[net.Listener]struct{}{}, conns: map[*conn]struct{}{}, gone: make(chan struct{}),
	}
	r.context, r.cancel = context.WithCancel(context.Background())
	r.commands = r.counted()
	return r
}

// Limits on what clients may do to the server.
const (
	idleFor     = 5 * time.Minute
	readWithin  = 30 * time.Second // a command, from its first byte
	writeWithin = calls.TakeSlack
	admitAgain  = time.Second // between two checks of a token
)

// Serve serves the connections of a listener until Shutdown or Close, when it returns nil. An error is returned when
// the listener fails for good. Serve closes the listener in any case.
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

// lasting tells whether accepting again is of no use.
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
		_ = accepted.Close() // nothing was sent yet
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

// stop closes the listeners, and ends the connections' wait for another command.
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
		_ = c.net.SetReadDeadline(time.Unix(1, 0)) // it has passed
	}
	if len(s.conns) == 0 {
		close(s.gone)
	}
}

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
