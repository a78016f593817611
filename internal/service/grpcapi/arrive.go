package grpcapi

import (
	"context"
	"sync/atomic"
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/tap"

	"github.com/firn-id/firn/internal/service/admit/conns"
)

// crowdedKey is the context key of calls beyond the limit.
type crowdedKey struct{}

// crowded tells whether a call is to be refused because it is beyond the limit.
func crowded(ctx context.Context) bool { return ctx.Value(crowdedKey{}) != nil }

// limit allows so many calls at a time. Half of them may be ones that need no token and may never end.
func (s *Server) limit(calls int) {
	s.open, s.watches = conns.NewQuota(calls), conns.NewQuota(max(1, calls/2))
}

// arrives is called when the headers of a call have been read. It counts the call, in all and for its connection, which
// is not idle meanwhile, until the call has ended and the caller has read the answer. That includes calls whose request
// never comes, which interceptors do not see.
//
// A call beyond the limit is not refused here, as gRPC would keep its context for the life of the connection. It is
// marked as crowded, unless it is a health check, and ends soon if its request does not come. When as many calls wait
// to be refused as are served, the connection of the next one is closed.
func (s *Server) arrives(ctx context.Context, info *tap.Info) (context.Context, error) {
	c := connOf(ctx)
	from, conn := c.remote.Addr, c.Conn
	if conns.ProbesOnly(conn) || !s.open.Take(from) {
		if s.refusing.Add(1) > int64(s.service.MaxCalls()) {
			_ = c.Close()
		}
		within, cancel := context.WithTimeout(ctx, refuseWithin)
		context.AfterFunc(ctx, func() {
			cancel()
			s.refusing.Add(-1)
		})
		if info.FullMethodName != healthpb.Health_Check_FullMethodName {
			within = context.WithValue(within, crowdedKey{}, true)
		}
		return within, nil
	}
	conns.Begin(conn)
	a := &arrival{done: func() {
		conns.End(conn)
		s.open.Give(from)
	}}
	a.parts.Store(1)
	context.AfterFunc(ctx, a.end) // it ends when the call does, or its connection
	return context.WithValue(ctx, arrivalKey{}, a), nil
}

// arrival is a call that counts until it has ended and, if its answer is kept, the caller has read that.
type arrival struct {
	parts atomic.Int64 // the call, and its answer
	done  func()
}

type arrivalKey struct{}

// end ends one of its parts.
func (a *arrival) end() {
	if a.parts.Add(-1) == 0 {
		a.done()
	}
}

// keepCounted makes a call count until the caller has read its answer. One that is kept already counts by that.
func (s *Server) keepCounted(ctx context.Context, answer any) {
	a, ok := ctx.Value(arrivalKey{}).(*arrival)
	if _, kept := s.answers.Load(answer); kept || !ok {
		return
	}
	a.parts.Add(1)
	s.keep(connOf(ctx), answer, nil, a.end, nil)
}

// refuseWithin limits the time of a call beyond the limit.
const refuseWithin = 100 * time.Millisecond

// watching counts a call that needs no token and may never end, until done is called. It is not ok when there are too
// many.
func (s *Server) watching(ctx context.Context) (done func(), ok bool) {
	from := connOf(ctx).remote.Addr
	if !s.watches.Take(from) {
		return nil, false
	}
	return func() { s.watches.Give(from) }, true
}
