package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/node"
)

// Exit statuses. 2 is not among them: every Go program that panics, or is aborted by systemd's watchdog, exits with 2.
const (
	statusOK       = 0
	statusFailure  = 1
	statusNoNode   = 3 // no node ID is free, the clock is wrong, or existing IDs are ahead of it
	statusExpelled = 4 // an operator has expelled the node from its cluster
	// a flag, an argument, a variable, the config file or a data directory is wrong: EX_CONFIG of sysexits.h
	statusUsage       = 78
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
	case errors.Is(err, peer.ErrExpelled):
		return statusExpelled
	case errors.As(err, &interrupted):
		return statusInterrupted
	default:
		return statusFailure
	}
}

// interrupted returns the signal that ended ctx in the place of what failed because of it.
func interrupted(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// signalError is the cause of a context that a signal ended.
type signalError struct{ signal os.Signal }

func (e signalError) Error() string { return "received " + e.signal.String() }

// untilSignal returns a context that ends with SIGINT or SIGTERM. A second signal ends the
// process at once.
func untilSignal(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		cancel(signalError{<-signals})
		fmt.Fprintf(os.Stderr, "firn: received %v again, ending at once\n", <-signals)
		os.Exit(statusFailure)
	}()
	return ctx
}
