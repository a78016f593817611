package client

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

var (
	// ErrClosed is returned by Next and Fill after Close.
	ErrClosed = errors.New("client: it is closed")

	// ErrNoAnswer is returned when the context ended before a node had given IDs. With it comes the error of the
	// context, and for each node what was wrong: errors.Is and errors.As find them all.
	ErrNoAnswer = errors.New("client: no node gave an ID in time")
)

// Error is returned when a node refuses in a way that another node, or another attempt, would not change. Within an
// ErrNoAnswer it is how a node refused last.
type Error struct {
	Node    string // its URL
	Status  int    // of HTTP, such as 404
	Code    string // such as "unknown_sequencer"; empty when what answered is no firn node
	Message string // for people; may be empty

	// RetryAfter is when the node wants to be asked again; zero: it did not say.
	RetryAfter time.Duration
}

// Error says which node, which status and which code.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "client: %s answers %d", e.Node, e.Status)
	for _, more := range []string{e.Code, e.Message} {
		if more != "" {
			b.WriteString(": " + more)
		}
	}
	if e.Code == "" && e.Message == "" {
		b.WriteString(" " + http.StatusText(e.Status))
	}
	return b.String()
}

// final tells whether this is for the caller: it would hide the caller's own error, or get around a limit that was set
// for it, to ask another node.
func (e *Error) final() bool {
	switch e.Status {
	case http.StatusRequestTimeout:
		return false
	case http.StatusNotFound:
		return e.Code != "" // without, it is not a firn node
	case http.StatusServiceUnavailable:
		return e.Code == "lifetime"
	}
	return 400 <= e.Status && e.Status < 500
}

// isFinal is final for any error.
func isFinal(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.final()
}

// isLimit tells whether the caller asks for more than it may.
func isLimit(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Status == http.StatusTooManyRequests
}

// retryAfter is what the node of err says, and else zero.
func retryAfter(err error) time.Duration {
	var e *Error
	if errors.As(err, &e) {
		return e.RetryAfter
	}
	return 0
}

// nodeError is what is wrong with a node that gave no answer, or none to be understood.
type nodeError struct {
	node string
	err  error
}

func (e *nodeError) Error() string { return e.node + ": " + e.err.Error() }
func (e *nodeError) Unwrap() error { return e.err }

var (
	errNotAsked = errors.New("not asked")
	errNoAnswer = errors.New("no answer yet")
	errSlow     = errors.New("slower than others")
)

// noAnswerError is an ErrNoAnswer.
type noAnswerError struct {
	after time.Duration
	cause error   // of the context
	nodes []error // one for each
}

func (e *noAnswerError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: %v after %v", ErrNoAnswer, e.cause, e.after.Round(time.Millisecond))
	for _, err := range e.nodes {
		b.WriteString("; " + strings.TrimPrefix(err.Error(), "client: "))
	}
	return b.String()
}

func (e *noAnswerError) Unwrap() []error {
	return append([]error{ErrNoAnswer, e.cause}, e.nodes...)
}
