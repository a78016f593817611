package quorum

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/etcdstore"
	"github.com/firn-id/firn/store/internal/etcdserver"
	"github.com/firn-id/firn/store/quorum/internal/port"
)

const (
	openWithin = time.Second // how long Open waits for other machines

	// callDeadline is how long a call waits for its answer. Another server may answer at once when one hangs.
	callDeadline = 2 * time.Second
)

// client is a client of all servers of the quorum.
type client struct{ *etcdstore.Store }

// Traits says that the store is not shared: a member that finds no log need not fear that others know of an earlier
// one. The quorum itself sees to that, see foundingFloor.
func (client) Traits() store.Traits { return store.Traits{} }

// Open returns a client of the store once the cluster is there and, if this process is one of its machines, the
// server in it has caught up and is a voter. It waits for up to a second, and then returns store.ErrUnavailable and
// what it waits for; it goes on by itself, and another call may succeed. A quorum of one waits for nobody else, so that
// Open waits for its server: normally well under a second, and a minute at most. Any other error lasts: this machine's
// data belongs to another cluster, or can't be used.
func (q *Quorum) Open(ctx context.Context) (Store, error) {
	within := openWithin
	if q.isOne() {
		within = startWithin
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		q.mu.Lock()
		usable, doing, failed, changed := q.cluster != "" || q.isOne() && q.server != nil, q.doing, q.failed, q.changed
		q.mu.Unlock()
		switch {
		case failed != nil:
			return nil, failed
		case usable:
			s, err := q.connect()
			if err != nil {
				return nil, err
			}
			return client{s}, nil
		}
		select {
		case <-changed:
		case <-q.life.Done():
			return nil, fmt.Errorf("%w: this process takes no part in the quorum any more", store.ErrUnavailable)
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %s", store.ErrUnavailable, doing)
		}
	}
}

// connect makes a client of all servers.
func (q *Quorum) connect() (*etcdstore.Store, error) {
	if q.isOne() {
		return q.connectOne()
	}
	var endpoints []string
	for _, address := range append(q.others(), q.selfAddress()) {
		if address != "" {
			endpoints = append(endpoints, etcdserver.URL(address))
		}
	}
	servers := new(dialed)
	return etcdstore.Open(etcdstore.Config{
		Endpoints: endpoints, Follow: true, CallDeadline: q.callDeadline, Logger: q.log,
		DialOptions: append(slices.Clone(q.config.DialOptions),
			// Our own dialer does TLS.
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
				conn, err := q.dial(ctx, address)
				if err != nil {
					return nil, err
				}
				return servers.add(conn), nil
			}),
			grpc.WithChainUnaryInterceptor(q.untilKill, q.noteLease, servers.watch),
		),
	})
}

// dial connects to the etcd server of a machine, until Kill.
func (q *Quorum) dial(ctx context.Context, address string) (net.Conn, error) {
	if err := q.dead.Err(); err != nil {
		return nil, err
	}
	c, err := q.connectFor(ctx, address, port.Clients)
	if err != nil {
		return nil, err
	}
	return &mortal{c, context.AfterFunc(q.dead, func() { _ = c.Close() })}, nil
}

// connectFor connects to a machine for a protocol. A machine has places there that clients can't take.
func (q *Quorum) connectFor(ctx context.Context, address, protocol string) (*tls.Conn, error) {
	if q.selfAddress() != "" {
		protocol = port.ByMachine(protocol)
	}
	return q.ring.Dial(ctx, address, protocol)
}

// mortal is a connection that Kill closes.
type mortal struct {
	net.Conn
	live func() bool // so that Kill does not close it
}

func (m *mortal) Close() error {
	m.live()
	return m.Conn.Close()
}

// untilKill fails calls after Kill, with an error after which they are not repeated.
func (q *Quorum) untilKill(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	if q.dead.Err() != nil {
		return status.Error(codes.FailedPrecondition, "this process takes no part in the quorum any more")
	}
	return invoke(ctx, method, request, reply, conn, options...)
}

// maxLeases is how many sessions of this process are noted.
const maxLeases = 16

// noteLease writes down the sessions that this process begins, so that the next one on this machine can end them.
func (q *Quorum) noteLease(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	err := invoke(ctx, method, request, reply, conn, options...)
	granted, ok := reply.(*etcdserverpb.LeaseGrantResponse)
	q.mu.Lock()
	disk := q.disk
	q.mu.Unlock()
	if err != nil || !ok || disk == nil {
		return err
	}
	_, failed := disk.change(func(w *written) bool {
		w.Leases = append(slices.Clone(w.Leases), granted.ID)
		w.Leases = w.Leases[max(0, len(w.Leases)-maxLeases):]
		return true
	})
	if failed != nil {
		q.log.Warn("can't note a session; if this process is killed, the others wait for its TTL", "err", failed)
	}
	return nil
}

// follow waits until the machines have a cluster that runs, of which this process is a client.
func (q *Quorum) follow(ctx context.Context) {
	for tries := 0; ; tries++ {
		answers := q.askAll(ctx, q.others())
		q.remember(answers, time.Now())
		var why []string
		for _, address := range q.others() {
			a := answers[address]
			switch {
			case a.err != nil:
				why = append(why, withReason(address, a.err))
			case a.Running:
				q.usable(a.Disk.Cluster)
				return
			case a.Status.Doing != "":
				why = append(why, fmt.Sprintf("%s (%s)", address, a.Status.Doing))
			}
		}
		if ctx.Err() != nil {
			return
		}
		q.waits("no machine of the quorum is ready: %s", strings.Join(why, ", "))
		if retry.Sleep(ctx, backoff.After(tries)) != nil {
			return
		}
	}
}

// use calls do with a client of the store for a while.
func (q *Quorum) use(ctx context.Context, do func(store.Store) error) error {
	s, err := q.Open(ctx)
	if err != nil {
		return err
	}
	return errors.Join(do(s), s.Close())
}

// Replace has another machine take the place of one that is lost for good: it joins when it is started with an address
// of its own, catches up and becomes a voter. Errors: one that says which address is wrong and which ones there are;
// store.ErrUnavailable without a majority; ErrClient.
func (q *Quorum) Replace(ctx context.Context, lost, instead string) error {
	if err := q.refuseClient("replacing a machine"); err != nil {
		return err
	}
	if err := checkAddress(instead); err != nil {
		return err
	}
	return q.use(ctx, func(s store.Store) error {
		return q.setRecord(ctx, s, func(r record) ([]string, error) { return replaced(r, lost, instead) })
	})
}

// replaced returns the machines of a record with one in the place of another.
func replaced(r record, lost, instead string) ([]string, error) {
	i := slices.Index(r.Machines, lost)
	switch {
	case slices.Contains(r.Machines, instead):
		return nil, &MachineError{instead, "is one of them already", r.Machines}
	case i < 0:
		return nil, &MachineError{lost, "is not one of them", r.Machines}
	}
	return append(slices.Delete(slices.Clone(r.Machines), i, i+1), instead), nil
}

// Remove takes machines out of the quorum, so that 1 or 3 are left. Those removed go on as clients. Errors: as of
// Replace.
func (q *Quorum) Remove(ctx context.Context, machines ...string) error {
	if err := q.refuseClient("removing machines"); err != nil {
		return err
	}
	return q.use(ctx, func(s store.Store) error {
		return q.setRecord(ctx, s, func(r record) ([]string, error) {
			left := slices.Clone(r.Machines)
			for _, address := range machines {
				i := slices.Index(left, address)
				if i < 0 {
					return nil, &MachineError{address, "is not one of them, or is named twice", r.Machines}
				}
				left = slices.Delete(left, i, i+1)
			}
			if len(left)%2 == 0 {
				return nil, fmt.Errorf("%d machines would be left of %s; want 1 or 3", len(left),
					strings.Join(r.Machines, ", "))
			}
			return left, nil
		})
	})
}

// MachineError is returned when a machine is named that can't be meant.
type MachineError struct {
	Address  string
	What     string   // what is wrong with it
	Machines []string // that keep the quorum
}

func (e *MachineError) Error() string {
	return fmt.Sprintf("%s %s: the machines are %s", e.Address, e.What, strings.Join(e.Machines, ", "))
}
