package load

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/unixsocket"
)

// Connection asks one server. It is not safe for concurrent use, except over gRPC.
type Connection interface {
	// Take fills ids with new IDs. The error is a *CodeError when the server refuses.
	Take(ctx context.Context, ids []firn.ID) error
	Close()
}

// Access says which IDs to ask for, and with which credentials.
type Access struct {
	Sequencer string // empty: the default one
	Token     string // empty: none
	TLS       *tls.Config
	Clusters  *Clusters // compares those of the answers; nil: they are not compared
	JSON      bool      // over HTTP, ask for IDs in JSON; else packed
}

// Protocols has the protocols of firn serve.
var Protocols = []Protocol{
	{"http", "http://127.0.0.1:8080", 100_000, "http", "https", dialHTTP},
	{"grpc", "http://127.0.0.1:9090", 10_000, "http", "https", dialGRPC},
	{"redis", "redis://127.0.0.1:6379", 100_000, "redis", "rediss", dialRedis},
}

// Protocol is a protocol to ask a server.
type Protocol struct {
	Name    string
	Default string // URL of the server to ask by default
	Most    int    // IDs in a call, at most
	clear   string // scheme of URLs without TLS
	secure  string // and with TLS
	dial    func(u *url.URL, a Access) (Connection, error)
}

// ProtocolByName returns a protocol. Its error names all protocols.
func ProtocolByName(name string) (Protocol, error) {
	var names []string
	for _, p := range Protocols {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Protocol{}, fmt.Errorf("%.40q is not right; want one of %v", name, names)
}

// Parse parses the URL of a server, its host:port, which means no TLS, or the address of its Unix socket.
func (p Protocol) Parse(text string) (*url.URL, error) {
	if unixsocket.Is(text) {
		return unixsocket.ParseURL(text)
	}
	full := text
	if !strings.Contains(text, "://") {
		full = p.clear + "://" + text
	}
	u, err := url.Parse(full)
	if err != nil || u.Scheme != p.clear && u.Scheme != p.secure || u.Hostname() == "" ||
		u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%.80q is not the URL of a server that speaks %s; want one such as %s, %s:// for TLS, "+
			"or unix:/run/firn/firn.sock", text, p.Name, p.Default, p.secure)
	}
	if u.Port() == "" && p.Name != "http" {
		return nil, fmt.Errorf("%.80q has no port; want one such as %s", text, p.Default)
	}
	return u, nil
}

// Secure reports whether a server's URL means TLS.
func (p Protocol) Secure(u *url.URL) bool { return u.Scheme == p.secure }

// Connect returns a connection to a server. The first call dials, and so does the next one after a failure.
func (p Protocol) Connect(u *url.URL, a Access) (Connection, error) {
	if !p.Secure(u) {
		a.TLS = nil
	} else if a.TLS == nil {
		a.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return p.dial(u, a)
}

// CodeError is an error from a server.
type CodeError struct {
	Code    string // as the protocol writes it
	Message string
}

func (e *CodeError) Error() string { return e.Message + " (" + e.Code + ")" }

// CodeOf returns the code of an error: the server's, or timeout, unreachable or bad_answer.
func CodeOf(err error) string {
	var code *CodeError
	var bad *badAnswerError
	var timeout net.Error
	switch {
	case errors.As(err, &code):
		return code.Code
	case errors.As(err, &bad):
		return "bad_answer"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled),
		errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	default:
		return "unreachable"
	}
}

// messageOf returns the message of an error for people.
func messageOf(err error) string {
	var code *CodeError
	switch {
	case errors.As(err, &code):
		return code.Message
	case CodeOf(err) == "timeout":
		return "no answer in time"
	default:
		return err.Error()
	}
}

// badAnswerError is the error for an answer that a firn server would not give.
type badAnswerError struct{ error }

func (e *badAnswerError) Unwrap() error { return e.error }

func badAnswer(format string, args ...any) error { return &badAnswerError{fmt.Errorf(format, args...)} }

// fill puts the IDs of an answer into ids.
func fill[T int64 | firn.ID](ids []firn.ID, got []T) error {
	if len(got) != len(ids) {
		return badAnswer("the server sent %d IDs; want %d", len(got), len(ids))
	}
	for i, id := range got {
		if id < 0 {
			return badAnswer("the server sent the ID %d; want 0 or more", int64(id))
		}
		ids[i] = firn.ID(id)
	}
	return nil
}
