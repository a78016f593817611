package etcdstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// checked has every answer of a call checked against its request, before the client's library or this package uses it.
func checked(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker,
	options ...grpc.CallOption,
) error {
	if err := invoke(ctx, method, req, reply, conn, options...); err != nil {
		return err
	}
	return checkAnswer(req, reply)
}

// checkedStream does so with what a stream brings.
func checkedStream(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer,
	options ...grpc.CallOption,
) (grpc.ClientStream, error) {
	stream, err := open(ctx, desc, conn, method, options...)
	if err != nil {
		return nil, err
	}
	return checkedMessages{stream}, nil
}

type checkedMessages struct{ grpc.ClientStream }

func (s checkedMessages) RecvMsg(m any) error {
	if err := s.ClientStream.RecvMsg(m); err != nil {
		return err
	}
	return checkAnswer(nil, m)
}

// checkAnswer returns an error unless an answer can be one to a request. Of a stream there is no request.
func checkAnswer(req, reply any) error {
	switch r := reply.(type) {
	case *etcdserverpb.RangeResponse:
		request, _ := req.(*etcdserverpb.RangeRequest)
		if r.Header == nil || request == nil {
			return errNoHeader
		}
		return checkRange(request, r)
	case *etcdserverpb.TxnResponse:
		request, _ := req.(*etcdserverpb.TxnRequest)
		if r.Header == nil || r.Header.Revision <= 0 || request == nil {
			return errNoHeader
		}
		return checkTxn(request, r)
	case *etcdserverpb.LeaseGrantResponse:
		if r.TTL < 1 || r.TTL > mostSeconds || r.ID == 0 {
			return fmt.Errorf("the server grants lease %d for %d s; want one for 1 to %d", r.ID, r.TTL, mostSeconds)
		}
	case *etcdserverpb.WatchResponse:
		return checkWatch(r)
	}
	return nil
}

var errNoHeader = errors.New("the server answers without its header, or its revision")

// mostSeconds is how long a lease may live: what a duration can say.
const mostSeconds = int64(math.MaxInt64 / time.Second)

// checkRange checks the keys of an answer: those that were asked for, and that are there.
func checkRange(asked *etcdserverpb.RangeRequest, r *etcdserverpb.RangeResponse) error {
	if n := int64(len(r.Kvs)); len(asked.RangeEnd) == 0 && n > 1 || asked.Limit > 0 && n > asked.Limit ||
		r.More && n == 0 {
		return fmt.Errorf("the server answers %d keys, and that there are more: %v; want 1 to %d", n, r.More,
			max(asked.Limit, 1))
	}
	byKey := asked.SortTarget == etcdserverpb.RangeRequest_KEY
	for i, kv := range r.Kvs {
		switch {
		case kv.CreateRevision <= 0 || kv.ModRevision < kv.CreateRevision:
			return fmt.Errorf("the server answers that %.80q was made at revision %d and written at %d; want numbers "+
				"above zero, in this order", kv.Key, kv.CreateRevision, kv.ModRevision)
		case len(asked.RangeEnd) == 0 && !bytes.Equal(kv.Key, asked.Key),
			bytes.Compare(kv.Key, asked.Key) < 0, len(asked.RangeEnd) > 0 && bytes.Compare(kv.Key, asked.RangeEnd) >= 0:
			return fmt.Errorf("the server answers the key %.80q; want %.80q to %.80q", kv.Key, asked.Key,
				asked.RangeEnd)
		case i > 0 && byKey && bytes.Compare(kv.Key, r.Kvs[i-1].Key) <= 0,
			i > 0 && !byKey && kv.CreateRevision < r.Kvs[i-1].CreateRevision:
			return fmt.Errorf("the server answers the key %.80q after %.80q; want them in order", kv.Key,
				r.Kvs[i-1].Key)
		}
	}
	return nil
}

// checkTxn checks that each operation of a transaction has an answer of its kind.
func checkTxn(asked *etcdserverpb.TxnRequest, r *etcdserverpb.TxnResponse) error {
	ops := asked.Failure
	if r.Succeeded {
		ops = asked.Success
	}
	if len(r.Responses) != len(ops) {
		return fmt.Errorf("the server answers %d operations of a transaction; want %d", len(r.Responses), len(ops))
	}
	for i, op := range ops {
		var err error
		fits := false
		switch answer := r.Responses[i]; {
		case op.GetRequestRange() != nil && answer.GetResponseRange() != nil:
			fits, err = true, checkRange(op.GetRequestRange(), answer.GetResponseRange())
		case op.GetRequestPut() != nil:
			fits = answer.GetResponsePut() != nil
		case op.GetRequestDeleteRange() != nil:
			fits = answer.GetResponseDeleteRange() != nil
		}
		if !fits {
			return fmt.Errorf("the server answers operation %d of a transaction as another kind", i)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkWatch checks what the library reads of a watch. It would collect fragments without end.
func checkWatch(r *etcdserverpb.WatchResponse) error {
	if r.Header == nil {
		return errNoHeader
	}
	if r.Fragment {
		return errors.New("the server sends a fragment of events; want all of them")
	}
	for _, event := range r.Events {
		if event.Kv == nil {
			return errors.New("the server sends an event without a key")
		}
	}
	return nil
}

// isTooLong tells whether an answer has more bytes than answers.Max.
func isTooLong(err error) bool {
	return status.Code(err) == codes.ResourceExhausted && strings.Contains(err.Error(), "larger than max")
}
