package peer

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/store"
)

// watchOnly watches these pulses and no others. It also reports those that are already gone, so it does not
// matter when a watch begins.
func (p *player) watchOnly(ids []string) {
	for id, cancel := range p.watched {
		if !slices.Contains(ids, id) {
			cancel()
			delete(p.watched, id)
		}
	}
	for _, id := range ids {
		if p.watched[id] != nil {
			continue
		}
		ctx, cancel := context.WithCancel(context.Background())
		p.watched[id] = cancel
		p.running.Go(func() { p.watch(ctx, id) })
	}
}

// pulseGone is a member whose pulse is gone, and the name of its node.
type pulseGone struct{ id, node string }

// death is how a member was found to be dead, and the name of its node, if its pulse was seen.
type death struct {
	why  cluster.Cause
	node string
}

// mourn says in the log that this member has taken out a dead one.
func (p *player) mourn(c cluster.Command, out cluster.Outcome) {
	leave, ok := c.(cluster.Leave)
	if !ok || out.Result != cluster.Applied || p.incarnation == nil || leave.By != p.incarnation.id ||
		slices.Contains(p.ids, leave.Member) {
		return
	}
	p.log.Warn("a member that has not left is out of the cluster: its node is gone, or joins again; its node IDs are "+
		"free once their time is over",
		"node", p.dead[leave.Member].node, "member", leave.Member, "why", leave.Why)
}

// watch reports when a pulse is gone, unless ctx ends first.
func (p *player) watch(ctx context.Context, id string) {
	for tries := 0; ctx.Err() == nil; tries++ {
		gone, err := p.store.Gone(ctx, pulseKey(id))
		if errors.Is(err, store.ErrRefused) {
			p.troubles.note(ctx, "can't watch a pulse", err)
		}
		if err != nil {
			_ = retry.Sleep(ctx, backoff.After(tries))
			continue
		}
		kv, _ := p.store.Get(ctx, pulseKey(id)) // for the log alone
		select {
		case <-gone:
			select {
			case p.gone <- pulseGone{id, readPulse(kv.Value).Owner}:
			case <-ctx.Done():
			}
			return
		case <-ctx.Done():
		}
	}
}

// called notes a call for pulses, which led to a value, and has the member answer it if it is called or calls itself.
func (p *player) called(by string, v cluster.Value) {
	l := p.incarnation
	if l == nil {
		return
	}
	called := cluster.Called(v, by)
	if l.id == by {
		p.joining.call = call{position: v.Position(), called: called}
	}
	if l.id == by || slices.Contains(called, l.id) {
		p.answer(v.Position())
	}
}

// collect finds the dead among the members and joiners, once the member's own call for pulses was replayed. Those
// without a pulse are dead at once: all that the value knows have put one. Those that were called and are silent are
// dead answerMost after the caller's own answer, which shows that the store takes pulses. So nobody waits for the
// session of a member that died with the store's majority, which a new leader extends; and one that was merely slow
// joins again. It returns when to look again.
func (p *player) collect(ctx context.Context) time.Duration {
	c := &p.joining.call
	if c.position == 0 {
		return idle
	}
	if wait := time.Until(c.next); wait > 0 {
		return wait
	}
	pulses, err := p.Pulses(ctx)
	if err != nil {
		p.troubles.note(ctx, "can't look for pulses at present, trying again", err)
		c.next = time.Now().Add(retry.Jitter(backoff.Max))
		return backoff.Max
	}
	now := time.Now()
	if c.heard.IsZero() && pulses[p.incarnation.id].Answers >= c.position {
		c.heard = now
	}
	dead, silent := c.lacks(p.value, pulses)
	switch {
	case len(silent) == 0:
		*c = call{}
	case c.heard.IsZero():
		c.next = now.Add(hearBackoff.Max)
	case now.Before(c.heard.Add(answerMost + crowdOf(p.value))):
		c.next = c.heard.Add(answerMost + crowdOf(p.value))
	default:
		dead = append(dead, silent...)
		*c = call{}
	}
	for _, id := range dead {
		if _, known := p.dead[id]; !known {
			p.dead[id] = death{cluster.CauseFoundDead, pulses[id].Owner}
		}
	}
	if c.position != 0 {
		return time.Until(c.next)
	}
	p.log.Info("looked for dead members", "dead", len(p.dead), "silent", silent, "pulses", len(pulses))
	return idle
}

// lacks returns the members and joiners without a pulse, and those that were called and have not answered yet.
func (c *call) lacks(v cluster.Value, pulses map[string]Pulse) (gone, silent []string) {
	known := v.Members()
	for joiner := range v.Joins() {
		known = append(known, joiner)
	}
	for _, id := range known {
		p, ok := pulses[id]
		switch {
		case !ok:
			gone = append(gone, id)
		case p.Answers < c.position && slices.Contains(c.called, id):
			silent = append(silent, id)
		}
	}
	return gone, silent
}
