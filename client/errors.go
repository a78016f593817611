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
	ErrClosed = errors.New("the client is closed")

	// ErrNoAnswer is returned when the context ends before a node has given IDs. It wraps the error of the context and,
	// for each node, what is wrong with it.
	ErrNoAnswer = errors.New("no node gave an ID in time")
)

// Error is returned when a node refuses a call for a reason that neither another node nor another attempt would change.
// An ErrNoAnswer wraps the last one of each node.
type Error struct {
	Node    string // its URL
	Status  int    // of HTTP, such as 404
	Code    string // such as "unknown_sequencer"; empty: the answer is not from a firn node
	Message string // for people; may be empty

	// RetryAfter is when to call the node again; zero: it does not say.
	RetryAfter time.Duration
}

// Error names the node, the status, and the code and message if any.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s answers %d", e.Node, e.Status)
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

// final tells whether the error is for the caller: calling another node would hide the caller's mistake, or evade its
// limit.
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
	e, ok := errors.AsType[*Error](err)
	return ok && e.final() || isMixed(err)
}

// isLimit tells whether the caller asks for more than it may.
func isLimit(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Status == http.StatusTooManyRequests
}

// retryAfter is the RetryAfter of an *Error; zero for any other error.
func retryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.RetryAfter
	}
	return 0
}

// nodeError is about a node that gave no answer, or one that can't be read.
type nodeError struct {
	node string
	err  error
}

func (e *nodeError) Error() string { return e.node + ": " + e.err.Error() }
func (e *nodeError) Unwrap() error { return e.err }

var (
	errNotAsked = errors.New("not asked")
	errNoAnswer = errors.New("no answer yet")
	errSlow     = errors.New("slower than other nodes")
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
		b.WriteString("; " + err.Error())
	}
	return b.String()
}

func (e *noAnswerError) Unwrap() []error {
	return append([]error{ErrNoAnswer, e.cause}, e.nodes...)
}
