package codes_test

import (
	"testing"

	grpccodes "google.golang.org/grpc/codes"

	"github.com/firn-id/firn/internal/service/codes"
)

// No error is a success to anybody, not even one whose code is not in the table, as that of a newer node.
func TestNoErrorIsASuccess(t *testing.T) {
	for _, c := range append(codes.All(), "of_a_newer_node", "", codes.OK, codes.Gone) {
		if c.HTTP() < 400 || c.GRPC() == grpccodes.OK || c.Redis() == "" || c.When() == "" {
			t.Errorf("%q: HTTP %d, gRPC %v, Redis %q, when %q", c, c.HTTP(), c.GRPC(), c.Redis(), c.When())
		}
	}
	if c := codes.Code("of_a_newer_node"); c.HTTP() != 500 || c.GRPC() != grpccodes.Internal ||
		c.Redis() != "INTERNAL" || c.Retry() != 0 {
		t.Errorf("%s: HTTP %d, gRPC %v, Redis %q, again in %v", c, c.HTTP(), c.GRPC(), c.Redis(), c.Retry())
	}
}
