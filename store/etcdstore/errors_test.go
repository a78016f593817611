package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/firn-id/firn/store"
)

// The whole table: what every error that a transaction can meet means to it, and
// to a call that changes nothing.
func TestErrors(t *testing.T) {
	const ambiguous, refused, ended, unavailable = "ambiguous", "refused", "ended", "unavailable"
	sentinels := map[string]error{
		ambiguous: store.ErrAmbiguous, refused: store.ErrRefused,
		ended: store.ErrSessionEnded, unavailable: store.ErrUnavailable,
	}
	tests := []struct {
		err          error
		commit, call string
	}{
		{rpctypes.ErrGRPCLeaseNotFound, ended, unavailable},

		{rpctypes.ErrGRPCDuplicateKey, refused, refused},
		{rpctypes.ErrGRPCTooManyOps, refused, refused},
		{rpctypes.ErrGRPCRequestTooLarge, refused, refused},
		{rpctypes.ErrGRPCRequestTooManyRequests, unavailable, unavailable},
		{rpctypes.ErrGRPCCompacted, refused, refused},
		{rpctypes.ErrGRPCPermissionDenied, refused, refused},
		{rpctypes.ErrGRPCAuthFailed, refused, refused},
		{rpctypes.ErrGRPCInvalidAuthToken, refused, refused},
		{rpctypes.ErrGRPCAuthOldRevision, unavailable, unavailable},
		{rpctypes.ErrGRPCUserEmpty, refused, refused},
		{rpctypes.ErrGRPCUserNotFound, refused, refused},
		{rpctypes.ErrGRPCRoleNotFound, refused, refused},
		{rpctypes.ErrGRPCAuthNotEnabled, refused, refused},

		{rpctypes.ErrGRPCNoSpace, ambiguous, unavailable},
		{rpctypes.ErrGRPCNoLeader, ambiguous, unavailable},
		{rpctypes.ErrGRPCNotLeader, ambiguous, unavailable},
		{rpctypes.ErrGRPCLeaderChanged, ambiguous, unavailable},
		{rpctypes.ErrGRPCStopped, ambiguous, unavailable},
		{rpctypes.ErrGRPCTimeout, ambiguous, unavailable},
		{rpctypes.ErrGRPCTimeoutDueToLeaderFail, ambiguous, unavailable},
		{rpctypes.ErrGRPCTimeoutDueToConnectionLost, ambiguous, unavailable},
		{rpctypes.ErrGRPCTimeoutWaitAppliedIndex, ambiguous, unavailable},
		{rpctypes.ErrGRPCUnhealthy, ambiguous, unavailable},
		{rpctypes.ErrGRPCCorrupt, ambiguous, unavailable},
		{rpctypes.ErrGRPCCanceled, ambiguous, unavailable},
		{rpctypes.ErrGRPCDeadlineExceeded, ambiguous, unavailable},
		{status.Error(codes.Unavailable, "transport is closing"), ambiguous, unavailable},
		{status.Error(codes.Canceled, "grpc: the client connection is closing"), ambiguous, unavailable},
		{status.Error(codes.ResourceExhausted, "grpc: received message larger than max"), ambiguous, unavailable},
		{status.Error(codes.PermissionDenied, "says a proxy"), ambiguous, unavailable},
		{status.Error(codes.Unknown, "something new"), ambiguous, unavailable},
		{context.Canceled, ambiguous, unavailable},
		{context.DeadlineExceeded, ambiguous, unavailable},
		{errors.New("something else"), ambiguous, unavailable},

		{errClosed, refused, refused},
	}
	check := func(t *testing.T, got, cause error, want string) {
		t.Helper()
		for name, sentinel := range sentinels {
			if errors.Is(got, sentinel) != (name == want) {
				t.Errorf("%v is %s: %v; want only %s", got, name, errors.Is(got, sentinel), want)
			}
		}
		if !errors.Is(got, cause) {
			t.Errorf("%v hides its cause", got)
		}
	}
	for _, tt := range tests {
		// Errors arrive as they came over the wire, as the client wraps them, and
		// perhaps once more around that.
		for _, cause := range []error{
			tt.err, rpctypes.Error(tt.err),
			fmt.Errorf("wrapped: %w", rpctypes.Error(tt.err)),
		} {
			check(t, writeError("commit", cause), cause, tt.commit)
			check(t, callError("get", cause), cause, tt.call)
		}
	}
}

func TestCheckVersion(t *testing.T) {
	for reported, want := range map[string]bool{
		"3.6.9": true, "3.6.10": true, "3.7.0": true, "3.7.3": true, "4.0.0": true, "3.7.0-rc.1": true,
		"3.6.8": false, "3.5.99": false, "3.4.23": false, "2.9.9": false, "": false, "new": false,
	} {
		err := checkVersion("http://a:1", reported)
		if (err == nil) != want || err != nil && !errors.Is(err, store.ErrRefused) {
			t.Errorf("checkVersion(%q) = %v, want accepted: %v", reported, err, want)
		}
	}
}
