package quorum

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/firn-id/firn/internal/base/reason"
	"github.com/firn-id/firn/store/etcdstore"
)

// A machine may do everything. Whoever has a client's key, or a certificate that names a client, may read firn's keys,
// write them but for the record of who keeps the quorum, and have sessions. Of a machine it may ask what the machine
// is.

// ErrClient is returned when this process is asked for what only a machine's key allows.
var ErrClient = reason.New("refused",
	"this node has the key for clients, which does not allow it; want a node with the machines' key")

// mine and theirs are the first key of firn, and the first after the last one.
var (
	mine   = []byte(etcdstore.DefaultPrefix + "/")
	theirs = []byte(etcdstore.DefaultPrefix + string(rune('/'+1)))
	kept   = []byte(etcdstore.DefaultPrefix + "/" + recordKey)
)

// clientMay reports whether a client may send a message to etcd with a method. Nil stands for those of a stream, which
// are judged one by one. What it does not know, it refuses.
func clientMay(method string, message any) bool {
	switch m := message.(type) {
	case nil:
		return method == "/etcdserverpb.Watch/Watch" || method == "/etcdserverpb.Lease/LeaseKeepAlive"
	case *etcdserverpb.RangeRequest:
		return within(m.Key, m.RangeEnd)
	case *etcdserverpb.PutRequest:
		return writable(m.Key, nil)
	case *etcdserverpb.DeleteRangeRequest:
		return writable(m.Key, m.RangeEnd)
	case *etcdserverpb.TxnRequest:
		return !slices.ContainsFunc(m.Compare, func(c *etcdserverpb.Compare) bool {
			return !within(c.Key, c.RangeEnd)
		}) &&
			!slices.ContainsFunc(slices.Concat(m.Success, m.Failure), func(op *etcdserverpb.RequestOp) bool {
				return !clientMayDo(op)
			})
	case *etcdserverpb.WatchRequest:
		create := m.GetCreateRequest()
		return create == nil || within(create.Key, create.RangeEnd)
	case *etcdserverpb.LeaseGrantRequest, *etcdserverpb.LeaseRevokeRequest, *etcdserverpb.LeaseKeepAliveRequest:
		return true
	case *etcdserverpb.MemberListRequest, *etcdserverpb.StatusRequest: // whom to call, and which version that is
		return true
	default:
		return false
	}
}

// clientMayDo reports whether a client may have an operation in a transaction.
func clientMayDo(op *etcdserverpb.RequestOp) bool {
	switch r := op.Request.(type) {
	case *etcdserverpb.RequestOp_RequestRange:
		return clientMay("", r.RequestRange)
	case *etcdserverpb.RequestOp_RequestPut:
		return clientMay("", r.RequestPut)
	case *etcdserverpb.RequestOp_RequestDeleteRange:
		return clientMay("", r.RequestDeleteRange)
	case *etcdserverpb.RequestOp_RequestTxn:
		return clientMay("", r.RequestTxn)
	default:
		return false
	}
}

// within reports whether keys from one up to another are firn's, or the one key if there is no other.
func within(key, end []byte) bool {
	return bytes.HasPrefix(key, mine) &&
		(len(end) == 0 || bytes.Compare(key, end) < 0 && bytes.Compare(end, theirs) <= 0)
}

// writable reports whether they are, without the record.
func writable(key, end []byte) bool {
	covers := bytes.Equal(key, kept) || len(end) > 0 && bytes.Compare(key, kept) <= 0 && bytes.Compare(kept, end) < 0
	return within(key, end) && !covers
}

// who is what a request's context has of its connection: whether it is a machine's.
type who struct{}

// knowWho notes whether a connection is a machine's.
func knowWho(ctx context.Context, c net.Conn) context.Context {
	p, ok := c.(*plain)
	return context.WithValue(ctx, who{}, ok && p.machine)
}

// forMachines refuses requests of clients.
func forMachines(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if machine, _ := r.Context().Value(who{}).(bool); !machine {
			reply(w, http.StatusForbidden, "only machines may ask for that, and this connection is a client's")
			return
		}
		h(w, r)
	}
}

// refuseClient returns an ErrClient if this process has the key for clients, and an error if it is a quorum of one.
func (q *Quorum) refuseClient(what string) error {
	if q.isOne() {
		return fmt.Errorf("%s: this is a quorum of one; its data is its directory, and docs/quorum.md says how "+
			"it grows", what)
	}
	if q.ring.IsClient() {
		return fmt.Errorf("%s: %w", what, ErrClient)
	}
	return nil
}

// hosts are those of the machines that this process knows.
func (q *Quorum) hosts() (hosts []string) {
	for _, address := range append(q.others(), q.selfAddress()) {
		if host, _, err := net.SplitHostPort(address); err == nil {
			hosts = append(hosts, host)
		}
	}
	return hosts
}
