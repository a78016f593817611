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
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/ops/console"
	"github.com/firn-id/firn/internal/ops/load"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/sequencer"
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
	others  []other
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
	l := &background{client: c, checker: load.NewChecker(firn.Default), end: func() {}}
	for _, o := range others {
		l.others = append(l.others, other{o.name, o.definition, load.NewChecker(whole)})
	}
	return l, nil
}

// other is another sequencer of the demo, from which one caller takes an ID a second.
type other struct {
	name       string
	definition cluster.Definition
	checker    *load.Checker // with the layout whole
}

// whole is a layout in which all IDs are those of one node.
var whole = firn.Layout{Epoch: firn.Default.Epoch, Tick: firn.Default.Tick, TimeBits: 62, SequenceBits: 1}

// others is one of each order that the default sequencer has not.
var others = []struct {
	name       string
	definition cluster.Definition
}{
	{"invoices", cluster.Definition{Kind: cluster.Counter}},
	{
		"receipts",
		cluster.Definition{Kind: cluster.Counter, Dated: sequencer.Dated{Every: sequencer.EveryDay, Digits: 6}},
	},
	{"events", cluster.Definition{Order: cluster.OrderStrict, Layout: firn.Default}},
}

// take takes IDs, and checks them.
func (l *background) take(ctx context.Context, ids []firn.ID) error {
	return takeFrom(ctx, l.checker, l.client.Fill, ids)
}

func takeFrom(ctx context.Context, c *load.Checker, fill func(context.Context, []firn.ID) error, ids []firn.ID) error {
	call := c.Begin()
	if err := fill(ctx, ids); err != nil {
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
	ctx, end := context.WithCancel(context.Background())
	l.end = end
	count := (rate + callsPerSecond - 1) / callsPerSecond
	each := time.Duration(callers * count * int64(time.Second) / rate) // between two calls of a caller
	for i := range callers {
		l.callers.Go(func() {
			if retry.Sleep(ctx, each/callers*time.Duration(i)) == nil {
				work(ctx, each, func(call context.Context) {
					if err := l.take(call, make([]firn.ID, count)); err != nil && ctx.Err() == nil {
						l.latest.Store(calls.Why(err))
						l.failed.Add(1)
					}
				})
			}
		})
	}
	for _, o := range l.others {
		l.callers.Go(func() {
			from := l.client.Sequencer(o.name)
			work(ctx, time.Second, func(ctx context.Context) { // without the store there may be none
				_ = takeFrom(ctx, o.checker, from.Fill, make([]firn.ID, 1))
			})
		})
	}
}

func work(ctx context.Context, each time.Duration, take func(context.Context)) {
	tick := time.NewTicker(each)
	defer tick.Stop()
	for {
		call, cancel := context.WithTimeout(ctx, callWithin)
		take(call)
		cancel()
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
	c := Counts{Errors: l.failed.Load()}
	c.IDs, c.Duplicates, c.Disorder = l.checker.Counts()
	for _, o := range l.others {
		ids, duplicates, disorder := o.checker.Counts()
		c.IDs, c.Duplicates = c.IDs+ids, c.Duplicates+duplicates
		if o.definition.Order == cluster.OrderStrict {
			c.Disorder += disorder
		}
	}
	return c
}

// Counts has the counts of a load.
type Counts struct {
	IDs        int64   `json:"ids"`
	PerSecond  float64 `json:"ids_per_second"`
	Errors     int64   `json:"errors"`     // calls without IDs
	Duplicates int64   `json:"duplicates"` // IDs that came again
	// IDs not above one of the same node, or in strict order any, that came before their call began
	Disorder int64 `json:"disorder"`
}

// String returns the counts for people.
func (c Counts) String() string {
	return fmt.Sprintf("%s, %s, %s", console.Plural(c.IDs, "ID"), console.Plural(c.Errors, "error"),
		console.Plural(c.Duplicates, "duplicate"))
}
