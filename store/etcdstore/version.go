package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/firn-id/firn/store"
)

// oldest is the first version whose linearizable reads are that, also after its
// leader was paused.
var oldest = version{3, 6, 9}

type version [3]int

func (v version) String() string { return fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2]) }

// checkServers refuses servers that are too old. One that does not answer within
// the deadline of a renewal is passed over, but at least one must answer.
func (s *Store) checkServers(ctx context.Context, conn *clientv3.Client) error {
	if s.trusted.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, renewalDeadline)
	defer cancel()
	endpoints := conn.Endpoints()
	results := make(chan error, len(endpoints))
	for _, endpoint := range endpoints {
		go func() {
			status, err := conn.Status(ctx, endpoint)
			if err != nil {
				results <- callError("server version of "+endpoint, err)
				return
			}
			results <- checkVersion(endpoint, status.Version)
		}()
	}
	var errs []error
	for range endpoints {
		if err := <-results; err != nil {
			errs = append(errs, err)
		}
	}
	for _, err := range errs {
		if errors.Is(err, store.ErrRefused) {
			return err
		}
	}
	if len(errs) == len(endpoints) {
		return errors.Join(errs...)
	}
	s.trusted.Store(true)
	return nil
}

func checkVersion(endpoint, reported string) error {
	var v version
	if _, err := fmt.Sscanf(reported, "%d.%d.%d", &v[0], &v[1], &v[2]); err != nil {
		return fmt.Errorf("etcdstore: %w: the server %s says that its version is %q; want one like %v",
			store.ErrRefused, endpoint, reported, oldest)
	}
	if slices.Compare(v[:], oldest[:]) < 0 {
		return fmt.Errorf("etcdstore: %w: the server %s is etcd %s, whose reads may be stale; want %v or later",
			store.ErrRefused, endpoint, reported, oldest)
	}
	return nil
}
