package node

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc/filters"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	noMetrics "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
)

// traces makes spans of calls over HTTP and gRPC, and of their requests to etcd. It sends them in the background,
// and drops them if that takes too long: no call waits. Nil: no traces.
type traces struct {
	provider *sdk.TracerProvider
	carried  propagation.TextMapPropagator // reads the callers' trace from their headers
}

// sendWithin is how long sending the last spans may take.
const sendWithin = 2 * time.Second

// openTraces sends spans to an OTLP receiver over gRPC. The receiver need not run yet.
func openTraces(endpoint string, ratio float64, version string, log *slog.Logger) (*traces, error) {
	ctx := context.Background() // nothing waits
	exporter, err := otlptracegrpc.New(ctx, otlptracegrpc.WithEndpointURL(endpoint))
	if err != nil {
		return nil, fmt.Errorf("traces can't be sent to %q: %w", endpoint, err)
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "firn"), attribute.String("service.version", version)),
		// OTEL_RESOURCE_ATTRIBUTES, OTEL_SERVICE_NAME
		resource.WithHost(), resource.WithProcessPID(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("can't describe this process to the traces: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces are lost", "err", err) }))
	return newTraces(sdk.WithBatcher(exporter), ratio, about), nil
}

func newTraces(to sdk.TracerProviderOption, ratio float64, about *resource.Resource) *traces {
	return &traces{
		sdk.NewTracerProvider(to, sdk.WithResource(about),
			sdk.WithSampler(sdk.ParentBased(incoming{sdk.TraceIDRatioBased(ratio)},
				sdk.WithRemoteParentSampled(callers(ratio))))),
		propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{}),
	}
}

// incoming begins traces at incoming calls, and not at the node's own requests to etcd.
type incoming struct{ sdk.Sampler }

func (c incoming) ShouldSample(p sdk.SamplingParameters) sdk.SamplingResult {
	if p.Kind != trace.SpanKindServer {
		return sdk.SamplingResult{Decision: sdk.Drop}
	}
	return c.Sampler.ShouldSample(p)
}

// callers follows callers who say that their trace is sampled, for this share of the calls: anybody can say so, and
// make trace IDs that a sampler by trace ID takes.
type callers float64

func (c callers) ShouldSample(p sdk.SamplingParameters) sdk.SamplingResult {
	r := sdk.SamplingResult{Decision: sdk.Drop, Tracestate: trace.SpanContextFromContext(p.ParentContext).TraceState()}
	if rand.Float64() < float64(c) {
		r.Decision = sdk.RecordAndSample
	}
	return r
}

func (c callers) Description() string { return fmt.Sprintf("callers{%v}", float64(c)) }

// web makes a span of each API call that a handler serves.
func (t *traces) web(handler http.Handler) http.Handler {
	if t == nil {
		return handler
	}
	return otelhttp.NewHandler(handler, "",
		otelhttp.WithSpanNameFormatter(spanName),
		otelhttp.WithTracerProvider(t.provider), otelhttp.WithPropagators(t.carried),
		otelhttp.WithMeterProvider(noMetrics.MeterProvider{}),
		otelhttp.WithFilter(func(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/api/") }))
}

// spanName returns the method and the route, of which there are few. The route is unknown at first.
func spanName(_ string, r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodDelete:
		return strings.TrimSpace(r.Method + " " + r.Pattern)
	default:
		return "HTTP"
	}
}

// options returns the options of otelgrpc.
func (t *traces) options() []otelgrpc.Option {
	return []otelgrpc.Option{
		otelgrpc.WithTracerProvider(t.provider), otelgrpc.WithPropagators(t.carried),
		otelgrpc.WithMeterProvider(noMetrics.MeterProvider{}),
		otelgrpc.WithFilter(filters.Not(filters.HealthCheck())),
	}
}

// served makes a span of each call to a gRPC server.
func (t *traces) served() []grpc.ServerOption {
	if t == nil {
		return nil
	}
	return []grpc.ServerOption{grpc.StatsHandler(otelgrpc.NewServerHandler(t.options()...))}
}

// asked makes a span of each request to etcd that a call causes.
func (t *traces) asked() []grpc.DialOption {
	if t == nil {
		return nil
	}
	return []grpc.DialOption{grpc.WithStatsHandler(otelgrpc.NewClientHandler(t.options()...))}
}

// onward makes a span of each request of a call to another node, whose own span of it comes under that.
func (t *traces) onward(transport http.RoundTripper) http.RoundTripper {
	if t == nil {
		return transport
	}
	return otelhttp.NewTransport(transport,
		otelhttp.WithSpanNameFormatter(func(string, *http.Request) string { return "ask another node" }),
		otelhttp.WithTracerProvider(t.provider), otelhttp.WithPropagators(t.carried),
		otelhttp.WithMeterProvider(noMetrics.MeterProvider{}))
}

// close sends the remaining spans.
func (t *traces) close(log *slog.Logger) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), sendWithin)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		log.Warn("the last traces are lost", "err", err)
	}
}
