package grpcapi

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/firn-id/firn/api/firnv1"
	"github.com/firn-id/firn/server"
)

// lookEach is how often somebody who watches has the service looked at. That it drains is told at once.
const lookEach = 250 * time.Millisecond

// health is the standard health service. What it knows serves when the service is ready: an ID of the default sequencer
// would be given, and shall be asked for here.
type health struct {
	healthpb.UnimplementedHealthServer
	service *server.Service
	stopped context.Context // ends when watching does
	known   map[string]bool
}

func newHealth(s *server.Service, stopped context.Context) *health {
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

// Check tells how it is now.
func (h *health) Check(_ context.Context, r *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	if !h.known[r.GetService()] {
		return nil, status.Errorf(codes.NotFound, "there is no service %.100q; want %s, %s or none", r.GetService(),
			firnv1.Firn_ServiceDesc.ServiceName, firnv1.Admin_ServiceDesc.ServiceName)
	}
	return &healthpb.HealthCheckResponse{Status: h.now()}, nil
}

// List tells how all are now.
func (h *health) List(context.Context, *healthpb.HealthListRequest) (*healthpb.HealthListResponse, error) {
	all := &healthpb.HealthListResponse{Statuses: map[string]*healthpb.HealthCheckResponse{}}
	for name := range h.known {
		all.Statuses[name] = &healthpb.HealthCheckResponse{Status: h.now()}
	}
	return all, nil
}

// Watch tells how it is, and how it changes, until the server stops.
func (h *health) Watch(r *healthpb.HealthCheckRequest, to grpc.ServerStreamingServer[healthpb.HealthCheckResponse]) error {
	now := h.now
	if !h.known[r.GetService()] {
		now = func() healthpb.HealthCheckResponse_ServingStatus { return healthpb.HealthCheckResponse_SERVICE_UNKNOWN }
	}
	look := time.NewTicker(lookEach)
	defer look.Stop()
	draining := h.service.Serving().Done()
	for last := healthpb.HealthCheckResponse_UNKNOWN; ; {
		if is := now(); is != last {
			if err := to.Send(&healthpb.HealthCheckResponse{Status: is}); err != nil {
				return err
			}
			last = is
		}
		select {
		case <-look.C:
		case <-draining:
			draining = nil
		case <-to.Context().Done():
			return status.FromContextError(to.Context().Err()).Err()
		case <-h.stopped.Done():
			return status.Error(codes.Unavailable, "the server is shutting down")
		}
	}
}
