package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

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
