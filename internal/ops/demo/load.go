package demo

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	firnclient "github.com/firn-id/firn/client"
	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/internal/ops/console"
	"github.com/firn-id/firn/internal/ops/load"
	"github.com/firn-id/firn/internal/service/calls"
)

const (
	callWithin     = 2 * time.Second // how long the callers of a demo wait
	callsPerSecond = 200             // at most; for more IDs each call asks for several
	callers        = 16              // each with one call at a time
)

// background takes IDs from several nodes, as an application would, and checks each of them.
type background struct {
	client  *firnclient.Client
	checker *load.Checker
	failed  atomic.Int64 // calls
	latest  atomic.Value // the error of the latest failed call, as text
	end     context.CancelFunc
	callers sync.WaitGroup
}

// newLoad returns a load on nodes, which start begins.
func newLoad(urls []string) (*background, error) {
	c, err := firnclient.New(urls)
	if err != nil {
		return nil, err
	}
	return &background{client: c, checker: load.NewChecker(firn.Default), end: func() {}}, nil
}

// take takes IDs, and checks them.
func (l *background) take(ctx context.Context, ids []firn.ID) error {
	call := l.checker.Begin()
	if err := l.client.Fill(ctx, ids); err != nil {
		return err
	}
	call.End(ids)
	return nil
}

// start takes so many IDs a second until stop is called. A caller that still waits when its next call is due
// skips that call.
func (l *background) start(rate int64) {
	if rate == 0 {
		return
	}
	var ctx context.Context
	ctx, l.end = context.WithCancel(context.Background())
	count := (rate + callsPerSecond - 1) / callsPerSecond
	each := time.Duration(callers * count * int64(time.Second) / rate) // between two calls of a caller
	for i := range callers {
		l.callers.Go(func() {
			if retry.Sleep(ctx, each/callers*time.Duration(i)) == nil {
				l.work(ctx, each, make([]firn.ID, count))
			}
		})
	}
}

func (l *background) work(ctx context.Context, each time.Duration, ids []firn.ID) {
	tick := time.NewTicker(each)
	defer tick.Stop()
	for {
		call, cancel := context.WithTimeout(ctx, callWithin)
		err := l.take(call, ids)
		cancel()
		if err != nil && ctx.Err() == nil {
			l.latest.Store(calls.Why(err))
			l.failed.Add(1)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// stop ends the load. Its counts stay.
func (l *background) stop() {
	l.end()
	l.callers.Wait()
	_ = l.client.Close() // it always returns nil
}

// counts returns the counts so far.
func (l *background) counts() Counts {
	ids, duplicates, disorder := l.checker.Counts()
	return Counts{IDs: ids, Errors: l.failed.Load(), Duplicates: duplicates, Disorder: disorder}
}

// Counts has the counts of a load.
type Counts struct {
	IDs        int64   `json:"ids"`
	PerSecond  float64 `json:"ids_per_second"`
	Errors     int64   `json:"errors"`     // calls without IDs
	Duplicates int64   `json:"duplicates"` // IDs that came again
	Disorder   int64   `json:"disorder"`   // IDs not above one of the same node that came before their call began
}

// String returns the counts for people.
func (c Counts) String() string {
	return fmt.Sprintf("%s, %s, %s", console.Plural(c.IDs, "ID"), console.Plural(c.Errors, "error"),
		console.Plural(c.Duplicates, "duplicate"))
}
