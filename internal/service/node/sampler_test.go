package node

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
)

// No caller makes a node send more traces than its share, whatever the flag and the ID of the caller's trace.
func TestCallersDoNotForceTraces(t *testing.T) {
	const calls = 2000
	for _, tt := range []struct {
		parent      string
		ratio       float64
		least, most int
	}{
		{"", 0, 0, 0},
		{"", 1, calls, calls},
		{"00-0af7651916cd43dd8448eb211c80319c-00000000000000a1-01", 0, 0, 0},
		// an ID that a sampler by ID takes
		{"00-00000000000000010000000000000000-00000000000000a1-01", 0.1, calls / 20, calls / 5},
		{"00-0af7651916cd43ddffffffffffffffff-00000000000000a1-01", 0.1, calls / 20, calls / 5},
		{"00-0af7651916cd43dd8448eb211c80319c-00000000000000a1-01", 1, calls, calls},
		{"00-0af7651916cd43dd8448eb211c80319c-00000000000000a1-00", 1, 0, 0}, // its caller does not want it
	} {
		spans := tracetest.NewInMemoryExporter()
		handler := newTraces(sdk.WithSyncer(spans), tt.ratio, resource.Empty()).web(http.NotFoundHandler())
		for range calls {
			r := httptest.NewRequest(http.MethodPost, "/api/v1/id", nil)
			if tt.parent != "" {
				r.Header.Set("Traceparent", tt.parent)
			}
			handler.ServeHTTP(httptest.NewRecorder(), r)
		}
		if n := len(spans.GetSpans()); n < tt.least || n > tt.most {
			t.Errorf("traceparent %q, ratio %v: %d of %d calls were traced; want %d to %d", tt.parent, tt.ratio, n,
				calls, tt.least, tt.most)
		}
	}
}
