package grpcapi

import (
	"strings"
	"time"

	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/codes"
)

// counters counts the calls of each method, except for health checks and reflection.
func (s *Server) counters() map[string]calls.Call {
	all := map[string]calls.Call{}
	if !s.service.Metered() {
		return all
	}
	for service, info := range s.grpc.GetServiceInfo() {
		for _, m := range info.Methods {
			if method := "/" + service + "/" + m.Name; !open(method) {
				all[method] = s.service.Call("grpc", strings.TrimPrefix(method, "/"))
			}
		}
	}
	return all
}

// count counts a call that began then; zero: it is not timed.
func (s *Server) count(method string, code codes.Code, began time.Time) {
	c, ok := s.calls[method]
	if !ok {
		return
	}
	took := calls.Untimed
	if !began.IsZero() {
		took = time.Since(began)
	}
	c.Done(code, 1, took)
}
