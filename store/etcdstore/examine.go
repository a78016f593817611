package etcdstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/firn-id/firn/store"
)

// ServerReport is what one server says of itself.
type ServerReport struct {
	Endpoint string
	Err      error         // why it does not answer
	TooOld   error         // why it can't be used
	Version  string        // such as "3.6.9"
	Alarms   []string      // such as NOSPACE, or that it has no leader
	Size     int64         // of its database, in bytes
	Took     time.Duration // how long the answer took
}

// Examine asks every server for its state, and whether this client may read and write
// below its prefix: if not, it returns an error of package store. To try a write it sends
// a transaction whose condition can't hold: etcd checks permissions first, and applies
// nothing. read is how long the second of two reads took.
func (s *Store) Examine(ctx context.Context) (servers []ServerReport, read time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, connectWithin+s.deadline)
	defer cancel()
	_, done, conn, err := s.begin(ctx)
	if errors.Is(err, context.DeadlineExceeded) { // perhaps it is only slow
		_, done, conn, err = s.begin(ctx)
	}
	if err != nil {
		for _, endpoint := range s.etcd.Endpoints {
			servers = append(servers,
				ServerReport{Endpoint: endpoint, Err: cmp.Or(unreachable(context.Background(), endpoint), err)})
		}
		return servers, 0, callError("login", err)
	}
	done()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	servers = make([]ServerReport, len(conn.Endpoints()))
	var all sync.WaitGroup
	var failed atomic.Int32
	for i, endpoint := range conn.Endpoints() {
		all.Go(func() {
			servers[i] = examineServer(ctx, conn, endpoint)
			if err := servers[i].Err; err != nil && int(failed.Add(1)) == len(servers) {
				fail(err) // no server is left
			}
		})
	}
	for range 2 { // the first one waits for the connection
		began := time.Now()
		_, err = conn.Get(ctx, s.prefix, clientv3.WithPrefix(), clientv3.WithCountOnly())
		read = time.Since(began)
		if err != nil {
			break
		}
	}
	all.Wait()
	if err != nil {
		err = cmp.Or(context.Cause(ctx), err)
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
	began := time.Now()
	status, err := askStatus(ctx, conn, endpoint)
	if err != nil {
		r.Err = err
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

// unreachable is why no server accepts connections; nil: some server does, or the time
// was too short to tell. It is for a ctx that has ended, and connects only if that was
// because of a deadline.
func (s *Store) unreachable(ctx context.Context) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil
	}
	var all []error
	for _, endpoint := range s.etcd.Endpoints {
		err := unreachable(ctx, endpoint)
		if err == nil {
			return nil
		}
		all = append(all, fmt.Errorf("%s: %w", endpoint, err))
	}
	return inOneLine(all)
}

// unreachable is the system's reason why a server does not accept connections; nil: it
// does, or a second was too short to tell.
func unreachable(ctx context.Context, endpoint string) error {
	u, err := url.Parse(endpoint)
	if err != nil {
		return err
	}
	network, address := "tcp", u.Host
	if u.Scheme == "unix" {
		network, address = "unix", u.Path
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err == nil {
		_ = conn.Close() // nothing was sent
		return nil
	}
	if ctx.Err() != nil {
		return nil
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err
	}
	return err
}
