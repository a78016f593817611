package grpcapi_test

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/firn-id/firn/api/firnv1"
	"github.com/firn-id/firn/internal/service/grpcapi"
)

// refusal is what a caller gets to know of an error.
type refusal struct {
	code     codes.Code
	reason   string
	says     string // of what is wanted: a part of the message
	retry    time.Duration
	conflict *firnv1.Conflict
}

func (r refusal) String() string {
	return fmt.Sprintf("%v %s %q retry %v", r.code, r.reason, r.says, r.retry)
}

// is tells whether this is what was wanted.
func (r refusal) is(want refusal) bool {
	return r.code == want.code && r.reason == want.reason && r.retry == want.retry &&
		strings.Contains(r.says, want.says)
}

func refusalOf(err error) refusal {
	s := status.Convert(err)
	r := refusal{code: s.Code(), says: s.Message()}
	for _, d := range s.Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			r.reason = d.GetReason()
			if d.GetDomain() != grpcapi.Domain {
				r.reason = "of another domain: " + d.GetDomain()
			}
		case *errdetails.RetryInfo:
			r.retry = d.GetRetryDelay().AsDuration()
		case *firnv1.Conflict:
			r.conflict = d
		}
	}
	return r
}

// bad is the refusal of a request that says this wrong thing.
func bad(says string) refusal {
	return refusal{code: codes.InvalidArgument, reason: "bad_request", says: says}
}

func unavailable(reason, says string) refusal {
	return refusal{code: codes.Unavailable, reason: reason, says: says, retry: time.Second}
}
