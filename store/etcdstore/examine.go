package etcdstore

import (
	"cmp"
	"context"
	"errors"
	"math"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/firn-id/firn/store"
)

// ServerReport is what one server says of itself.
type ServerReport struct {
	Endpoint string
	Err      error         // it does not answer
	TooOld   error         // it can't be used
	Version  string        // such as "3.6.9"
	Alarms   []string      // such as NOSPACE, or that it has no leader
	Size     int64         // of its database, in bytes
	Took     time.Duration // until it answered
}

// Examine asks every server how it is, and whether this client may read and write below its prefix: the error is then
// one of package store. To see whether it may write, it sends a transaction whose condition can't hold: etcd looks at
// permissions first, and applies nothing.
func (s *Store) Examine(ctx context.Context) (servers []ServerReport, read time.Duration, err error) {
	ctx, cancel, conn, err := s.begin(ctx)
	if err != nil {
		for _, endpoint := range s.etcd.Endpoints {
			servers = append(servers, ServerReport{Endpoint: endpoint, Err: cmp.Or(unreachable(context.Background(), endpoint), err)})
		}
		return servers, 0, callError("login", err)
	}
	defer cancel()
	servers = make([]ServerReport, len(conn.Endpoints()))
	var all sync.WaitGroup
	for i, endpoint := range conn.Endpoints() {
		all.Go(func() { servers[i] = examineServer(ctx, conn, endpoint) })
	}
	began := time.Now()
	_, err = conn.Get(ctx, s.prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
	read = time.Since(began)
	all.Wait()
	if err != nil {
		return servers, read, callError("read", err)
	}
	key := s.prefix + "examined"
	never := clientv3.Compare(clientv3.ModRevision(key), "=", int64(math.MaxInt64))
	if _, err = conn.Txn(ctx).If(never).Then(clientv3.OpPut(key, "")).Commit(); err != nil {
		return servers, read, callError("write", err)
	}
	return servers, read, nil
}

func examineServer(ctx context.Context, conn *clientv3.Client, endpoint string) ServerReport {
	r := ServerReport{Endpoint: endpoint}
	ctx, cancel := context.WithTimeout(ctx, renewalDeadline)
	defer cancel()
	began := time.Now()
	status, err := conn.Status(ctx, endpoint)
	if err != nil {
		r.Err = cmp.Or(unreachable(ctx, endpoint), err)
		return r
	}
	r.Took, r.Version, r.Size = time.Since(began), status.Version, status.DbSize
	if err := checkVersion(endpoint, status.Version); errors.Is(err, store.ErrRefused) {
		r.TooOld = err
	}
	for _, text := range status.Errors { // such as "memberID:123 alarm:NOSPACE"
		if _, alarm, ok := strings.Cut(text, "alarm:"); ok {
			text = strings.TrimSpace(alarm)
		}
		r.Alarms = append(r.Alarms, text)
	}
	return r
}

// unreachable is why a server can't be connected to, which gRPC does not tell; nil: it can.
func unreachable(ctx context.Context, endpoint string) error {
	u, err := url.Parse(endpoint)
	if err != nil {
		return err
	}
	network, address := "tcp", u.Host
	if u.Scheme == "unix" {
		network, address = "unix", u.Path
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewalDeadline)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	if err != nil {
		return err
	}
	_ = conn.Close() // nothing was sent
	return nil
}
