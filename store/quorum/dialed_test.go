package quorum

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// frozen is a connection on which nothing arrives while its flag is set.
type frozen struct {
	net.Conn
	flag   *atomic.Bool
	once   sync.Once
	closed chan struct{}
}

func (f *frozen) Read(b []byte) (int, error) {
	n, err := f.Conn.Read(b)
	if f.flag.Load() {
		<-f.closed
		return 0, net.ErrClosed
	}
	return n, err
}

func (f *frozen) Close() error {
	f.once.Do(func() { close(f.closed) })
	return f.Conn.Close()
}

// The connection to a server that has frozen is closed when a call had no answer, and not that to a server which only
// does not answer the call.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		if err := stream.RecvMsg(new(etcdserverpb.RangeRequest)); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if name, _ := grpc.MethodFromServerStream(stream); name == "/test/answer" {
			return stream.SendMsg(new(etcdserverpb.RangeRequest))
		}
		<-stream.Context().Done()
		return stream.Context().Err()
	}))
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)

	var dials atomic.Int32
	var freeze atomic.Bool
	servers := new(dialed)
	client, err := grpc.NewClient("passthrough:///"+l.Addr().String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithChainUnaryInterceptor(servers.watch),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			dials.Add(1)
			c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
			if err != nil {
				return nil, err
			}
			return servers.add(&frozen{Conn: c, flag: &freeze, closed: make(chan struct{})}), nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		servers.mu.Lock()
		defer servers.mu.Unlock()
		if len(servers.all) > 0 {
			t.Errorf("%d connections are watched after they were closed", len(servers.all))
		}
	})
	call := func(method string, within time.Duration, want codes.Code) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		if got := status.Code(client.Invoke(ctx, method, new(etcdserverpb.RangeRequest), new(etcdserverpb.RangeRequest),
			grpc.WaitForReady(true))); got != want {
			t.Errorf("%s: %v; want %v", method, got, want)
		}
	}
	connected := func(want int32) {
		t.Helper()
		if got := dials.Load(); got != want {
			t.Errorf("connected %d times; want %d", got, want)
		}
	}
	call("/test/answer", patience, codes.OK)
	busy := make(chan struct{})
	go func() { // so that the server sends something
		defer close(busy)
		for range 15 {
			call("/test/answer", patience, codes.OK)
			time.Sleep(silentFor / 10)
		}
	}()
	call("/test/hang", silentFor*11/10, codes.DeadlineExceeded)
	<-busy
	connected(1)
	freeze.Store(true)
	call("/test/hang", silentFor/10, codes.DeadlineExceeded)
	connected(1)
	call("/test/hang", silentFor*11/10, codes.DeadlineExceeded)
	freeze.Store(false)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for dials.Load() < 2 { // a call may come before gRPC notices
		err := client.Invoke(ctx, "/test/answer", new(etcdserverpb.RangeRequest), new(etcdserverpb.RangeRequest))
		if ctx.Err() != nil {
			t.Fatalf("the connection to a server that is silent was not closed: %v", err)
		}
	}
	call("/test/answer", patience, codes.OK)
}
