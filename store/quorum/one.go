package quorum

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/lease"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/etcdstore"
	"github.com/firn-id/firn/store/internal/etcdserver"
)

// startWithin is how long the server of a quorum of one may take to be ready. It replays its log first, which takes
// seconds when it was killed under load.
const startWithin = time.Minute

// One is New for a quorum of one: this process keeps the data by itself, in Config.Dir, and nothing listens for others.
// Its clients, which Open returns, connect through a unix socket in a directory that only the owner can enter. Sessions
// of a process before that ended without closing them have ended when Open returns. Errors are as of New; Machines,
// Self, Listen and the files with keys and certificates must be empty. It grows when New is called for its directory,
// with Machines: see docs/quorum.md.
func One(c Config) (*Quorum, error) {
	if len(c.Machines) > 0 {
		return nil, fmt.Errorf("machines are given for a quorum of one: %q; want none", c.Machines)
	}
	if needless := cmp.Or(c.Self, c.Listen, c.KeyFile, c.CAFile, c.CertFile, c.CertKeyFile); needless != "" {
		return nil, fmt.Errorf("a quorum of one has no other machines, and %q is for them; name the machines, or "+
			"leave it out", needless)
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return newQuorum(c), nil
}

func (q *Quorum) isOne() bool { return len(q.config.Machines) == 0 }

// beginOne is begin for a quorum of one.
func (q *Quorum) beginOne() error {
	disk, _, err := q.openData("")
	if err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.disk = disk
	return nil
}

// runOne runs the server of a quorum of one until ctx ends. An error is returned when it can't start.
func (q *Quorum) runOne(ctx context.Context) error {
	q.tell(func() string {
		q.doing = "the server in this process starts"
		return ""
	})
	s := new(server)
	var err error
	if s.Server, err = q.disk.dir.Start(etcdserver.Config{Logger: q.log, Fatal: q.fatal}); err != nil {
		return &DirError{err}
	}
	defer s.Close()
	starting, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	if err := s.Wait(starting); err != nil {
		return &DirError{
			fmt.Errorf("data directory %q: etcd is not ready after %v: %w", q.disk.dir.Path, startWithin, err),
		}
	}
	// only this process can reach the server, and has opened none yet
	if err := endLeases(starting, s.Server); err != nil {
		return &DirError{fmt.Errorf("data directory %q: %w", q.disk.dir.Path, err)}
	}
	s.sample()
	q.setServer(s)
	defer q.setServer(nil)
	q.usable("")
	<-ctx.Done()
	return nil
}

// connectOne makes a client of the only server.
func (q *Quorum) connectOne() (*etcdstore.Store, error) {
	q.mu.Lock()
	s := q.server
	q.mu.Unlock()
	if s == nil {
		return nil, fmt.Errorf("%w: the server in this process has stopped", store.ErrUnavailable)
	}
	return etcdstore.Open(etcdstore.Config{
		Endpoints: []string{s.Endpoint()}, DialOptions: q.config.DialOptions,
		Logger: q.log,
	})
}

// statusOfOne is Status for a quorum of one. Its machine has no address.
func (q *Quorum) statusOfOne() Status {
	machine := q.report().Status
	q.mu.Lock()
	defer q.mu.Unlock()
	status := Status{Waiting: q.doing, Majority: q.server != nil, Machines: []Machine{machine}}
	if q.failed != nil {
		status.Waiting = q.failed.Error()
	}
	return status
}

// endLeases ends all sessions.
func endLeases(ctx context.Context, s *etcdserver.Server) error {
	found, err := s.LeaseLeases(ctx, &etcdserverpb.LeaseLeasesRequest{})
	if err != nil {
		return fmt.Errorf("listing the sessions of the process before: %w", err)
	}
	const atOnce = 16
	slots, errs := make(chan struct{}, atOnce), make(chan error, len(found.Leases))
	for _, old := range found.Leases {
		slots <- struct{}{}
		go func() {
			_, err := s.LeaseRevoke(ctx, &etcdserverpb.LeaseRevokeRequest{ID: old.ID})
			if errors.Is(err, lease.ErrLeaseNotFound) { // it expired just now
				err = nil
			}
			errs <- err
			<-slots
		}()
	}
	for range found.Leases {
		err = cmp.Or(err, <-errs)
	}
	if err != nil {
		return fmt.Errorf("ending the sessions of the process before: %w", err)
	}
	return nil
}
