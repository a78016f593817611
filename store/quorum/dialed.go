package quorum

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// dialed are the connections of a client to the servers. A server that has frozen or was cut off is noticed by a call
// that ends without an answer: its connection is closed, so that the next calls go to the others. gRPC itself takes up
// to 15 s, and gives a third of the calls to that server meanwhile. Its methods are safe for concurrent use.
type dialed struct {
	mu  sync.Mutex // guards all
	all map[string]*connection
}

// connection is one to a server, which its local address identifies.
type connection struct {
	net.Conn
	of    *dialed
	heard atomic.Pointer[time.Time] // when the server last sent something
}

// add returns a connection that is watched until it is closed.
func (c *dialed) add(conn net.Conn) net.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	added := &connection{Conn: conn, of: c}
	if c.all == nil {
		c.all = map[string]*connection{}
	}
	c.all[conn.LocalAddr().String()] = added
	return added
}

func (c *connection) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		now := time.Now()
		c.heard.Store(&now)
	}
	return n, err
}

func (c *connection) Close() error {
	c.of.mu.Lock()
	if address := c.LocalAddr().String(); c.of.all[address] == c {
		delete(c.of.all, address)
	}
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// silentFor is how long a server that has a call to answer may send nothing at all.
const silentFor = time.Second

// watch closes the connection of a call that was in vain, if the server has sent nothing since it began.
func (c *dialed) watch(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	var server peer.Peer
	began := time.Now()
	err := invoke(ctx, method, request, reply, conn, append(options[:len(options):len(options)], grpc.Peer(&server))...)
	if status.Code(err) != codes.DeadlineExceeded || time.Since(began) < silentFor || server.LocalAddr == nil {
		return err
	}
	c.mu.Lock()
	asked := c.all[server.LocalAddr.String()]
	c.mu.Unlock()
	if asked != nil {
		if heard := asked.heard.Load(); heard == nil || heard.Before(began) {
			_ = asked.Close()
		}
	}
	return err
}
