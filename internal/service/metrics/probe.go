package metrics

import (
	"context"
	"time"

	"github.com/firn-id/firn/store"
)

const (
	probeWithin = time.Second // for a read of the store
	probeEvery  = time.Second // between two reads, at least
)

// probe checks whether the store answers.
type probe struct {
	turn  chan struct{} // held during a read; guards what follows
	asked time.Time
	last  reply
}

func newProbe() *probe { return &probe{turn: make(chan struct{}, 1)} }

// reply is the result of a read.
type reply struct {
	up      bool
	took    time.Duration
	entries int // in the log after the position
}

// ask reads the log after a position. Within probeEvery of the last read it returns that result.
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
