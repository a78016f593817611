package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/firn-id/firn/internal/node"
)

// Exit statuses. 2 is not among them: every Go program that panics, or is aborted by systemd's watchdog, exits with 2.
const (
	statusOK          = 0
	statusFailure     = 1
	statusNoNode      = 3   // no node ID is free, or the clock is too far behind
	statusUsage       = 78  // a flag, an argument, a variable or the config file is wrong: EX_CONFIG of sysexits.h
	statusInterrupted = 130 // a client command was interrupted, as shells count it
)

// usageError is a mistake of who called firn.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errReported is returned by a command that has said on stderr what is wrong.
var errReported = errors.New("reported")

// status tells the exit status of an error.
func status(err error) int {
	var usage usageError
	var interrupted signalError
	switch {
	case err == nil:
		return statusOK
	case errors.As(err, &usage):
		return statusUsage
	case node.NoNodeID(err):
		return statusNoNode
	case errors.As(err, &interrupted):
		return statusInterrupted
	default:
		return statusFailure
	}
}

// report prints an error for people, on one line behind head. Whoever interrupted a command knows that.
func report(w io.Writer, head string, err error) {
	var interrupted signalError
	if err == nil || errors.Is(err, errReported) || errors.As(err, &interrupted) {
		return
	}
	fmt.Fprintln(w, head, err)
}

// interrupted returns the signal that ended ctx in the place of what failed because of it.
func interrupted(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}
