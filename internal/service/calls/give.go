package calls

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/codes"
)

// Next gives an ID of a sequencer. By is the member that made it, if this node had another one do that, and else empty.
func (s *Service) Next(ctx context.Context, who *auth.Caller, name string) (id firn.ID, by string, err error) {
	if err := s.admit(who, auth.Issue, name, 1); err != nil {
		return 0, "", err
	}
	defer s.end(who)
	within := newLazyTimeout(ctx, s.timeout)
	defer within.end()
	by, err = s.from(within, who, name, func(m Issuer) (err error) {
		id, err = m.Next(within)
		return err
	})
	if err == nil && by == "" {
		s.given.add(name, 1)
	}
	return id, by, err
}

// Many calls deliver with count IDs of a sequencer, in the order in which they were made, and returns its error. At is
// the address of the caller's end of the connection, as host:port; empty: unknown. Undelivered answers take a limited
// memory, of which each caller may have a share: beyond it a caller waits, and gets ErrCrowded when it has waited too
// long.
func (s *Service) Many(ctx context.Context, who *auth.Caller, at, name string, count int,
	deliver func(*Batch) error,
) error {
	return s.ManyAfter(ctx, who, at, name, 0, count, deliver)
}

// ManyAfter is Many with IDs that all exceed another one, whichever node made that: see peer.Sequencer.FillAfter. The
// error has the code Clock when it lies too far ahead of this node's clock for the caller, and BadRequest when it does
// for everybody, or when the sequencer has no such ID. The numbers of a counter exceed it only if this node gave it.
// Zero: any IDs.
func (s *Service) ManyAfter(ctx context.Context, who *auth.Caller, at, name string, after firn.ID, count int,
	deliver func(*Batch) error,
) error {
	if err := checkCount(count); err != nil {
		return err
	}
	within, end, err := s.begin(ctx, who, auth.Issue, name, count)
	if err != nil {
		return err
	}
	defer end()
	c := call{
		turns: &s.turns, caller: partyOf(who, at), name: name, after: after, wants: count,
	}
	if after != 0 {
		c.most = mostAhead(who, name)
	}
	if c.release, err = s.hold(ctx, within, c.caller, at, answerSize(count)); err != nil {
		return err
	}
	defer func() {
		if c.release != nil {
			c.release()
		}
	}()
	c.by, err = s.from(within, who, name, func(m Issuer) error { return c.fill(within, m) })
	if err != nil {
		return err
	}
	if c.by == "" {
		s.given.add(name, count)
	}
	return deliver(&c.Batch)
}

// Hold takes size bytes of the memory for answers, for something else, until release is called. It waits as Many
// does.
func (s *Service) Hold(ctx context.Context, who *auth.Caller, at string, size int64) (release func(), err error) {
	within := newLazyTimeout(ctx, s.timeout)
	defer within.end()
	return s.hold(ctx, within, partyOf(who, at), at, size)
}

// TryHold is Hold for a caller without a token, at its address. It does not wait: it is not ok when there is no room.
func (s *Service) TryHold(at string, size int64) (release func(), ok bool) {
	return s.shares.try(partyOf(nil, at), at, size)
}

// answerSize returns the most bytes that an undelivered answer with count IDs takes: a buffer of 32 KiB when it
// is long, and what is around it.
func answerSize(count int) int64 { return 4<<10 + min(int64(count)*32, 124<<10) }

// hold takes size bytes of the memory for answers until release is called. It waits for other calls until within
// ends, which derives from ctx.
func (s *Service) hold(ctx, within context.Context, caller party, at string, size int64) (release func(), err error) {
	release, err = s.shares.hold(within, caller, at, size)
	if err != nil && ctx.Err() == nil {
		err = ErrCrowded
	}
	return release, err
}

// call is a call for several IDs of a sequencer, with those that were made.
type call struct {
	Batch
	turns  *turns
	caller party
	name   string
	after  firn.ID       // the IDs exceed this one
	most   time.Duration // how far ahead of the clock the caller may move ID time for that
	wants  int
}

// fill has an issuer make all IDs: many of them a piece at a time, each in a turn of the caller.
func (c *call) fill(ctx context.Context, m Issuer) error {
	ids := pieces.Get().(*[piece]firn.ID)
	defer pieces.Put(ids)
	c.runs, c.count, c.definition = c.runs[:0], 0, m.Definition()
	if err := checkAfter(c.definition, c.after); err != nil {
		return err
	}
	if c.wants <= few {
		return c.make(ctx, m, ids[:c.wants])
	}
	l, leave := c.turns.enter(c.name)
	defer leave()
	rate := rateOf(m)
	most := int(min(max(rate*turnTime.Seconds(), 1), piece))
	for c.Len() < c.wants {
		n := min(c.wants-c.Len(), most)
		takes := time.Duration(float64(n) / (rate * (1 - leftShare)) * float64(time.Second))
		if err := l.take(ctx, c.caller, takes, c.Len() > 0); err != nil {
			return err
		}
		if err := l.use(func() error { return c.make(ctx, m, ids[:n]) }); err != nil {
			return err
		}
	}
	return nil
}

// make has an issuer make IDs after those that there are.
func (c *call) make(ctx context.Context, m Issuer, ids []firn.ID) error {
	after, most := c.after, c.most
	if c.Len() > 0 {
		after, most = c.Last(), peer.MaxAhead
	}
	err := explainAhead(m.FillAfter(ctx, after, most, ids), most)
	if err == nil {
		c.add(ids)
	}
	return err
}

// from calls give with the issuer of a sequencer, and, if this node has no IDs, once more with that of another one,
// whose member ID is by then.
func (s *Service) from(ctx context.Context, who *auth.Caller, name string,
	give func(Issuer) error,
) (by string, err error) {
	if first, ok := s.rival(ctx, who, name); ok {
		by, done, err := s.fromElsewhere(first, give)
		if done && (err == nil || CodeOf(err) == codes.BadRequest) {
			return by, err
		}
		if done { // this node may give some
			s.peers.failed(name, first.at.id)
		}
	}
	if err = s.fromHere(ctx, who, name, give); err == nil {
		return "", nil
	}
	defer func() {
		if err != nil {
			s.noteFailed(ctx, name, err)
		}
	}()
	if other, ok := s.elsewhere(ctx, who, name, err); ok {
		if by, done, why := s.fromElsewhere(other, give); done {
			return by, why
		}
	}
	return "", err
}

// fromElsewhere calls give with an issuer at another node, which is by. It is not done when that node gave no IDs for a
// reason of its own.
func (s *Service) fromElsewhere(other *elsewhere, give func(Issuer) error) (by string, done bool, err error) {
	if !s.forwarded.begin(s.options.MaxCalls) {
		return "", false, nil
	}
	err = give(other)
	s.forwarded.end(err)
	if refused, ok := errors.AsType[*ElsewhereError](err); ok && refused.ofCaller() {
		return "", true, err
	}
	return other.at.id, err == nil, nil
}

// fromHere calls give with the issuer of a sequencer, and again after the member has attached to it, if it must and
// may.
func (s *Service) fromHere(ctx context.Context, who *auth.Caller, name string, give func(Issuer) error) error {
	m, err := s.find(name)
	if err == nil {
		err = give(m)
	}
	if errors.Is(err, peer.ErrNotReady) {
		if m, err = s.attached(ctx, who, name, err); err != nil {
			return err
		}
		err = give(m)
	}
	if m == nil {
		return err
	}
	if errors.Is(err, firn.ErrLifetime) || errors.Is(err, context.DeadlineExceeded) {
		if why := m.Ready(); errors.Is(why, firn.ErrLifetime) { // it says when the lifetime ends or begins
			return why
		}
	}
	if errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, peer.ErrNotReady) {
		if rate := rateOf(m); !math.IsInf(rate, 1) {
			return &busyError{s.timeout, rate}
		}
	}
	return err
}

// rateOf returns how many IDs a second an issuer makes at most: a counter any number.
func rateOf(m Issuer) float64 {
	d := m.Definition()
	if d.Claimed() {
		return math.Inf(1)
	}
	return d.IDLayout().Rate()
}

// busyError says that a node did not make that many IDs in time.
type busyError struct {
	within time.Duration
	rate   float64 // IDs per second
}

func (e *busyError) Error() string {
	return fmt.Sprintf("no answer within %v: this node makes at most %.0f IDs a second; ask for fewer, or more servers",
		e.within, e.rate)
}

// Reason returns the code of the error, as docs/errors.md has it.
func (*busyError) Reason() string { return string(codes.Overloaded) }
