package grpcapi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/api/firnv1"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/server/door"
)

// Sizes of batches.
const (
	batch    = 1000   // IDs of a stream, if nothing else is asked for
	maxBatch = 10_000 // so that a call holds 80 kB of IDs, and as much where gRPC sends them from
)

// Stream gives batches until there is a reason to end. Send waits while gRPC has no room for more on the way: nothing is
// made meanwhile, nor does the service count it as a call.
func (g *giver) Stream(r *firnv1.StreamRequest, to grpc.ServerStreamingServer[firnv1.StreamResponse]) error {
	size, left := int64(r.GetBatchSize()), r.GetTotal()
	switch {
	case size < 0 || size > maxBatch:
		return server.Input(fmt.Errorf("batch_size is %d; want a number from 1 to %d, or 0 for %d", size, maxBatch, batch))
	case left < 0:
		return server.Input(fmt.Errorf("total is %d; want at least 1, or 0 for no end", left))
	case size == 0:
		size = batch
	}
	defer g.streams.Add(-1)
	if g.streams.Add(1) > maxStreams {
		return server.ErrCrowded
	}
	ctx, cancel := context.WithCancel(to.Context())
	defer cancel()
	defer context.AfterFunc(g.ending, cancel)()
	name, endless := named(r.GetSequencer()), left == 0
	var answer firnv1.StreamResponse // Send is done with it when it returns
	for endless || left > 0 {
		if !endless {
			size = min(size, left)
			left -= size
		}
		err := g.inTime(ctx, func() error {
			who, err := g.entrance.Admit(token(ctx)) // again for each: its token may be good no longer
			if err != nil {
				return err
			}
			return g.service.Many(ctx, who, name, int(size), func(ids []firn.ID) error {
				answer.Ids = appendIDs(answer.Ids[:0], ids)
				return nil
			})
		})
		if err != nil {
			return err
		}
		if to.Send(&answer) != nil {
			return errGone
		}
	}
	return nil
}

// inTime makes a batch as soon as the caller's limit allows it.
func (g *giver) inTime(ctx context.Context, give func() error) error {
	for {
		err := give()
		if g.ending.Err() != nil {
			return server.ErrDraining // whatever it was told meanwhile
		}
		var limit *door.LimitError
		if !errors.As(err, &limit) || limit.RetryAfter == 0 {
			return err
		}
		select {
		case <-time.After(limit.RetryAfter):
		case <-g.ending.Done():
			return server.ErrDraining
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
