package client

import (
	"context"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/firn-id/firn"
)

// Sequencer takes IDs of one sequencer. It is safe for concurrent use. Client.Sequencer returns one; the zero value does
// not work.
type Sequencer struct {
	client *Client
	name   string // empty: the default one
	path   string // of its calls
	stock  *stock // nil without WithPrefetch

	mu     sync.Mutex // guards what follows
	routes []*route   // one for each node
	turn   int        // which route was taken last
	paces  [paces]pace
}

func newSequencer(c *Client, name string) *Sequencer {
	s := &Sequencer{client: c, name: name, path: "/api/v1"}
	if name != "" {
		s.path += "/sequencers/" + url.PathEscape(name)
	}
	for i, node := range c.nodes {
		s.routes = append(s.routes, &route{index: i, node: node})
	}
	if c.config.ahead {
		s.stock = newStock(s, c.config.count, c.config.maxAge)
	}
	return s
}

// Next returns an ID.
//
// It waits until ctx ends, or for DefaultTimeout when ctx has no deadline. An *[Error] is returned as soon as a node refuses
// for a reason that the caller must fix: a wrong token (401, 403), an unknown sequencer (404), more IDs than a limit allows
// (429, with RetryAfter), or a layout whose time has run out (503 lifetime). [ErrNoAnswer] is returned when ctx ends first,
// and [ErrClosed] after Close.
func (s *Sequencer) Next(ctx context.Context) (firn.ID, error) {
	if s.stock != nil && s.client.config.hooks.Call == nil && ctx.Err() == nil {
		if id, ok := s.stock.next(); ok {
			return id, nil
		}
	}
	var ids [1]firn.ID
	err := s.Fill(ctx, ids[:])
	return ids[0], err
}

// Fill fills ids, in ascending order. For each 100000 it sends one request, one after the other; for none it does nothing.
//
// Its time and its errors are those of Next. In case of an error, ids is unchanged.
func (s *Sequencer) Fill(ctx context.Context, ids []firn.ID) error {
	if err := s.client.enter(); err != nil {
		return err
	}
	defer s.client.leave()
	if len(ids) == 0 {
		return nil
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, DefaultTimeout)
		defer cancel()
	}
	began := time.Now()
	age, err := s.fill(ctx, ids)
	s.client.config.hooks.call(Call{s.name, len(ids), time.Since(began), age, err})
	return err
}

// fill also returns the age of the oldest ID.
func (s *Sequencer) fill(ctx context.Context, ids []firn.ID) (age time.Duration, err error) {
	switch {
	case s.stock != nil && len(ids) <= s.stock.count:
		return s.stock.take(ctx, ids)
	case len(ids) <= maxCount:
		b, err := s.ask(ctx, len(ids))
		if err != nil {
			return 0, err
		}
		copy(ids, b.ids)
		return time.Since(b.asked), nil
	}
	all := make([]firn.ID, 0, len(ids))
	var first time.Time
	for len(all) < len(ids) {
		b, err := s.ask(ctx, min(len(ids)-len(all), maxCount))
		if err != nil {
			return 0, err
		}
		if len(all) == 0 {
			first = b.asked
		}
		all = append(all, b.ids...)
	}
	slices.Sort(all) // they may be from several nodes
	copy(ids, all)
	return time.Since(first), nil
}

func (s *Sequencer) drop() {
	if s.stock != nil {
		s.stock.drop()
	}
}
