package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/firn-id/firn/store"
)

// oldest is the first version whose linearizable reads hold even after a pause of the
// leader.
var oldest = version{3, 6, 9}

type version [3]int

func (v version) String() string { return fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2]) }

// grace is how much longer than the first server the others may take to answer.
const grace = time.Second

// checkServers refuses servers that are too old. It ignores servers that do not answer,
// but at least one must.
func (s *Store) checkServers(ctx context.Context, conn *clientv3.Client) error {
	if s.trusted.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, connectWithin+s.deadline)
	defer cancel()
	endpoints := conn.Endpoints()
	results := make(chan error, len(endpoints))
	for _, endpoint := range endpoints {
		go func() {
			status, err := askStatus(ctx, conn, endpoint)
			if err == nil {
				err = checkVersion(endpoint, status.Version)
			} else {
				err = fmt.Errorf("%s: %w", endpoint, err)
			}
			results <- err
		}()
	}
	began, enough := time.Now(), (<-chan time.Time)(nil)
	var errs []error
	for range endpoints {
		select {
		case err := <-results:
			switch {
			case errors.Is(err, store.ErrRefused):
				return err
			case err != nil:
				errs = append(errs, err)
			case enough == nil:
				enough = time.After(time.Since(began) + grace)
			}
			continue
		case <-enough:
		}
		break
	}
	if enough == nil {
		return callError("check the servers' versions", inOneLine(errs))
	}
	s.trusted.Store(true)
	return nil
}

// askStatus asks one server, over its own connection. It fails at once when it can't
// connect: the client's own Status would try again until ctx ends.
func askStatus(ctx context.Context, conn *clientv3.Client, endpoint string) (*etcdserverpb.StatusResponse, error) {
	own, err := conn.Dial(endpoint)
	if err != nil {
		return nil, err
	}
	defer func() { _ = own.Close() }() // its only error is that it was closed
	return etcdserverpb.NewMaintenanceClient(own).Status(ctx, new(etcdserverpb.StatusRequest))
}

func checkVersion(endpoint, reported string) error {
	var v version
	if _, err := fmt.Sscanf(reported, "%d.%d.%d", &v[0], &v[1], &v[2]); err != nil {
		return fmt.Errorf("%w: the server %s says that its version is %q; want one like %v",
			store.ErrRefused, endpoint, reported, oldest)
	}
	if slices.Compare(v[:], oldest[:]) < 0 {
		return fmt.Errorf("%w: the server %s is etcd %s, whose reads may be stale; want %v or later",
			store.ErrRefused, endpoint, reported, oldest)
	}
	return nil
}
