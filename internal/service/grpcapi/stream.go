package grpcapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"github.com/firn-id/firn/api/firnv1"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
)

// Sizes of batches.
const (
	batch    = 1000   // IDs, by default
	maxBatch = 10_000 // so that a call holds 80 kB of IDs, and as much in gRPC's buffers
	maxTexts = 2000   // so that it does with texts, too
)

// Stream gives batches until it has a reason to end. While the caller does not read, it makes no IDs, and does not
// count as a call of the service.
func (g *giver) Stream(r *firnv1.StreamRequest, to grpc.ServerStreamingServer[firnv1.StreamResponse]) error {
	size, left := int64(r.GetBatchSize()), r.GetTotal()
	last, err := readAfter(r)
	switch {
	case err != nil:
		return err
	case size < 0 || size > int64(mostOf(r.GetForm())):
		return calls.Input(fmt.Errorf("batch_size is %d; want a number from 1 to %d, or 0 for %d", size,
			mostOf(r.GetForm()), batch))
	case left < 0:
		return calls.Input(fmt.Errorf("total is %d; want at least 1, or 0 for no limit", left))
	case size == 0:
		size = batch
	}
	ctx, cancel := context.WithCancel(to.Context())
	defer cancel()
	defer context.AfterFunc(g.ending, cancel)()
	name, endless, shown := named(r.GetSequencer()), left == 0, token(ctx)
	ctx, stop := auth.While(ctx, func() error {
		who, err := g.policy.Admit(shown)
		if err == nil {
			err = who.May(auth.Issue, name)
		}
		return err
	})
	defer stop()
	from, sent := connOf(ctx), sent{taken: make(chan int, sendMost)}
	release, err := g.service.Hold(ctx, callerOf(ctx), from.at, streamSize)
	if err != nil {
		return g.why(err)
	}
	defer release()
	var answer firnv1.StreamResponse // stands for what is encoded already; Send is done with it when it returns
	for endless || left > 0 {
		if !endless {
			size = min(size, left)
			left -= size
		}
		if sent.full() {
			if err := sent.wait(ctx); err != nil {
				return g.why(auth.Revoked(ctx, err))
			}
		}
		err := g.inTime(ctx, func() error {
			who, err := g.policy.Admit(shown) // again for each, as the token may have been revoked
			if err != nil {
				return err
			}
			texts, err := g.texts(ctx, who, name, r.GetForm())
			if err != nil {
				return err
			}
			return g.service.ManyAfter(ctx, who, from.at, name, last, int(size), func(ids *calls.Batch) error {
				last = ids.Last()
				madeBy(ctx, ids.By())
				encoded, err := encode(ids, texts)
				if err != nil {
					return err
				}
				g.keep(from, &answer, encoded, ids.Keep(), sent.add(len(*encoded)))
				return nil
			})
		})
		if err != nil {
			return auth.Revoked(ctx, err)
		}
		if to.Send(&answer) != nil {
			return errGone
		}
	}
	return nil
}

// sent is the part of a stream that was sent and not read.
type sent struct {
	messages, bytes int
	taken           chan int // the bytes of each message that was read; it has room for all
}

// add notes a message of so many bytes, and returns what to call when it is read.
func (s *sent) add(size int) (taken func()) {
	s.messages++
	s.bytes += size
	return func() { s.taken <- size }
}

// full tells whether there is no room for a message. If there is, Send does not block: gRPC has room for 64 KiB and one
// message more.
func (s *sent) full() bool { return s.messages == sendMost || s.bytes > sendAhead }

// wait waits until there is room for several messages: to wake up for each would cost as much as to make it.
func (s *sent) wait(ctx context.Context) error {
	late := time.NewTimer(sendWithin)
	defer late.Stop()
	for s.messages > sendMost/2 || s.bytes > sendAhead/2 {
		select {
		case size := <-s.taken:
			s.messages--
			s.bytes -= size
		case <-late.C:
			return errUnread
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// errUnread is returned when a stream has waited for too long.
var errUnread = fmt.Errorf("%w: it read nothing of the stream for %v", errGone, sendWithin)

// why returns ErrDraining while the server drains, and else err.
func (g *giver) why(err error) error {
	if g.ending.Err() != nil {
		return calls.ErrDraining
	}
	return err
}

// inTime makes a batch as soon as the caller's limit allows it.
func (g *giver) inTime(ctx context.Context, give func() error) error {
	for {
		err := give()
		var limit *auth.LimitError
		if g.ending.Err() != nil || !errors.As(err, &limit) || limit.RetryAfter == 0 {
			return g.why(err)
		}
		select {
		case <-time.After(limit.RetryAfter):
		case <-g.ending.Done():
			return calls.ErrDraining
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
