package grpcapi

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/firn-id/firn/api/firnv1"
	"github.com/firn-id/firn/internal/service/calls"
)

// checkEvery is how often the service is checked while callers watch. They hear of draining at once.
const checkEvery = 250 * time.Millisecond

// health is the standard health service. All services that it knows are serving when the node is ready.
type health struct {
	healthpb.UnimplementedHealthServer
	service *calls.Service
	stopped context.Context // ends all watching
	known   map[string]bool

	mu       sync.Mutex // guards what follows
	watching int        // callers
	last     healthpb.HealthCheckResponse_ServingStatus
	changed  chan struct{} // closed when last changes
	stop     func()        // ends check
}

func newHealth(s *calls.Service, stopped context.Context) *health {
	return &health{service: s, stopped: stopped, known: map[string]bool{
		"": true, firnv1.Firn_ServiceDesc.ServiceName: true, firnv1.Admin_ServiceDesc.ServiceName: true,
	}}
}

func (h *health) now() healthpb.HealthCheckResponse_ServingStatus {
	if h.service.Ready() != nil {
		return healthpb.HealthCheckResponse_NOT_SERVING
	}
	return healthpb.HealthCheckResponse_SERVING
}

// Check returns the status of a service.
func (h *health) Check(_ context.Context, r *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	if !h.known[r.GetService()] {
		return nil, status.Errorf(codes.NotFound, "unknown service %.100q; want %s, %s or none", r.GetService(),
			firnv1.Firn_ServiceDesc.ServiceName, firnv1.Admin_ServiceDesc.ServiceName)
	}
	return &healthpb.HealthCheckResponse{Status: h.now()}, nil
}

// List returns the status of all services.
func (h *health) List(context.Context, *healthpb.HealthListRequest) (*healthpb.HealthListResponse, error) {
	all := &healthpb.HealthListResponse{Statuses: map[string]*healthpb.HealthCheckResponse{}}
	for name := range h.known {
		all.Statuses[name] = &healthpb.HealthCheckResponse{Status: h.now()}
	}
	return all, nil
}

// Watch sends the status of a service, and its changes, until the server stops.
func (h *health) Watch(r *healthpb.HealthCheckRequest,
	to grpc.ServerStreamingServer[healthpb.HealthCheckResponse],
) error {
	defer h.begin()()
	for last := healthpb.HealthCheckResponse_UNKNOWN; ; {
		is, changed := h.current()
		if !h.known[r.GetService()] {
			is = healthpb.HealthCheckResponse_SERVICE_UNKNOWN
		}
		if is != last {
			if err := to.Send(&healthpb.HealthCheckResponse{Status: is}); err != nil {
				return err
			}
			last = is
		}
		select {
		case <-changed:
		case <-to.Context().Done():
			return status.FromContextError(to.Context().Err()).Err()
		case <-h.stopped.Done():
			return status.Error(codes.Unavailable, "the server is shutting down")
		}
	}
}

// current is the status at the last check, and a channel that is closed when it changes.
func (h *health) current() (healthpb.HealthCheckResponse_ServingStatus, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last, h.changed
}

// begin has the service checked for a caller until end. One goroutine does it for all.
func (h *health) begin() (end func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watching++; h.watching == 1 {
		h.last, h.changed = h.now(), make(chan struct{})
		ctx, stop := context.WithCancel(h.stopped)
		h.stop = stop
		go h.check(ctx)
	}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.watching--; h.watching == 0 {
			h.stop()
		}
	}
}

// check tells callers of changes, until none watches.
func (h *health) check(ctx context.Context) {
	tick := time.NewTicker(checkEvery)
	defer tick.Stop()
	for draining := h.service.Serving().Done(); ; {
		select {
		case <-tick.C:
		case <-draining:
			draining = nil
		case <-ctx.Done():
			return
		}
		is := h.now()
		h.mu.Lock()
		if ctx.Err() == nil && is != h.last {
			close(h.changed)
			h.last, h.changed = is, make(chan struct{})
		}
		h.mu.Unlock()
	}
}
