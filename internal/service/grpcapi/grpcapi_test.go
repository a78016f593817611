package grpcapi_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/firn-id/firn/api/firnv1"
	"github.com/firn-id/firn/internal/base/throttle"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/grpcapi"
	"github.com/firn-id/firn/internal/test/servertest"
)

// patience is how long anything may take that must happen. It is no claim about speed.
const patience = time.Minute

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const first = servertest.First

// rig is a server with a connection to it.
type rig struct {
	t       testing.TB
	service *calls.Service
	server  *grpcapi.Server
	conn    *grpc.ClientConn
	ids     firnv1.FirnClient
	admin   firnv1.AdminClient
	log     lockedBuffer
	trail   lockedBuffer // of audits
}

// lockedBuffer is a log that any goroutine can write.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// newRig serves a member under a policy.
func newRig(t testing.TB, m calls.Issuer, c *peer.Member, e *auth.Policy, options ...grpc.DialOption) *rig {
	t.Helper()
	return newRigWith(t, m, c, e, nil, options...)
}

// newMeteredRig serves a fake to an administrator, and has the calls counted.
func newMeteredRig(t testing.TB, f *servertest.Issuer, meter calls.Meter) *rig {
	t.Helper()
	return newRigWith(t, f, servertest.Join(t), trusting, meter)
}

func newRigWith(t testing.TB, m calls.Issuer, c *peer.Member, e *auth.Policy, meter calls.Meter,
	options ...grpc.DialOption,
) *rig {
	t.Helper()
	r := &rig{t: t}
	r.service = calls.New(c, calls.Options{
		Default: m, Meter: meter, Log: slog.New(slog.NewTextHandler(&r.log, nil)),
		Audit: throttle.New(slog.New(slog.NewTextHandler(&r.trail, nil))),
	})
	r.server = grpcapi.New(r.service, e)
	l := bufconn.Listen(32 << 10)
	served := make(chan error, 1)
	go func() { served <- r.server.Serve(l) }()
	dial := func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }
	options = append(options, grpc.WithContextDialer(dial), grpc.WithTransportCredentials(insecure.NewCredentials()))
	var err error
	if r.conn, err = grpc.NewClient("passthrough:///test", options...); err != nil {
		t.Fatal(err)
	}
	r.ids, r.admin = firnv1.NewFirnClient(r.conn), firnv1.NewAdminClient(r.conn)
	t.Cleanup(func() {
		r.conn.Close()
		if err := r.shutdown(); err != nil {
			t.Errorf("the server stops: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("it served: %v", err)
		}
	})
	return r
}

// trusting lets whoever comes administer.
var trusting = &auth.Policy{Trusted: true}

// newFakeRig serves a fake to an administrator.
func newFakeRig(t testing.TB, f *servertest.Issuer) *rig {
	t.Helper()
	return newRig(t, f, servertest.Join(t), trusting)
}

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// shutdown waits for calls to finish, for as long as a test may take.
func (r *rig) shutdown() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return r.server.Shutdown(ctx)
}

// wants fails the test if the outcome of a call is not this.
func wants(t testing.TB, what string, err error, want refusal) {
	t.Helper()
	if got := refusalOf(err); !got.is(want) {
		t.Errorf("%s: %v\nwant %v", what, got, want)
	}
}
