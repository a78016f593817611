package quorum

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"

	"github.com/firn-id/firn/store/etcdstore"
	"github.com/firn-id/firn/store/internal/etcdserver"
	"github.com/firn-id/firn/store/quorum/internal/plan"
	"github.com/firn-id/firn/store/quorum/internal/port"
)

// serve runs a server until ctx ends, or it is not one of the cluster any more, or can't go on. If this process then
// goes on without it, it knows how far the log goes now.
func (q *Quorum) serve(ctx context.Context, peers etcdserver.Peers) error {
	err := q.runServer(ctx, peers)
	if ctx.Err() != nil {
		return err
	}
	index, failed := q.disk.dir.LastEntry()
	member, unknown := q.disk.dir.MemberID()
	if failed = errors.Join(failed, unknown); failed != nil {
		q.fail(failed) // the next process examines it
		<-ctx.Done()
		return failed
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.index, q.member = index, member
	return err
}

// runServer is serve, without what comes after.
func (q *Quorum) runServer(ctx context.Context, peers etcdserver.Peers) error {
	tlsDir := filepath.Join(q.disk.dir.Path, "tls")
	var err error
	if peers.CAFile, peers.CertFile, peers.KeyFile, peers.ServerName, err = q.ring.WriteFiles(tlsDir); err != nil {
		return err
	}
	peers.Self, peers.May = q.selfAddress(), clientMay
	q.waits("the server in this process starts")
	s := new(server)
	s.Server, err = q.disk.dir.Start(etcdserver.Config{Logger: q.log, Fatal: q.fatal, Peers: &peers})
	if err != nil {
		return err
	}
	defer s.Close()
	s.sample() // not the log's last entry: one that is not committed may be replaced
	q.port.Handle(port.Peers, func(c *tls.Conn) { port.Pipe(c, "unix", s.PeerSocket()) })
	defer q.port.Handle(port.Peers, nil)
	defer q.port.Handle(port.Clients, nil)
	if s.local, err = etcdstore.Open(etcdstore.Config{Endpoints: []string{s.Endpoint()}, Logger: q.log}); err != nil {
		return err
	}
	defer s.local.Close() //nolint:errcheck // it has no sessions
	was := q.disk.get().Disk
	if err := q.disk.set(was, plan.Disk{State: plan.Started, Cluster: was.Cluster}); err != nil { // there is a log now
		return err
	}
	q.setServer(s)
	defer q.setServer(nil)
	led, met := time.Now(), time.Now()
	for first := true; ; first = false {
		pause := lookEvery
		if !s.isReady() {
			pause = lookEvery / 10
			if err := q.makeReady(ctx, s); err != nil && ctx.Err() == nil {
				q.waits("%v", err)
			}
		}
		if first || s.isReady() {
			q.look(ctx, s)
		}
		if s.isReady() && time.Since(met) >= meetEvery {
			met = time.Now()
			if q.meetAgain(ctx, s) {
				return nil // step says why
			}
		}
		led = s.openToClients(led)
		select {
		case <-s.StopNotify():
			if ctx.Err() == nil {
				return q.leftBehind(ctx, s)
			}
		case <-ctx.Done():
			if q.dead.Err() == nil {
				q.handOver(s)
			}
			return nil
		case <-time.After(pause):
		}
	}
}

// handOver makes another server the leader, if this one is it and another lives, so that the others need not wait until
// they miss it.
func (q *Quorum) handOver(s *server) {
	ctx, cancel := context.WithTimeout(context.Background(), doWithin)
	defer cancel()
	if s.Leader() != s.MemberID() {
		return
	}
	answers := q.askAll(ctx, q.others())
	var next plan.Member
	for _, m := range s.members() {
		a, ok := answers[m.Address]
		better := next.ID == 0 || a.Status.Index > answers[next.Address].Status.Index
		if ok && a.err == nil && a.Running && !m.Learner && better {
			next = m
		}
	}
	if next.ID == 0 {
		return
	}
	if err := s.MoveLeader(ctx, uint64(s.MemberID()), next.ID); err != nil {
		q.log.Warn("can't hand leadership over", "to", next.Address, "err", err)
	}
}

func (q *Quorum) setServer(s *server) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if s == nil && q.server != nil {
		q.member = uint64(q.server.MemberID())
	}
	q.server = s
	if s == nil {
		q.cluster = ""
	}
}

// fatal is called when the server can't go on. If the others say that this machine has lost what it had confirmed, its
// data can't be used any more, and the next process gets a copy of theirs.
func (q *Quorum) fatal(data *etcdserver.DataError) {
	var err error = data
	if was := q.disk.get().Disk; data.SetBack() {
		err = fmt.Errorf("%w; it is set aside: start again, to get a copy from the other machines", data.Err)
		if failed := q.disk.lose(was, plan.Disk{State: plan.Lost, Cluster: was.Cluster}); failed != nil {
			err = fmt.Errorf("%w; it can't be set aside: %w", data, failed)
		}
	}
	if q.config.Fatal != nil {
		q.config.Fatal(err)
	}
	q.log.Error(err.Error())
}

// makeReady does what is left to do before the server is one of the voters and the store can be used.
func (q *Quorum) makeReady(ctx context.Context, s *server) error {
	ctx, cancel := context.WithTimeout(ctx, doWithin)
	defer cancel()
	wait, done := context.WithTimeout(ctx, lookEvery)
	defer done()
	if err := s.Wait(wait); err != nil {
		q.remember(q.askAll(ctx, q.others()), time.Now())
		return fmt.Errorf("the server in this process has not found a majority of the others yet: %s", q.missing())
	}
	if err := q.nameAddress(ctx, s); err != nil {
		return fmt.Errorf("can't tell the cluster the address of this machine: %w", err)
	}
	if !s.votes() {
		return errors.New("the server in this process is catching up with the others")
	}
	if err := q.ensureRecord(ctx, s); err != nil {
		return err
	}
	q.endSessions(ctx, s)
	q.port.Handle(port.Clients, func(c *tls.Conn) {
		if s.clients.add(c) {
			defer s.clients.remove(c)
			socket := s.LimitedSocket()
			if q.ring.IsMachine(c.ConnectionState()) {
				socket = s.Socket()
			}
			port.Pipe(c, "unix", socket)
		}
	})
	s.mu.Lock()
	s.ready = true
	s.mu.Unlock()
	q.log.Info("the quorum can be used", "cluster", q.disk.get().Cluster, "machine", q.selfAddress())
	q.usable(q.disk.get().Cluster)
	return nil
}

// missing says which machines do not answer, and why, and which have no data.
func (q *Quorum) missing() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	var silent, empty, all []string
	for address, a := range q.said {
		switch {
		case address == q.self:
		case a.err != nil:
			silent = append(silent, withReason(address, a.err))
		case a.Disk.State != plan.Started && a.Disk.State != plan.Formed:
			empty = append(empty, address)
		}
	}
	slices.Sort(silent)
	slices.Sort(empty)
	if len(silent) > 0 {
		all = append(all, "no answer from "+strings.Join(silent, ", "))
	}
	if len(empty) > 0 {
		all = append(all,
			fmt.Sprintf("no data at %s: if that is a majority, bring their directories back, or restore a backup",
				strings.Join(empty, ", ")))
	}
	if len(all) == 0 {
		return "all answer"
	}
	return strings.Join(all, "; ")
}

// nameAddress makes the cluster know this server by the machine's address: that of a quorum of one has none.
func (q *Quorum) nameAddress(ctx context.Context, s *server) error {
	m := s.Cluster().Member(s.MemberID())
	url := etcdserver.URL(q.selfAddress())
	if m == nil || len(m.PeerURLs) == 1 && m.PeerURLs[0] == url {
		return nil
	}
	_, err := s.UpdateMember(ctx, membership.Member{
		ID:             m.ID,
		RaftAttributes: membership.RaftAttributes{PeerURLs: []string{url}, IsLearner: m.IsLearner},
	})
	return err
}

// endSessions ends the sessions of the process before on this machine, so that nobody waits for their TTLs.
func (q *Quorum) endSessions(ctx context.Context, s *server) {
	for _, id := range q.former {
		_, _ = s.LeaseRevoke(ctx, &etcdserverpb.LeaseRevokeRequest{ID: id}) // else it expires
	}
	if len(q.former) > 0 {
		_, err := q.disk.change(func(w *written) bool {
			w.Leases = slices.DeleteFunc(slices.Clone(w.Leases), func(id int64) bool {
				return slices.Contains(q.former, id)
			})
			return true
		})
		if err != nil {
			q.log.Warn("can't note that former sessions have ended", "err", err)
		}
	}
	q.former = nil
}

// look asks the other machines, notes what they have kept, and takes care of the members if this server leads.
func (q *Quorum) look(ctx context.Context, s *server) {
	if err := s.refresh(ctx); err != nil {
		q.log.Debug("can't read the record of the quorum", "err", err)
	}
	members := s.members() // before the machines are asked
	answers := q.askAll(ctx, q.others())
	q.remember(answers, time.Now())
	s.sample()
	q.note(s, answers)
	if s.leads(len(members)) && s.isReady() {
		answers[q.selfAddress()] = answer{report: q.report()}
		if err := q.care(ctx, s, members, answers); err != nil && ctx.Err() == nil {
			q.log.Warn("can't change who keeps the quorum at present; trying again", "err", err)
		}
	}
}

// noteEvery is how often a machine writes down what the others have kept.
const noteEvery = 10 * time.Second

// note writes down what the others have kept of the log, so that one whose directory is put back from a copy is
// noticed, and who they are.
func (q *Quorum) note(s *server, answers map[string]answer) {
	q.mu.Lock()
	due := time.Since(q.noted) >= noteEvery
	if due {
		q.noted = time.Now()
	}
	q.mu.Unlock()
	machines := s.record().Machines
	began := time.Now()
	changed, err := q.disk.change(func(w *written) bool {
		change := len(machines) > 0 && !slices.Equal(w.Known, machines)
		if change {
			w.Known = machines
		}
		if w.Saw == nil {
			w.Saw = map[string]uint64{}
		}
		for address, a := range answers {
			if a.err != nil {
				continue
			}
			switch {
			case a.Disk.State != plan.Started || a.Disk.Cluster != w.Cluster:
				if w.Saw[address] > 0 { // it has begun again
					delete(w.Saw, address)
					change = true
				}
			case a.Running && a.Index > w.Saw[address] && due:
				w.Saw[address] = a.Index
				change = true
			}
		}
		return change
	})
	if err != nil {
		q.log.Warn("can't note what the other machines have kept", "err", err)
	}
	if changed {
		q.mu.Lock()
		q.synced = time.Since(began)
		q.mu.Unlock()
	}
}

// leftBehind is called when a server has stopped by itself: it is not one of the cluster any more.
func (q *Quorum) leftBehind(ctx context.Context, s *server) error {
	was := q.disk.get().Disk
	q.setServer(nil)
	s.Close()
	answers := q.askAll(ctx, q.others())
	for _, a := range answers {
		if a.err == nil && a.Running && a.Disk.Cluster == was.Cluster {
			gone := plan.Disk{State: plan.Removed, Cluster: was.Cluster}
			if slices.Contains(a.Record, q.selfAddress()) { // it is to begin again
				gone.State = plan.Lost
			}
			q.log.Warn("the server in this process was removed from the quorum", "cluster", was.Cluster, "now",
				gone.State.String())
			return q.lose(was, gone)
		}
	}
	return errors.New("the server in this process has stopped")
}
