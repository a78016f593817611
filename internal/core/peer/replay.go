package peer

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/store"
)

// reading is what a player knows of the log that it reads. It forgets that where it begins again.
type reading struct {
	started bool // the log was read up to its end at the start
	pending map[string]*pendingCommand
	joining joining
	watched map[string]context.CancelFunc // the pulses being watched
	gone    chan pulseGone                // pulses that disappear
	dead    map[string]death              // members and joiners without a pulse that the value still has
	// the value at the last position where a checkpoint was due: the next checkpoint
	anchor cluster.Value
	founds time.Time // when to found the cluster, if no other member has by then
	retry  time.Time // when to try a new incarnation again
	failed int       // how many attempts failed

	identified bool // this incarnation has read the cluster's ID
}

func newReading() reading {
	return reading{
		pending: map[string]*pendingCommand{}, watched: map[string]context.CancelFunc{},
		gone: make(chan pulseGone), dead: map[string]death{},
	}
}

// In a crowd entries come all the time, few of them concern this member, and waking up costs more than replaying one.
// So after a batch the log is left alone for perMember for each member and each joiner in line beyond the first
// fewMembers. An entry that comes later is replayed at once.
const (
	fewMembers = 16
	perMember  = 40 * time.Microsecond
)

// delivery is a batch of the log, or the error that ended it.
type delivery struct {
	batch store.Batch
	err   error
}

// follow returns a channel of the log's batches. It is never closed; nothing arrives after the end of ctx.
func (p *player) follow(ctx context.Context) <-chan delivery {
	deliveries := make(chan delivery)
	p.running.Go(func() {
		for batch, err := range p.store.Follow(ctx, 0) {
			select {
			case deliveries <- delivery{batch, err}:
			case <-ctx.Done():
				return
			}
			_ = retry.Sleep(ctx, time.Duration(p.rest.Load())) // what comes meanwhile is one batch
		}
	})
	return deliveries
}

// replay applies a batch of the log.
func (p *player) replay(ctx context.Context, b store.Batch) error {
	r, last := cluster.NewReplay(p.value), p.entry
	var expelled error
	if b.Checkpoint != nil {
		v, err := p.restore(*b.Checkpoint)
		if err != nil {
			return err
		}
		if p.started {
			p.log.Warn("the log was cut before this member read it, going on from the checkpoint", "was_at",
				p.value.Position(), "checkpoint", b.Checkpoint.Position)
			p.miss()
		}
		p.anchor = v
		p.tail.restart(v)
		p.joining.line = line{}
		expelled = p.skipTo(v)
		r, last = cluster.NewReplay(v), ""
	}
	outcomes := map[string]outcome{}
	var stop error
	for _, e := range b.Entries {
		if expelled != nil {
			break
		}
		entry, err := p.decode(e)
		if err != nil {
			stop = err
			break
		}
		last = e.ID
		out, ends := p.apply(r, entry)
		expelled = ends
		if l := p.incarnation; l != nil && !l.joined && joinerOf(entry.Command) == l.id {
			if v := r.Value(); v.IsMember(l.id) {
				l.joined, p.joining = true, joining{}
				p.log.Info("joined the cluster", "member", l.id, "members", v.Size(), "position", e.Position)
			}
		}
		p.joining.saw(entry.Command, out, p.incarnation)
		p.mourn(entry.Command, out)
		if p.awaited(e.ID) {
			outcomes[e.ID] = outcome{Outcome: out, value: r.Value()}
		}
		if r.Entries()%p.options.CheckpointEvery == 0 {
			p.recordCheckpoint(ctx, r.Value())
		}
	}
	v := r.Value()
	if region, ok := v.Region(); ok && region != p.options.Region {
		return &RegionError{InForce: region, Wanted: p.options.Region}
	}
	p.started = p.started || !b.More
	p.rest.Store(int64(perMember * time.Duration(max(0, v.Size()+p.joining.line.len()-fewMembers))))
	p.tail.add(b.Entries, v)
	p.publish(v, last, p.incarnation)
	p.settle(outcomes)
	return cmp.Or(expelled, stop)
}

// restore returns the value of a checkpoint; an empty one stands for an empty log. The error is a *stopped.
func (p *player) restore(c store.Checkpoint) (cluster.Value, error) {
	if c.Position == 0 {
		return cluster.Value{}, nil
	}
	v, err := cluster.DecodeCheckpoint(c.Value)
	if err == nil {
		err = p.skips.fits(v)
	}
	if unreadable, ok := errors.AsType[*cluster.UnreadableError](err); ok {
		err = &stopped{at: int64(c.Position), unreadable: unreadable}
	}
	return v, err
}

// decode reads an entry of the log. The error is a *stopped.
func (p *player) decode(e store.LogEntry) (cluster.Entry, error) {
	at := int64(e.Position)
	if p.skips.has(at, e.ID) { // whether this program could read it or not
		return cluster.Entry{Position: at, Command: cluster.Skipped{Entry: e.ID}}, nil
	}
	entry, err := cluster.Decode(at, e.Data)
	if unreadable, ok := errors.AsType[*cluster.UnreadableError](err); ok {
		err = &stopped{at: at, entry: e.ID, unreadable: unreadable}
	}
	return entry, err
}

// publish shows the value, which an entry led to, and the incarnation to other goroutines.
func (p *player) publish(v cluster.Value, entry string, l *incarnation) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.value, p.entry, p.incarnation = v, entry, l
	p.hasJoined = p.hasJoined || l != nil && v.IsMember(l.id)
	if v.Position() == 0 { // it begins to read, perhaps another log
		p.tail.restart(v)
	}
	close(p.changed)
	p.changed = make(chan struct{})
}

// awaited reports whether a caller waits for an entry.
func (p *player) awaited(entry string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.outcomes[entry] != nil
}

// settle sends outcomes to the callers that wait for entries, once the published value has reached them.
func (p *player) settle(outcomes map[string]outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for entry, o := range outcomes {
		if came, ok := p.outcomes[entry]; ok {
			came <- o
			delete(p.outcomes, entry)
		}
	}
}

// miss tells all waiting callers that the member may have skipped their entries.
func (p *player) miss() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for entry, came := range p.outcomes {
		came <- outcome{missed: true}
		delete(p.outcomes, entry)
	}
}
