package demo

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	firnclient "github.com/firn-id/firn/client"
	"github.com/firn-id/firn/internal/console"
	"github.com/firn-id/firn/internal/load"
	"github.com/firn-id/firn/internal/node"
)

const (
	demoCallWithin = 2 * time.Second // what the callers of a demo have patience for
	demoCalls      = 200             // in a second, at most; for more IDs each asks for several
	demoCallers    = 16              // at a time
)

// background takes IDs as an application of several nodes would, and looks at each of them.
type background struct {
	client  *firnclient.Client
	checker *load.Checker
	rate    int64
	failed  atomic.Int64 // calls
	latest  atomic.Value // the error of the latest of these, as text
	end     context.CancelFunc
	callers sync.WaitGroup
}

// newLoad returns the load on some nodes, at so many IDs a second. It begins with start.
func newLoad(nodes []*host, rate int64) (*background, error) {
	var urls []string
	for _, n := range nodes {
		urls = append(urls, n.url)
	}
	c, err := firnclient.New(urls)
	if err != nil {
		return nil, err
	}
	return &background{client: c, checker: load.NewChecker(firn.Default), rate: rate, end: func() {}}, nil
}

// take takes IDs, and looks at them.
func (l *background) take(ctx context.Context, ids []firn.ID) error {
	call := l.checker.Begin()
	if err := l.client.Fill(ctx, ids); err != nil {
		return err
	}
	call.End(ids)
	return nil
}

// start takes IDs at the rate until stop is called. What nobody is free for is not asked for later.
func (l *background) start() {
	if l.rate == 0 {
		return
	}
	var ctx context.Context
	ctx, l.end = context.WithCancel(context.Background())
	count := (l.rate + demoCalls - 1) / demoCalls
	due := make(chan struct{}, 1)
	l.callers.Go(func() {
		tick := time.NewTicker(time.Duration(float64(count) / float64(l.rate) * float64(time.Second)))
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			select {
			case due <- struct{}{}:
			default:
			}
		}
	})
	for range demoCallers {
		l.callers.Go(func() { l.work(ctx, due, make([]firn.ID, count)) })
	}
}

func (l *background) work(ctx context.Context, due <-chan struct{}, ids []firn.ID) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-due:
		}
		call, cancel := context.WithTimeout(ctx, demoCallWithin)
		err := l.take(call, ids)
		cancel()
		if err != nil && ctx.Err() == nil {
			l.latest.Store(node.Why(err))
			l.failed.Add(1)
		}
	}
}

// stop ends it. Its counts stay.
func (l *background) stop() {
	l.end()
	l.callers.Wait()
	_ = l.client.Close() // it always returns nil
}

// counts are what came of it so far.
func (l *background) counts() Counts {
	ids, duplicates, disorder := l.checker.Counts()
	return Counts{IDs: ids, Errors: l.failed.Load(), Duplicates: duplicates, Disorder: disorder}
}

// Counts are what came of a load.
type Counts struct {
	IDs        int64   `json:"ids"`
	PerSecond  float64 `json:"ids_per_second"`
	Errors     int64   `json:"errors"`     // calls without IDs
	Duplicates int64   `json:"duplicates"` // IDs that had come before
	Disorder   int64   `json:"disorder"`   // IDs that were not above one of the same node that had come before they were asked for
}

// String is for people.
func (c Counts) String() string {
	return fmt.Sprintf("%s, %s, %s", console.Plural(c.IDs, "ID"), console.Plural(c.Errors, "error"), console.Plural(c.Duplicates, "duplicate"))
}
