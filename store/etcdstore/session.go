package etcdstore

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/firn-id/firn/store"
)

const (
	renewalsPerTTL = 6

	// etcd looks every 500 ms which leases have expired, and needs a moment to end one. A lease is shorter than the
	// TTL asked for by this, unless that makes it very short, so that a session ends in time.
	early    = time.Second
	earlyFor = 4 * time.Second

	// closeWithin is how long Close waits for the servers to confirm the end of the sessions.
	closeWithin = 3 * time.Second
)

// session is a lease, and the goroutine that renews it.
type session struct {
	store *Store
	lease clientv3.LeaseID
	ttl   time.Duration

	done chan struct{}
	stop func() // closes done; safe to call more than once

	mu    sync.Mutex // guards asked
	asked time.Time  // when the last successful renewal was sent
}

var _ store.Session = (*session)(nil)

// OpenSession begins a session, see store.Store. etcd grants TTLs in whole seconds, at
// least one and a half of its election timeouts; for a TTL of 4 s and more OpenSession asks
// for a second less, since etcd ends leases late. The first call also checks that the
// servers are recent enough, and returns ErrRefused when they are not.
func (s *Store) OpenSession(ctx context.Context, ttl time.Duration) (store.Session, error) {
	const call = "open session"
	if ttl <= 0 {
		return nil, fmt.Errorf("%s: %w: the TTL is %v; want a positive one", call, store.ErrRefused, ttl)
	}
	_, cancel, conn, err := s.begin(ctx)
	if err != nil {
		return nil, callError(call, err)
	}
	cancel()
	if err := s.checkServers(ctx, conn); err != nil { // with a deadline of its own
		return nil, err
	}
	ctx, cancel = context.WithTimeout(ctx, s.deadline)
	defer cancel()
	asked := time.Now()
	granted, err := conn.Grant(ctx, leaseSeconds(ttl))
	if err != nil {
		return nil, callError(call, err) // a lease that was granted after all expires
	}
	done := make(chan struct{})
	session := &session{
		store: s, lease: granted.ID, ttl: time.Duration(granted.TTL) * time.Second,
		done: done, stop: sync.OnceFunc(func() { close(done) }), asked: asked,
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	s.sessions[session] = true
	s.running.Go(func() { session.keep(conn) })
	return session, nil
}

// leaseSeconds returns the TTL of the lease of a session.
func leaseSeconds(ttl time.Duration) int64 {
	if ttl >= earlyFor {
		ttl -= early
	}
	return int64((ttl + time.Second - 1) / time.Second)
}

// Done tells that the session has ended, see store.Session.
func (s *session) Done() <-chan struct{} { return s.done }

// TTL is how long the lease lives without renewal, as granted.
func (s *session) TTL() time.Duration { return s.ttl }

// Close revokes the lease, see store.Session.
func (s *session) Close(ctx context.Context) error {
	s.stop()
	if s.store.isClosed() {
		return nil // Store.Close has revoked it, or said that it could not
	}
	return s.revoke(ctx)
}

func (s *session) revoke(ctx context.Context) error {
	s.stop()
	ctx, cancel := context.WithTimeout(ctx, s.store.deadline)
	defer cancel()
	conn := s.store.conn.Load()
	if _, err := conn.Revoke(ctx, s.lease); err != nil && !isAny(err, rpctypes.ErrLeaseNotFound) {
		return callError("close session", err)
	}
	s.forget()
	return nil
}

// forget takes the session off the list of those that Store.Close revokes.
func (s *session) forget() {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	delete(s.store.sessions, s)
}

// Abandon stops the renewals, see store.Session.
func (s *session) Abandon() {
	s.stop()
	s.forget()
}

// lost ends a session that its owner did not close.
func (s *session) lost(why string) {
	s.store.log.Warn("session lost: "+why, "ttl", s.ttl, "lease", s.lease)
	s.stop()
	s.forget()
}

// keep renews the lease until the session is closed, gone or in doubt. Every renewal has
// its own goroutine and deadline, and none waits for the one before: so a renewal that
// hangs costs a sixth of the TTL, not the session, and a round trip that takes longer
// than that costs nothing.
func (s *session) keep(conn *clientv3.Client) {
	renewals, cancel := context.WithCancel(s.store.life)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	tick := time.NewTicker(s.ttl / renewalsPerTTL)
	defer tick.Stop()
	doubt := time.NewTimer(s.left())
	defer doubt.Stop()
	defer s.stop()
	for {
		select {
		case <-tick.C:
			running.Go(func() { s.renew(renewals, conn) })
		case <-doubt.C:
			left := s.left()
			if left <= 0 {
				s.lost("it could not be renewed for a whole TTL")
				return
			}
			doubt.Reset(left)
		case <-s.done:
			return
		case <-s.store.life.Done():
			return
		}
	}
}

// left is how long the lease certainly lives if the servers' clocks run like ours: it
// counts from before the renewal was sent.
func (s *session) left() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Until(s.asked.Add(s.ttl))
}

// renew sends one renewal and waits up to a TTL for the answer; a later one is worthless.
func (s *session) renew(ctx context.Context, conn *clientv3.Client) {
	ctx, cancel := context.WithTimeout(ctx, s.ttl)
	defer cancel()
	asked := time.Now()
	ttl, err := renewLease(ctx, conn, s.lease)
	switch {
	case err != nil: // the next one may succeed
	case ttl <= 0:
		select {
		case <-s.done: // closed by its owner
		default:
			s.lost("the lease is gone")
		}
	default:
		s.mu.Lock()
		defer s.mu.Unlock()
		if asked.After(s.asked) {
			s.asked = asked
		}
	}
}

// renewLease returns the lease's TTL, in seconds; zero: the lease does not exist. The
// client's own KeepAliveOnce would repeat the call without a pause while there is no
// leader.
func renewLease(ctx context.Context, conn *clientv3.Client, lease clientv3.LeaseID) (ttl int64, err error) {
	stream, err := etcdserverpb.NewLeaseClient(conn.ActiveConnection()).LeaseKeepAlive(ctx, grpc.WaitForReady(true))
	if err != nil {
		return 0, err
	}
	if err := stream.Send(&etcdserverpb.LeaseKeepAliveRequest{ID: int64(lease)}); err != nil {
		return 0, err
	}
	answer, err := stream.Recv()
	return answer.GetTTL(), err
}
