// Package reason has errors carry, for programs, why they happened: in a word, which the service sends as the code of
// the error, see package codes. Errors of other types say theirs with a method Reason() string.
package reason

import "errors"

type reasoned struct {
	error
	reason string
}

func (e *reasoned) Reason() string { return e.reason }
func (e *reasoned) Unwrap() error  { return e.error }

// New returns an error with a reason.
func New(reason, text string) error { return With(reason, errors.New(text)) }

// With returns an error that wraps err, and has another reason; err itself if that is empty.
func With(reason string, err error) error {
	if reason == "" {
		return err
	}
	return &reasoned{err, reason}
}

// Of returns the reason of an error, or of the first that it wraps and that has one; empty: there is none.
func Of(err error) string {
	type withReason interface {
		error
		Reason() string
	}
	if e, ok := errors.AsType[withReason](err); ok {
		return e.Reason()
	}
	return ""
}
