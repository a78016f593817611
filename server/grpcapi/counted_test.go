package grpcapi_test

import (
	"context"
	"maps"
	"sync"
	"testing"
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/firn-id/firn/api/firnv1"
	"github.com/firn-id/firn/member"
	"github.com/firn-id/firn/server"
	"github.com/firn-id/firn/server/metrics"
)

// meter remembers what was counted: how many calls came to what, and how many of these were timed.
type meter struct {
	mu          sync.Mutex // guards the rest
	seen, timed map[string]int
}

func newMeter() *meter { return &meter{seen: map[string]int{}, timed: map[string]int{}} }

func (m *meter) Call(protocol, name string) server.Call { return metered{m, protocol + " " + name} }

type metered struct {
	*meter
	name string
}

func (m metered) Done(code server.Code, n int, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen[m.name+" "+string(code)] += n
	if took >= 0 {
		m.timed[m.name]++
	}
}

// wants fails unless that was counted, and that was timed, since the last call.
func (m *meter) wants(t *testing.T, seen, timed map[string]int) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if !maps.Equal(m.seen, seen) || !maps.Equal(m.timed, timed) {
		t.Errorf("counted were %v, timed %v\nwant            %v and   %v", m.seen, m.timed, seen, timed)
	}
	clear(m.seen)
	clear(m.timed)
}

// Calls are counted by their methods and by what they came to; streams are not timed, and health is not counted.
func TestCallsAreCounted(t *testing.T) {
	m := newMeter()
	f := new(fake)
	r := newMeteredRig(t, f, m)
	ctx := within(t)
	for range 3 {
		if _, err := r.ids.Next(ctx, &firnv1.NextRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = r.ids.NextBatch(ctx, &firnv1.NextBatchRequest{Count: 0})
	_, _ = r.admin.GetSequencer(ctx, &firnv1.GetSequencerRequest{Name: "orders"})
	stream, err := r.ids.Stream(ctx, &firnv1.StreamRequest{Total: 5000})
	for err == nil {
		_, err = stream.Recv()
	}
	_, _ = healthpb.NewHealthClient(r.conn).Check(ctx, &healthpb.HealthCheckRequest{})
	f.fail(member.ErrNotReady)
	_, _ = r.ids.Next(ctx, &firnv1.NextRequest{})
	gone, cancel := context.WithCancel(ctx)
	f.fail(nil)
	f.wrong = func() error { cancel(); <-gone.Done(); return gone.Err() }
	_, _ = r.ids.Next(gone, &firnv1.NextRequest{})
	if err := r.shutdown(); err != nil { // so that the last call has ended on the server too
		t.Fatal(err)
	}
	m.mu.Lock()
	lost := m.seen["grpc firn.v1.Firn/Next gone"] + m.seen["grpc firn.v1.Firn/Next unavailable"] + m.seen["grpc firn.v1.Firn/Next internal"]
	delete(m.seen, "grpc firn.v1.Firn/Next gone") // its server may know that before or after it is told
	delete(m.seen, "grpc firn.v1.Firn/Next unavailable")
	delete(m.seen, "grpc firn.v1.Firn/Next internal")
	m.mu.Unlock()
	if lost != 1 {
		t.Errorf("a call whose caller went away was counted %d times", lost)
	}
	m.wants(t, map[string]int{
		"grpc firn.v1.Firn/Next ok": 3, "grpc firn.v1.Firn/Next not_ready": 1, "grpc firn.v1.Firn/NextBatch bad_request": 1,
		"grpc firn.v1.Admin/GetSequencer unknown_sequencer": 1, "grpc firn.v1.Firn/Stream ok": 1,
	}, map[string]int{"grpc firn.v1.Firn/Next": 5, "grpc firn.v1.Firn/NextBatch": 1, "grpc firn.v1.Admin/GetSequencer": 1})
}

func BenchmarkCounted(b *testing.B) {
	for name, meter := range map[string]server.Meter{"no": nil, "yes": metrics.New(metrics.Build{})} {
		b.Run(name, func(b *testing.B) {
			r := newMeteredRig(b, new(fake), meter)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.ids.Next(b.Context(), &firnv1.NextRequest{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
