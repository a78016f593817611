package etcdstore

import (
	"context"
	"sync"

	"google.golang.org/grpc/stats"
)

// connections tells of the connections to servers that are made. It is a stats.Handler of gRPC, which calls it before
// it sends anything over a connection.
type connections struct {
	mu    sync.Mutex
	newer chan struct{}
}

var _ stats.Handler = (*connections)(nil)

// next returns a channel that is closed when the next connection is made. It is the same one until then.
func (c *connections) next() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.newer == nil {
		c.newer = make(chan struct{})
	}
	return c.newer
}

// HandleConn notes that a connection is made.
func (c *connections) HandleConn(_ context.Context, event stats.ConnStats) {
	if _, ok := event.(*stats.ConnBegin); !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.newer != nil {
		close(c.newer)
		c.newer = nil
	}
}

// TagConn adds nothing.
func (*connections) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// TagRPC adds nothing.
func (*connections) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC does nothing.
func (*connections) HandleRPC(context.Context, stats.RPCStats) {}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
