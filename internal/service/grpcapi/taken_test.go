package grpcapi_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/firn-id/firn/api/firnv1"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/grpcapi"
	"github.com/firn-id/firn/internal/test/servertest"
)

// homes is a listener whose callers come from where they say.
type homes struct {
	*bufconn.Listener
	next chan string
}

type home struct {
	net.Conn
	at net.Addr
}

func (h home) RemoteAddr() net.Addr { return h.at }

func (h *homes) Accept() (net.Conn, error) {
	c, err := h.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return home{c, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(<-h.next))}, nil
}

// dial makes a connection from an address.
func (h *homes) dial(t *testing.T, from string) firnv1.FirnClient {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///test", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			select {
			case h.next <- from:
			default: // it is dialled again, after it was closed
				return nil, net.ErrClosed
			}
			return h.DialContext(ctx)
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return firnv1.NewFirnClient(conn)
}

// besieged serves a fake to whoever comes from anywhere, under a clock that stands still while there is something to
// do.
func besieged(t *testing.T, test func(*testing.T, *homes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := &homes{bufconn.Listen(256 << 10), make(chan string, 1)}
		service := calls.New(servertest.Join(t), calls.Options{Default: new(servertest.Issuer), MaxAnswers: 32 << 20})
		s := grpcapi.New(service, trusting)
		served := make(chan error, 1)
		go func() { served <- s.Serve(h) }()
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			if err := s.Shutdown(ctx); err != nil {
				t.Errorf("the server stops: %v", err)
			}
			if err := <-served; err != nil {
				t.Errorf("it served: %v", err)
			}
		})
		test(t, h)
	})
}

func recv(t *testing.T, stream grpc.ServerStreamingClient[firnv1.StreamResponse], times int) {
	t.Helper()
	for range times {
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
	}
}

// A thousand streams that nobody reads, on ten connections, don't keep anybody from having one, whose own is read goes
// on, and in the end they are gone.
func TestUnreadStreams(t *testing.T) {
	besieged(t, func(t *testing.T, h *homes) {
		before, err := h.dial(t, "10.0.0.1:1").Stream(t.Context(), &firnv1.StreamRequest{})
		if err != nil {
			t.Fatal(err)
		}
		recv(t, before, 100)
		var unread []grpc.ServerStreamingClient[firnv1.StreamResponse]
		for i := range 10 {
			attacker := h.dial(t, fmt.Sprintf("10.0.0.9:%d", i+1))
			for range 100 {
				stream, err := attacker.Stream(t.Context(), &firnv1.StreamRequest{BatchSize: grpcapi.MaxBatch})
				if err != nil {
					t.Fatal(err)
				}
				unread = append(unread, stream)
			}
		}
		time.Sleep(5 * time.Second)
		began := time.Now()
		recv(t, before, 100)
		// another caller, and another connection of the same
		for _, from := range []string{"10.0.0.2:1", "10.0.0.9:100"} {
			another := h.dial(t, from)
			stream, err := another.Stream(t.Context(), &firnv1.StreamRequest{Total: 100_000})
			if err != nil {
				t.Fatal(err)
			}
			recv(t, stream, 100)
			if _, err := another.NextBatch(t.Context(), &firnv1.NextBatchRequest{Count: grpcapi.MaxBatch}); err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("300 000 IDs for others took %v", took)
		}
		for range 90 { // it is read on and on
			time.Sleep(time.Second)
			recv(t, before, 10)
		}
		ends := map[codes.Code]int{}
		for _, stream := range unread {
			err := error(nil)
			for err == nil {
				_, err = stream.Recv()
			}
			ends[status.Code(err)]++
		}
		if ends[codes.Unavailable] == 0 || ends[codes.Unavailable]+ends[codes.ResourceExhausted] != 1000 {
			t.Errorf("the others ended with %v", ends)
		}
		recv(t, before, 100)
	})
}

// A stream that is read again in time, and not at once, brings what was sent, and why it has ended.
func TestStreamThatPauses(t *testing.T) {
	besieged(t, func(t *testing.T, h *homes) {
		stream, err := h.dial(t, "10.0.0.1:1").Stream(t.Context(), &firnv1.StreamRequest{BatchSize: grpcapi.MaxBatch})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(25 * time.Second)
		recv(t, stream, 20)
		time.Sleep(40 * time.Second)
		for err == nil {
			_, err = stream.Recv()
		}
		wants(t, "a stream that was not read for 40 s", err,
			refusal{code: codes.Canceled, says: "it read nothing of the stream for 30s"})
	})
}

// Batches that nobody takes don't keep others from theirs, and the connection ends.
func TestUntakenBatches(t *testing.T) {
	besieged(t, func(t *testing.T, h *homes) {
		// The caller's window is full, so that nothing else is taken of the connection.
		attacker := h.dial(t, "10.0.0.9:1")
		stream, err := attacker.Stream(t.Context(), &firnv1.StreamRequest{BatchSize: grpcapi.MaxBatch})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 100)
		for range 100 {
			go func() {
				_, err := attacker.NextBatch(t.Context(), &firnv1.NextBatchRequest{Count: grpcapi.MaxBatch})
				ended <- err
			}()
		}
		time.Sleep(time.Second)
		if _, err := h.dial(t, "10.0.0.1:1").
			NextBatch(t.Context(), &firnv1.NextBatchRequest{Count: grpcapi.MaxBatch}); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		for err == nil {
			_, err = stream.Recv()
		}
		wants(t, "the stream", err, refusal{code: codes.Unavailable})
		for range 100 {
			<-ended
		}
	})
}
