package respapi

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/test/servertest"
)

const first = servertest.First

func newCounting() *servertest.Issuer { return &servertest.Issuer{IDs: firn.Twitter} }

// newServer is a server for a member that lets anyone in.
func newServer(t testing.TB, m calls.Issuer) *Server {
	t.Helper()
	return newServerWith(t, m, &auth.Policy{}, nil)
}

func newServerWith(t testing.TB, m calls.Issuer, e *auth.Policy, log *slog.Logger) *Server {
	t.Helper()
	return New(calls.New(servertest.Join(t), calls.Options{Log: log, Default: m}), e, log)
}

// script is a connection of a client that says something, in pieces, and goes away once it has all replies.
type script struct {
	net.Conn // what is not here is not called
	says     []byte
	piece    int
	hears    bytes.Buffer
}

func (s *script) Read(b []byte) (int, error) {
	n := copy(b[:min(len(b), s.piece)], s.says)
	s.says = s.says[n:]
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (s *script) Write(b []byte) (int, error)      { return s.hears.Write(b) }
func (s *script) SetReadDeadline(time.Time) error  { return nil }
func (s *script) SetWriteDeadline(time.Time) error { return nil }
func (s *script) RemoteAddr() net.Addr             { return &net.TCPAddr{} }

// talk is what a server replies to a client that sends so many bytes at a time.
func talk(s *Server, says string, piece int) string {
	k := &script{says: []byte(says), piece: piece}
	newConn(s, k, 7).serve()
	return k.hears.String()
}

// show reads replies, which must be valid, and writes them down: one per line.
func show(replies string) (string, error) {
	all := strings.NewReader(replies)
	r := bufio.NewReader(all)
	var b strings.Builder
	for all.Len() > 0 || r.Buffered() > 0 {
		one, err := read(r)
		if err != nil {
			return b.String(), err
		}
		b.WriteString(one + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// read reads one reply, and writes it down: texts in quotes, arrays in [], maps in {}.
func read(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	text, ok := strings.CutSuffix(line, "\r\n")
	if !ok || text == "" || strings.ContainsAny(text, "\r") {
		return "", fmt.Errorf("the line %q", line)
	}
	kind, text := text[0], text[1:]
	n, notNumber := strconv.Atoi(text)
	switch kind {
	case '+', '-':
		return string(kind) + text, nil
	case '_':
		return "null", nil
	case ':':
		return text, notNumber
	case '$', '=':
		if text == "-1" && kind == '$' {
			return "null", nil
		}
		if notNumber != nil || n < 0 {
			return "", fmt.Errorf("the length %q", text)
		}
		b := make([]byte, n+2)
		if _, err := io.ReadFull(r, b); err != nil || !bytes.HasSuffix(b, []byte("\r\n")) {
			return "", fmt.Errorf("the bulk %q, %w", b, errors.Join(err))
		}
		return fmt.Sprintf("%q", b[:n]), nil
	case '*', '%':
		if notNumber != nil || n < 0 {
			return "", fmt.Errorf("the length %q", text)
		}
		brackets := "[]"
		if kind == '%' {
			n, brackets = 2*n, "{}"
		}
		all := make([]string, n)
		for i := range all {
			if all[i], err = read(r); err != nil {
				return "", err
			}
		}
		return brackets[:1] + strings.Join(all, " ") + brackets[1:], nil
	default:
		return "", fmt.Errorf("the kind %q", kind)
	}
}

// replies is what a server says to a client that sends all at once, written down.
func replies(t *testing.T, s *Server, says string) string {
	t.Helper()
	got, err := show(talk(s, says, maxCommand))
	if err != nil {
		t.Fatalf("%.100q: the replies are not valid: %v, after %s", says, err, got)
	}
	return got
}

// listener accepts connections that have no network.
type listener struct {
	conns chan net.Conn
	end   chan struct{}
}

func newListener() *listener { return &listener{make(chan net.Conn), make(chan struct{})} }

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.end:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	select {
	case <-l.end:
	default:
		close(l.end)
	}
	return nil
}

func (l *listener) Addr() net.Addr { return &net.TCPAddr{} }

// client is one end of a connection that has no network.
type client struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

func (l *listener) dial(t *testing.T) *client {
	here, there := net.Pipe()
	l.conns <- there
	return &client{t, here, bufio.NewReader(here)}
}

// ask sends a line, and returns the reply written down.
func (c *client) ask(line string) string {
	c.t.Helper()
	if _, err := c.Write([]byte(line + "\r\n")); err != nil {
		return "closed"
	}
	reply, err := read(c.r)
	if err != nil {
		return "closed"
	}
	return reply
}

// served runs a test with a server that serves a listener, and ends it.
func served(t *testing.T, s *Server, test func(*listener)) {
	t.Helper()
	l := newListener()
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	test(l)
	s.Close()
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// generated is a member with a generator.
type generated struct{ *firn.Generator }

func (generated) Ready() error { return nil }
func (g generated) FillAfter(ctx context.Context, _ firn.ID, _ time.Duration, ids []firn.ID) error {
	return g.Fill(ctx, ids)
}
func (g generated) Definition() cluster.Definition { return cluster.Define(g.Layout()) }

func newGenerated(t testing.TB, l firn.Layout, options ...firn.Option) generated {
	t.Helper()
	g, err := firn.NewGenerator(l, 5, options...)
	if err != nil {
		t.Fatal(err)
	}
	return generated{g}
}
