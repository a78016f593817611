package quorum

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"

	"github.com/firn-id/firn/internal/floor"
	"github.com/firn-id/firn/internal/retry"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/etcdstore"
	"github.com/firn-id/firn/store/internal/etcdserver"
	"github.com/firn-id/firn/store/quorum/internal/plan"
	"github.com/firn-id/firn/store/quorum/internal/port"
)

const (
	lookEvery = time.Second      // how often a machine looks at the others while its server runs
	keptAfter = 10 * time.Second // when what a server has applied is taken to be on its disk
	doWithin  = 5 * time.Second  // how long a change of the members may take
)

// recordKey is the key in the store that says which cluster this is, and who should keep it.
const recordKey = "quorum"

// record is what the key holds.
type record struct {
	Cluster  string   `json:"cluster"`
	Machines []string `json:"machines"` // ordered
}

// server is an etcd server of the quorum in this process.
type server struct {
	*etcdserver.Server
	local   *etcdstore.Store // a client of this server alone
	clients connections      // of other clients

	mu      sync.Mutex // guards what follows
	ready   bool       // it is a voter, and has applied what was committed when it began
	applied []uint64   // each second, the oldest first; up to keptAfter
	known   record     // as this server knows it
}

// connections can all be closed at once. The zero value is ready to use.
type connections struct {
	mu     sync.Mutex
	open   map[net.Conn]bool
	closed bool
}

// add returns false if all were closed.
func (cs *connections) add(c net.Conn) bool {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.open == nil {
		cs.open = map[net.Conn]bool{}
	}
	cs.open[c] = true
	return !cs.closed
}

func (cs *connections) remove(c net.Conn) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	delete(cs.open, c)
}

func (cs *connections) close() {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.closed = true
	for c := range cs.open {
		_ = c.Close() // its client connects to another server
	}
}

// serve runs a server until ctx ends, or it is not one of the cluster any more, or can't go on.
func (q *Quorum) serve(ctx context.Context, peers etcdserver.Peers) error {
	tlsDir := filepath.Join(q.disk.dir.Path, "tls")
	var err error
	if peers.CAFile, peers.CertFile, peers.KeyFile, peers.ServerName, err = q.ring.WriteFiles(tlsDir); err != nil {
		return err
	}
	peers.Self = q.selfAddress()
	q.waits("the server in this process starts")
	s := &server{applied: []uint64{q.index}}
	s.Server, err = q.disk.dir.Start(etcdserver.Config{Logger: q.log, Fatal: q.fatal, Peers: &peers})
	if err != nil {
		return err
	}
	defer s.Close()
	defer s.clients.close() // or Close would wait for their streams
	q.port.Handle(port.Peers, func(c *tls.Conn) { port.Pipe(c, "unix", s.PeerSocket()) })
	defer q.port.Handle(port.Peers, nil)
	defer q.port.Handle(port.Clients, nil)
	if s.local, err = etcdstore.Open(etcdstore.Config{Endpoints: []string{s.Endpoint()}, Logger: q.log}); err != nil {
		return err
	}
	defer s.local.Close()                                                                             //nolint:errcheck // it has no sessions
	if err := q.disk.set(plan.Disk{State: plan.Started, Cluster: q.disk.get().Cluster}); err != nil { // there is a log now
		return err
	}
	q.setServer(s)
	defer q.setServer(nil)
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
		select {
		case <-s.StopNotify():
			if ctx.Err() == nil {
				return q.leftBehind(ctx, s)
			}
		case <-ctx.Done():
			q.handOver(s)
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
		q.index = q.server.AppliedIndex()
	}
	q.server = s
	if s == nil {
		q.cluster = ""
	}
}

func (q *Quorum) fatal(err *etcdserver.DataError) {
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
		return fmt.Errorf("the server in this process has not found a majority of the others yet: %s", q.silent())
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
			port.Pipe(c, "unix", s.Socket())
		}
	})
	s.mu.Lock()
	s.ready = true
	s.mu.Unlock()
	q.log.Info("the quorum can be used", "cluster", q.disk.get().Cluster, "machine", q.selfAddress())
	q.usable(q.disk.get().Cluster)
	return nil
}

// silent says which machines do not answer, and why.
func (q *Quorum) silent() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	var all []string
	for address, a := range q.said {
		if a.err != nil && address != q.self {
			all = append(all, fmt.Sprintf("%s (%v)", address, a.err))
		}
	}
	slices.Sort(all)
	if len(all) == 0 {
		return "all answer"
	}
	return "no answer from " + strings.Join(all, ", ")
}

// nameAddress makes the cluster know this server by the machine's address: one that was alone has none.
func (q *Quorum) nameAddress(ctx context.Context, s *server) error {
	m := s.Cluster().Member(s.MemberID())
	url := etcdserver.URL(q.selfAddress())
	if m == nil || len(m.PeerURLs) == 1 && m.PeerURLs[0] == url {
		return nil
	}
	_, err := s.UpdateMember(ctx, membership.Member{ID: m.ID, RaftAttributes: membership.RaftAttributes{PeerURLs: []string{url}, IsLearner: m.IsLearner}})
	return err
}

// ensureRecord makes sure that the store says which cluster it is. Whoever is first in a new one also writes the floor.
func (q *Quorum) ensureRecord(ctx context.Context, s *server) error {
	mine := q.disk.get()
	found, err := readRecord(ctx, s.local)
	if err != nil {
		return err
	}
	if found.Cluster == "" {
		if err := q.putRecord(ctx, s, mine); err != nil {
			return err
		}
	} else if found.Cluster != mine.Cluster {
		err := fmt.Errorf("the data directory says that it belongs to cluster %s, and the store in it that it is %s: the directory was put together from two", mine.Cluster, found.Cluster)
		q.fail(err)
		return err
	}
	return s.refresh(ctx)
}

func (q *Quorum) putRecord(ctx context.Context, s *server, mine written) error {
	r := record{Cluster: mine.Cluster}
	for _, m := range s.members() {
		r.Machines = append(r.Machines, m.Address)
	}
	slices.Sort(r.Machines)
	txn := store.Txn{If: []store.Condition{{Key: recordKey}}}
	put, err := r.put()
	if err != nil {
		return err
	}
	txn.Then = append(txn.Then, put)
	if f, late := q.foundingFloor(time.Now()); mine.Founded && late {
		put, err := f.Put()
		if err != nil {
			return err
		}
		txn.Then = append(txn.Then, put)
		q.log.Warn("a cluster is formed, and may not be the first: to avoid duplicates, no ID is made for a while", "before", f.From, "why", f.Why)
	}
	_, err = s.local.Commit(ctx, txn)
	if errors.Is(err, store.ErrConflict) { // another machine was first
		return nil
	}
	return err
}

// firstWithin is how long after its key was made a cluster counts as the first one.
const firstWithin = time.Hour

// foundingFloor returns the floor of a cluster that is formed now, and whether it needs one: members of an earlier one,
// whose machines have all lost their data, may still use what they have reserved.
func (q *Quorum) foundingFloor(now time.Time) (f floor.Floor, late bool) {
	f = floor.Floor{From: floor.Above(now.Add(q.config.Window)), By: q.selfAddress(), Why: "the cluster was formed, and nobody knows since when its certificates are in use"}
	if q.since.IsZero() {
		return f, true
	}
	age := now.Sub(q.since)
	f.Why = fmt.Sprintf("the cluster was formed %v after its key was made: an earlier one may have lost all its data", age.Round(time.Second))
	return f, age > firstWithin || age < -firstWithin
}

func (r record) put() (store.Op, error) {
	text, err := json.Marshal(r)
	return store.Put(recordKey, text), err
}

// readRecord reads the record; if there is none, it is zero.
func readRecord(ctx context.Context, s store.Store) (r record, err error) {
	r, _, err = readRecordAt(ctx, s)
	return r, err
}

func readRecordAt(ctx context.Context, s store.Store) (r record, at store.Condition, err error) {
	kv, err := s.Get(ctx, recordKey)
	at = store.Condition{Key: recordKey, Version: kv.Version}
	if err != nil || kv.Version == 0 {
		return r, at, err
	}
	if err := json.Unmarshal(kv.Value, &r); err != nil {
		return r, at, fmt.Errorf("the key %q of the store can't be read: %w", recordKey, err)
	}
	return r, at, nil
}

// endSessions ends the sessions of the process before on this machine, so that nobody waits for their TTLs.
func (q *Quorum) endSessions(ctx context.Context, s *server) {
	former := q.disk.get().Leases
	for _, id := range former {
		_, _ = s.LeaseRevoke(ctx, &etcdserverpb.LeaseRevokeRequest{ID: id}) // else it expires
	}
	if len(former) > 0 {
		_, err := q.disk.change(func(w *written) bool {
			w.Leases = slices.DeleteFunc(slices.Clone(w.Leases), func(id int64) bool { return slices.Contains(former, id) })
			return true
		})
		if err != nil {
			q.log.Warn("can't note that former sessions have ended", "err", err)
		}
	}
}

// look asks the other machines, notes what they have kept, and takes care of the members if this server leads.
func (q *Quorum) look(ctx context.Context, s *server) {
	if err := s.refresh(ctx); err != nil {
		q.log.Debug("can't read the record of the quorum", "err", err)
	}
	members := s.members() // before the machines are asked
	answers := q.askAll(ctx, q.others())
	q.remember(answers)
	s.sample()
	q.note(s, answers)
	if s.Leader() == s.MemberID() && s.isReady() {
		answers[q.selfAddress()] = answer{report: q.report()}
		if err := q.care(ctx, s, members, answers); err != nil && ctx.Err() == nil {
			q.log.Warn("can't change who keeps the quorum at present; trying again", "err", err)
		}
	}
}

// noteEvery is how often a machine writes down what the others have kept.
const noteEvery = 10 * time.Second

// note writes down what the others have kept of the log, so that one whose directory is put back from a copy is noticed,
// and who they are.
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
				if w.Saw[address] > 0 { // it has begun anew
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
	cluster := q.disk.get().Cluster
	q.setServer(nil)
	s.Close()
	answers := q.askAll(ctx, q.others())
	for _, a := range answers {
		if a.err == nil && a.Running && a.Disk.Cluster == cluster {
			gone := plan.Disk{State: plan.Removed, Cluster: cluster}
			if slices.Contains(a.Record, q.selfAddress()) { // it is to begin anew
				gone.State = plan.Lost
			}
			q.log.Warn("the server in this process was removed from the quorum", "cluster", cluster, "now", gone.State.String())
			return q.lose(gone)
		}
	}
	return errors.New("the server in this process has stopped")
}

// isReady reports whether the server is a voter that has caught up.
func (s *server) isReady() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready
}

// running reports whether the server is one of a cluster that has a leader, and so a majority, and knows who is to keep it.
func (s *server) running() bool { return s.Leader() != 0 && len(s.record().Machines) > 0 }

// votes reports whether the server is a voter.
func (s *server) votes() bool {
	m := s.Cluster().Member(s.MemberID()) // etcd's own IsLearner ends the process if it was removed
	return m != nil && !m.IsLearner
}

// sample notes how far the server is now.
func (s *server) sample() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.applied) > int(keptAfter/lookEvery) {
		s.applied = s.applied[1:]
	}
	s.applied = append(s.applied, s.AppliedIndex())
}

// kept is the index up to which the server has its log on disk for sure.
func (s *server) kept() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.applied[0]
}

// refresh reads the record as this server knows it.
func (s *server) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, doWithin)
	defer cancel()
	found, err := s.Range(ctx, &etcdserverpb.RangeRequest{Key: []byte(etcdstore.DefaultPrefix + "/" + recordKey), Serializable: true})
	if err != nil || len(found.Kvs) == 0 {
		return err
	}
	var r record
	if err := json.Unmarshal(found.Kvs[0].Value, &r); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = r
	return nil
}

func (s *server) record() record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known
}

// members returns those of etcd's cluster as this server knows them.
func (s *server) members() (all []plan.Member) {
	leader := s.Leader()
	for _, m := range s.Cluster().Members() {
		address := ""
		if len(m.PeerURLs) > 0 {
			address = strings.TrimPrefix(m.PeerURLs[0], etcdserver.URL(""))
		}
		all = append(all, plan.Member{ID: uint64(m.ID), Address: address, Learner: m.IsLearner, Started: m.Name != "", Leader: m.ID == leader})
	}
	return all
}

// care does what plan.Care says.
func (q *Quorum) care(ctx context.Context, s *server, members []plan.Member, answers map[string]answer) error {
	mine := q.disk.get().Cluster
	situation := plan.Situation{
		Cluster: mine, Record: s.record().Machines, Own: q.config.Machines, Members: members,
		Said: said(answers), CaughtUp: map[uint64]bool{},
	}
	applied := s.AppliedIndex()
	for _, m := range members {
		if a := answers[m.Address]; m.Learner && m.Started && a.err == nil && a.Status.Index+maxBehind >= applied {
			situation.CaughtUp[m.ID] = true
		}
	}
	action := plan.Care(situation)
	if action.Kind == plan.Nothing {
		return q.tidy(ctx, s, answers)
	}
	q.log.Info("the quorum: "+action.Kind.String(), "machine", action.Add, "member", fmt.Sprintf("%x", action.ID), "why", action.Why)
	ctx, cancel := context.WithTimeout(ctx, doWithin)
	defer cancel()
	var err error
	switch action.Kind {
	case plan.SetRecord:
		err = q.setRecord(ctx, s.local, func(r record) ([]string, error) {
			if !slices.Equal(r.Machines, situation.Record) {
				return nil, errors.New("it has changed meanwhile")
			}
			return action.Record, nil
		})
	case plan.Add:
		now := time.Now()
		urls, wrong := types.NewURLs([]string{etcdserver.URL(action.Add)})
		if wrong != nil {
			return wrong
		}
		_, err = s.AddMember(ctx, *membership.NewMemberAsLearner("", urls, "", &now))
	case plan.Remove:
		_, err = s.RemoveMember(ctx, action.ID)
	case plan.Promote:
		_, err = s.PromoteMember(ctx, action.ID)
	case plan.HandOver:
		err = s.MoveLeader(ctx, uint64(s.MemberID()), action.ID)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", action.Kind, err)
	}
	return nil
}

// maxBehind is how many entries a learner may be behind when it gets a vote.
const maxBehind = 100

// setRecord changes the machines of the record to what next returns for it.
func (q *Quorum) setRecord(ctx context.Context, s store.Store, next func(record) ([]string, error)) error {
	for tries := 0; ; tries++ {
		r, at, err := readRecordAt(ctx, s)
		if err != nil {
			return err
		}
		if r.Machines, err = next(r); err != nil {
			return err
		}
		slices.Sort(r.Machines)
		put, err := r.put()
		if err != nil {
			return err
		}
		_, err = s.Commit(ctx, store.Txn{If: []store.Condition{at}, Then: []store.Op{put}})
		if !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrAmbiguous) {
			return err
		}
		if err := retry.Sleep(ctx, backoff.After(tries)); err != nil {
			return err
		}
	}
}
