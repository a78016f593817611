package client

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/retry"
)

const (
	// answerWithin limits the time of a request. A node itself gives up after 10 s.
	answerWithin = 15 * time.Second

	// lingers is how long a request continues after another one has won: that shows whether its node works, and keeps
	// the connection.
	lingers = time.Second

	// mostOut limits the requests of one call to one URL at a time. A second one helps behind a balancer, or when the
	// connection of the first is dead.
	mostOut = 2
)

// backoff is how long a call waits after all nodes have failed.
var backoff = retry.Backoff{First: 25 * time.Millisecond, Max: time.Second}

// given is the IDs of one answer, or their texts.
type given struct {
	ids   []firn.ID
	texts []string
}

// batch is what a node gave, and when.
type batch struct {
	given
	asked time.Time // before the request was sent
}

// attempt is one request.
type attempt struct {
	route  *route
	hedged bool
	probe  bool // only to see whether the node works again
	cancel context.CancelFunc
	batch
	took    time.Duration
	leaving bool // the node closes the connection
	err     error
}

// call asks one node after the other for IDs, and several at once when they are slow.
type call struct {
	s   *Sequencer
	ctx context.Context
	query
	began    time.Time
	patience time.Duration // within which nearly every answer comes
	results  chan *attempt // has room for all attempts

	// bar is, once a request has won, the time in nanoseconds after which another one counts as slow. Until then it is
	// 0.
	bar atomic.Int64

	// The goroutine of the call owns the rest.
	live   []*attempt
	out    []int   // by node: requests without an answer
	tried  []bool  // by node: in this round
	failed []error // by node: the last error
	limit  error   // to return when no attempt succeeds
}

// ask asks until a node answers or ctx ends.
func (s *Sequencer) ask(ctx context.Context, q query) (batch, error) {
	began, nodes := time.Now(), len(s.routes)
	s.mu.Lock()
	patience := s.paces[class(q.n)].patience(q.n)
	s.mu.Unlock()
	c := &call{
		s: s, ctx: ctx, query: q, began: began, patience: patience, results: make(chan *attempt, nodes*mostOut),
		out: make([]int, nodes), tried: make([]bool, nodes), failed: make([]error, nodes),
	}
	return c.run()
}

func (c *call) run() (batch, error) {
	if c.ctx.Err() != nil {
		return batch{}, c.noAnswer()
	}
	c.next(false)
	if r := c.s.due(c.tried); r != nil {
		c.start(r, &attempt{probe: true, hedged: true})
	}
	wait, failures, resting := c.patience, 0, false
	timer := time.NewTimer(c.atMost(wait))
	defer timer.Stop()
	for {
		select {
		case a := <-c.results:
			c.ended(a)
			switch {
			case isLimit(a.err) && len(c.live) > 0:
				c.limit = a.err // perhaps only because this call has sent more than one request
			case a.err == nil, isFinal(a.err):
				c.won(a)
				return a.batch, a.err
			case c.limit != nil, a.probe && len(c.live) > 0:
			case !c.next(false) && !resting:
				resting = true
				timer.Reset(c.atMost(backoff.After(failures)))
				failures++
			}
			if c.limit != nil && len(c.live) == 0 {
				return batch{}, c.limit
			}
		case <-timer.C:
			if c.limit == nil && !c.next(len(c.live) > 0) {
				c.newRound()
				c.next(len(c.live) > 0)
			}
			resting = false
			wait = min(2*wait, longestPatience)
			timer.Reset(c.atMost(wait))
		case <-c.ctx.Done():
			return batch{}, c.noAnswer()
		}
	}
}

// atMost is d, but at most half of the time left, so that some is left for another node.
func (c *call) atMost(d time.Duration) time.Duration {
	deadline, ok := c.ctx.Deadline()
	if !ok {
		return d
	}
	return min(d, max(time.Until(deadline)/2, shortestPatience))
}

// next asks another node. It returns false when it has asked all in this round.
func (c *call) next(hedged bool) bool {
	r := c.s.pick(c.tried, c.out)
	if r != nil {
		c.start(r, &attempt{hedged: hedged})
	}
	return r != nil
}

func (c *call) newRound() {
	for i, out := range c.out {
		c.tried[i] = out >= mostOut
	}
}

// start sends a request, which may outlive the call.
func (c *call) start(r *route, a *attempt) {
	client := c.s.client
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), answerWithin)
	atClose := context.AfterFunc(client.life, cancel)
	a.route, a.cancel, a.asked = r, cancel, time.Now()
	c.tried[r.index] = true
	c.out[r.index]++
	c.live = append(c.live, a)
	client.tasks.Go(func() {
		defer cancel()
		defer atClose()
		q := c.query
		q.after = c.s.follows(r)
		a.given, a.leaving, a.err = client.post(ctx, r.node, c.s.path, q)
		a.took = time.Since(a.asked)
		if a.err != nil && ctx.Err() == context.Canceled {
			a.err = &nodeError{r.node, context.Canceled}
		}
		c.judge(a)
		client.config.hooks.attempt(Attempt{r.node, c.s.name, c.n, a.took, a.hedged, a.err})
		c.results <- a
	})
}

// follows returns the ID that those of a node are to exceed: the greatest, if another node gave that.
func (s *Sequencer) follows(r *route) firn.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seenAt == r {
		return 0
	}
	return s.seen
}

// ended removes an attempt that has ended.
func (c *call) ended(a *attempt) {
	for i := range c.live {
		if c.live[i] == a {
			c.live = append(c.live[:i], c.live[i+1:]...)
			break
		}
	}
	c.out[a.route.index]--
	c.failed[a.route.index] = a.err
}

// won ends the other attempts. The client avoids slow nodes from now on.
func (c *call) won(a *attempt) {
	bar := max(c.patience, 2*a.took)
	c.bar.Store(int64(bar))
	for _, other := range c.live {
		time.AfterFunc(lingers, other.cancel)
	}
	c.s.overtook(c, a, bar)
}

// noAnswer ends the attempts of a call whose context has ended. It returns the error of the call.
func (c *call) noAnswer() error {
	for _, a := range c.live {
		a.cancel()
	}
	if c.limit != nil {
		return c.limit
	}
	e := &noAnswerError{after: time.Since(c.began), cause: c.ctx.Err()}
	for i, r := range c.s.routes {
		err := c.failed[i]
		switch {
		case c.out[i] > 0 && err == nil:
			err = &nodeError{r.node, errNoAnswer}
		case err == nil:
			err = &nodeError{r.node, errNotAsked}
		}
		e.nodes = append(e.nodes, err)
	}
	return e
}

// judge updates the route of an attempt that has ended.
func (c *call) judge(a *attempt) {
	greatest := firn.ID(0)
	if len(a.ids) > 0 {
		greatest = slices.Max(a.ids)
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	r, now := a.route, time.Now()
	r.inFlight--
	if greatest > c.s.seen {
		c.s.seen, c.s.seenAt = greatest, r
	}
	bar := time.Duration(c.bar.Load())
	switch {
	case a.err == nil && (bar == 0 || a.took <= bar):
		r.works(now, a.leaving)
	case a.err == nil, isCanceled(a.err) && a.took > max(bar, c.patience):
		r.fails(now, &nodeError{r.node, fmt.Errorf("%w: %v", errSlow, a.took.Round(time.Millisecond))}, 0)
	case !isCanceled(a.err) && !isFinal(a.err):
		r.fails(now, a.err, retryAfter(a.err))
	}
}

// overtook records the time of a call's winner, and avoids nodes that are slow.
func (s *Sequencer) overtook(c *call, winner *attempt, bar time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if winner.err == nil {
		s.paces[class(c.n)].add(winner.took)
	}
	for _, a := range c.live {
		if out := now.Sub(a.asked); out > bar {
			a.route.fails(now,
				&nodeError{a.route.node, fmt.Errorf("%w: no answer for %v", errSlow, out.Round(time.Millisecond))}, 0)
		}
	}
}
