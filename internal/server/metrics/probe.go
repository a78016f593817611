package metrics

import (
	"context"
	"time"

	"github.com/firn-id/firn/store"
)

const (
	probeWithin = time.Second // how long an answer of the store is waited for
	probeEvery  = time.Second // how often it is asked at the most, however often the node is
)

// probe asks the store whether it answers.
type probe struct {
	turn  chan struct{} // has room for one, who asks, and guards what follows
	asked time.Time
	last  reply
}

func newProbe() *probe { return &probe{turn: make(chan struct{}, 1)} }

// reply is what came of it.
type reply struct {
	up      bool
	took    time.Duration
	entries int // that the log has after the position that was asked for
}

// ask reads what is in the log after a position. Who comes within a second of another gets the same answer.
func (p *probe) ask(log store.Log, after int64) reply {
	p.turn <- struct{}{}
	defer func() { <-p.turn }()
	if !p.asked.IsZero() && time.Since(p.asked) < probeEvery {
		return p.last
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeWithin)
	defer cancel()
	began := time.Now()
	batch, err := log.Read(ctx, store.Position(after))
	p.asked = time.Now()
	p.last = reply{up: err == nil, took: p.asked.Sub(began), entries: len(batch.Entries)}
	return p.last
}
