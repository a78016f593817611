package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/counter"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/sequencer"
)

// numbers is the counter of a world without regions.
const numbers = "numbers"

func (p Plan) counter() cluster.Definition {
	d := cluster.Definition{Kind: cluster.Counter}
	switch {
	case p.Strict && p.Timed:
		d = cluster.Definition{Layout: firn.Default}
		d.Layout.Epoch = epoch.AddDate(-1, 0, 0)
	case p.Timed:
		d.Dated = sequencer.Dated{Every: sequencer.EveryDay, Digits: 9}
	}
	if p.Strict {
		d.Order = cluster.OrderStrict
	}
	return d
}

// counted is all numbers that were given. It is guarded by world.mu.
type counted struct {
	by       map[firn.ID]string // who gave it
	greatest firn.ID
	last     map[*process]firn.ID // that it gave
}

func newCounted() *counted { return &counted{by: map[firn.ID]string{}, last: map[*process]firn.ID{}} }

// count has a process take numbers, until there are none.
func (p *process) count(ctx context.Context, n int64) error {
	c, err := p.member.EnsureCounter(ctx, numbers, p.world.counter())
	for ; err == nil && n > 0; n-- {
		err = p.number(ctx, c)
	}
	return err
}

// countOn has a process take numbers of the counter that it has, if any.
func (p *process) countOn(n int64) {
	ctx, cancel := context.WithTimeout(p.world.ctx, patience)
	defer cancel()
	c, ok := p.member.Counter(numbers)
	for ; ok && n > 0; n-- {
		ok = p.number(ctx, c) == nil
	}
}

// number takes a number, and checks it.
func (p *process) number(ctx context.Context, c *peer.Counter) error {
	w := p.world
	w.mu.Lock()
	over, before, own := p.ended, w.counted.greatest, w.counted.last[p]
	w.mu.Unlock()
	id, err := c.Next(ctx)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen.ids++
	by, twice := w.counted.by[id]
	switch {
	case over != "":
		w.failLocked("what is over stays over", fmt.Sprintf("%s gives the number %d %s", p.name, id, over))
	case twice:
		w.failLocked("no number comes twice", fmt.Sprintf("%s gives %d, which %s gave before", p.name, id, by))
	case w.Strict && id <= before:
		w.failLocked("numbers in strict order ascend over all",
			fmt.Sprintf("%s gives %d, and %d was given before", p.name, id,
				before))
	case id <= own:
		w.failLocked("the numbers of a process ascend", fmt.Sprintf("%s gives %d after %d", p.name, id, own))
	}
	w.counted.by[id], w.counted.last[p] = p.name, max(w.counted.last[p], id)
	w.counted.greatest = max(w.counted.greatest, id)
	return nil
}

// recount has each process that lives give numbers in the end. After a loss of data an operator, who knows the greatest
// number that was given, has the counter go on.
func (w *world) recount() {
	for _, p := range w.living() {
		if p.Region != (cluster.Region{}) {
			continue
		}
		ctx, cancel := context.WithTimeout(w.ctx, bound)
		err := p.count(ctx, 3)
		for ; err != nil && ctx.Err() == nil; err = p.count(ctx, 3) {
			if _, lost := errors.AsType[*counter.LostError](err); lost && !w.Loses {
				break
			}
			if _, ahead := errors.AsType[*counter.AheadError](err); ahead && !w.Right {
				err = nil // clocks were wrong by more than it takes
				break
			}
			if _, lost := errors.AsType[*counter.LostError](err); lost {
				w.mu.Lock()
				after := w.counted.greatest
				w.mu.Unlock()
				refused, ok := errors.AsType[*counter.ResumeError](p.member.ResumeCounter(ctx, numbers, after))
				if ok && max(int64(after), refused.Last) > refused.Most && !w.Right {
					err = nil // clocks were wrong by more than it takes
					break
				}
				if ok {
					_ = p.member.ResumeCounter(ctx, numbers, firn.ID(refused.Last))
				}
			}
			time.Sleep(100 * time.Millisecond)
		}
		cancel()
		if err != nil {
			w.fail("in the end all is well", "%s gives no numbers: %v", p.name, err)
		}
	}
}
