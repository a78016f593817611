package node

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	spans "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/api/firnv1"
	"github.com/firn-id/firn/internal/base/clusterid"
	"github.com/firn-id/firn/internal/base/packed"
	"github.com/firn-id/firn/internal/service/forward"
)

// receiver is an OpenTelemetry collector.
type receiver struct {
	collector.UnimplementedTraceServiceServer
	came chan *spans.Span
}

func (r *receiver) Export(_ context.Context,
	request *collector.ExportTraceServiceRequest,
) (*collector.ExportTraceServiceResponse, error) {
	for _, of := range request.ResourceSpans {
		for _, scope := range of.ScopeSpans {
			for _, s := range scope.Spans {
				r.came <- s
			}
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// collect starts a receiver, and returns its URL.
func collect(t *testing.T) (*receiver, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r, s := &receiver{came: make(chan *spans.Span, 1000)}, grpc.NewServer()
	collector.RegisterTraceServiceServer(s, r)
	go func() { _ = s.Serve(listener) }() // until Stop
	t.Cleanup(s.Stop)
	return r, "http://" + listener.Addr().String()
}

// A call makes a span under its caller's, and its requests to etcd make spans under that; nothing else makes any.
func TestTraces(t *testing.T) {
	t.Parallel()
	to, endpoint := collect(t)
	c := testConfig(t)
	c.Store = nil // use etcd
	c.OTLPEndpoint, c.OTLPRatio, c.GRPCAddr, c.DrainDelay = endpoint, 1, "127.0.0.1:0", 0
	n := newNode(t, c)
	ctx, stop := context.WithCancel(t.Context())
	done := running(t, ctx, n)
	becomesReady(t, n)
	url, admin := "http://"+n.Addr(Public), "http://"+n.Addr(Admin)

	const parent = "00-0af7651916cd43dd8448eb211c80319c-%s-01"
	call := func(method, url, body, caller string) {
		t.Helper()
		request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if caller != "" {
			request.Header.Set("Traceparent", fmt.Sprintf(parent, caller))
		}
		if strings.HasPrefix(url, admin) {
			request.Header.Set("Authorization", "Bearer "+n.secret.Token())
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close() // it was read to its end
		if err != nil || response.StatusCode >= 300 {
			t.Fatalf("%s %s: %s, %v", method, url, response.Status, err)
		}
	}
	call("GET", url+"/readyz", "", "00000000000000a1")
	call("POST", url+"/api/v1/id", "", "00000000000000a2")
	call("POST", admin+"/api/v1/sequencers", `{"name":"orders"}`, "00000000000000a3")
	conn, err := grpc.NewClient(n.Addr(GRPC), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	calling := metadata.AppendToOutgoingContext(ctx, "traceparent", fmt.Sprintf(parent, "00000000000000a4"))
	if _, err := firnv1.NewFirnClient(conn).Next(calling, &firnv1.NextRequest{}); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := ended(t, done); err != nil {
		t.Fatal(err)
	}
	close(to.came)
	names := map[string]string{ // by span ID
		"00000000000000a2": "a2", "00000000000000a3": "a3", "00000000000000a4": "a4",
	}
	var all []*spans.Span
	for s := range to.came {
		all = append(all, s)
		names[fmt.Sprintf("%x", s.SpanId)] = s.Name
	}
	got := map[string]bool{}
	for _, s := range all {
		got[names[fmt.Sprintf("%x", s.ParentSpanId)]+" > "+s.Name] = true
	}
	want := []string{
		"a2 > POST /api/v1/id", "a3 > POST /api/v1/sequencers", "POST /api/v1/sequencers > etcdserverpb.KV/Txn",
		"a4 > firn.v1.Firn/Next",
	}
	for _, w := range want {
		if !got[w] {
			t.Errorf("there is no %q", w)
		}
	}
	for g := range got {
		if !slices.Contains(want, g) && !strings.HasPrefix(g, "POST /api/v1/sequencers > etcdserverpb.KV/") {
			t.Errorf("there is %q", g)
		}
	}
}

// A call that another node answers is one trace: its span there is under that of the request to the other node, which
// is under that of the call.
func TestTracesGoOnToOtherNodes(t *testing.T) {
	kept := tracetest.NewInMemoryExporter()
	traces := newTraces(sdk.WithSyncer(kept), 1, nil)
	other := httptest.NewServer(traces.web(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(clusterid.Header, "cluster-1")
		w.Header().Set("Content-Type", packed.Type)
		_, _ = w.Write(packed.Append(nil, 7))
	})))
	defer other.Close()
	c := forward.New(func() string { return "cluster-1" }, nil, traces.onward)
	defer c.Close()
	s := httptest.NewServer(traces.web(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if err := c.Fill(r.Context(), other.URL, "", "orders", 0, make([]firn.ID, 1)); err != nil {
			t.Error(err)
		}
	})))
	defer s.Close()
	if answer, err := http.Post(s.URL+"/api/v1/sequencers/orders/id", "", nil); err != nil ||
		answer.Body.Close() != nil {
		t.Fatal(err)
	}
	s.Close() // once the spans have ended
	other.Close()
	all := kept.GetSpans()
	slices.SortFunc(all, func(a, b tracetest.SpanStub) int { return a.StartTime.Compare(b.StartTime) })
	if len(all) != 3 || all[1].Name != "ask another node" {
		t.Fatalf("%d spans: %v", len(all), all)
	}
	for i, s := range all[1:] {
		if s.SpanContext.TraceID() != all[0].SpanContext.TraceID() || s.Parent.SpanID() != all[i].SpanContext.SpanID() {
			t.Errorf("span %d, %s, is not under the one before", i+1, s.Name)
		}
	}
}

// When no one listens where the traces go, callers get no error, nor does the one who stops the node.
func TestTracesToNobody(t *testing.T) {
	t.Parallel()
	c := testConfig(t)
	c.OTLPEndpoint, c.OTLPRatio, c.DrainDelay = "http://127.0.0.1:1", 1, 0
	n := newNode(t, c)
	ctx, stop := context.WithCancel(t.Context())
	done := running(t, ctx, n)
	becomesReady(t, n)
	if status, body, err := n.call(Public, http.MethodPost, "/api/v1/id", ""); err != nil || status != 200 {
		t.Errorf("%d %s, %v; want an ID", status, body, err)
	}
	stop()
	if err := ended(t, done); err != nil {
		t.Errorf("serve: %v", err)
	}
}
