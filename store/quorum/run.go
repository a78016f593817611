package quorum

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/firn-id/firn/internal/base/fresh"
	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/store/internal/etcdserver"
	"github.com/firn-id/firn/store/quorum/internal/plan"
)

// backoff paces what is tried until it succeeds.
var backoff = retry.Backoff{First: 100 * time.Millisecond, Max: time.Second}

// run has this process be what it is to the quorum, until ctx ends. unknown says why it does not know yet what that is.
func (q *Quorum) run(ctx context.Context, unknown error) {
	for tries := 0; unknown != nil; tries++ {
		q.waits("%v", unknown)
		if retry.Sleep(ctx, backoff.After(tries)) != nil {
			return
		}
		passes := new(unknownError)
		if unknown = q.begin(); unknown != nil && !errors.As(unknown, &passes) {
			q.fail(unknown)
			return
		}
	}
	switch {
	case q.isOne():
		if err := q.runOne(ctx); err != nil && ctx.Err() == nil {
			q.fail(err)
		}
		return
	case q.selfAddress() == "":
		q.follow(ctx)
		return
	}
	for tries := 0; ctx.Err() == nil; {
		done, err := q.step(ctx)
		switch {
		case err == nil && done:
			tries = 0
			continue
		case err != nil && ctx.Err() == nil:
			q.waits("%v", err)
		}
		_ = retry.Sleep(ctx, backoff.After(tries)) // ctx is looked at next
		tries++
	}
}

// step asks the other machines and does what plan.Decide says. It returns true if something has changed.
func (q *Quorum) step(ctx context.Context) (done bool, err error) {
	var own answer
	var asked sync.WaitGroup
	asked.Go(func() { own = q.askTwin(ctx) })
	answers := q.askAll(ctx, q.others())
	asked.Wait()
	q.remember(answers, time.Now())
	me, all := q.machine(), said(answers)
	if own.err == nil {
		all[me.Address] = own.Machine
	}
	d := plan.Decide(me, all, newIdentity())
	if d.Do != plan.Wait && d.Why != q.decided {
		q.log.Info("the quorum: "+d.Do.String(), "cluster", d.Cluster, "why", d.Why)
	}
	q.decided = d.Why
	switch d.Do {
	case plan.Propose:
		return q.propose(ctx, d.Cluster, answers)
	case plan.Follow:
		return q.form(d.Cluster)
	case plan.Run:
		if why := q.mayRun(ctx, answers); why != nil {
			if _, ok := errors.AsType[*partedError](why); ok {
				q.fail(why)
				<-ctx.Done()
			}
			return false, why
		}
		if me.Disk.State == plan.Alone {
			if err := q.disk.set(me.Disk, plan.Disk{State: plan.Started, Cluster: d.Cluster}); err != nil {
				return false, err
			}
		}
		peers := etcdserver.Peers{All: []string{q.selfAddress()}}
		if me.Disk.State == plan.Formed {
			peers = etcdserver.Peers{All: q.config.Machines, Cluster: d.Cluster}
		}
		return true, q.serve(ctx, peers)
	case plan.Join:
		return q.join(ctx, me.Disk, d, answers)
	case plan.SetBack:
		return true, q.lose(me.Disk, plan.Disk{State: plan.Lost, Cluster: d.Cluster})
	case plan.Client:
		if me.Disk.State != plan.Empty {
			err = q.lose(me.Disk, plan.Disk{State: plan.Removed, Cluster: d.Cluster})
		}
		if err == nil {
			q.follow(ctx)
		}
		return false, err // it may be asked to join later
	case plan.Refuse:
		q.fail(errors.New(d.Why))
		<-ctx.Done()
		return false, nil
	default:
		q.waits("%s", waitingFor(d, answers))
		return false, nil
	}
}

// waitingFor says for whom a machine waits, and why they do not answer.
func waitingFor(d plan.Decision, answers map[string]answer) string {
	var whom []string
	for _, address := range d.For {
		whom = append(whom, withReason(address, answers[address].err))
	}
	if len(whom) == 0 {
		return d.Why
	}
	return d.Why + "; waiting for " + strings.Join(whom, ", ")
}

// withReason adds to an address why the machine does not answer.
func withReason(address string, err error) string {
	if err == nil {
		return address
	}
	return fmt.Sprintf("%s (%s)", address, strings.TrimPrefix(err.Error(), address+" "))
}

// propose offers a new cluster to all machines, and forms it if all accept.
func (q *Quorum) propose(ctx context.Context, cluster string, answers map[string]answer) (bool, error) {
	if ok, err := q.accept(plan.OfferTo(q.machine(), cluster)); !ok || err != nil {
		return false, err
	}
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	accepted := []string{q.selfAddress()}
	var why error
	for _, address := range q.others() {
		if err := q.asker.call(ctx, address, http.MethodPost, "/offer", plan.OfferTo(answers[address].Machine, cluster),
			nil); err != nil {
			why = fmt.Errorf("%s does not agree to a new cluster: %w", address, err)
			continue
		}
		accepted = append(accepted, address)
	}
	if !plan.Agreed(q.config.Machines, accepted) {
		return false, why
	}
	if ok, err := q.form(cluster); !ok || err != nil {
		return false, err
	}
	for _, address := range q.others() { // who misses it asks, and follows
		_ = q.asker.call(ctx, address, http.MethodPost, "/form", plan.Disk{Cluster: cluster}, nil)
	}
	return true, nil
}

// accept promises to be part of a cluster, unless plan.Accept says no.
func (q *Quorum) accept(o plan.Offer) (bool, error) {
	me := q.machine()
	return q.disk.change(func(now *written) (accepted bool) {
		me.Disk = now.Disk
		now.Disk, accepted = plan.Accept(me, o)
		now.Founded = accepted
		return accepted
	})
}

// form notes that all have promised.
func (q *Quorum) form(cluster string) (bool, error) {
	return q.disk.change(func(now *written) (formed bool) {
		now.Disk, formed = plan.Form(now.Disk, cluster)
		return formed
	})
}

// join starts a server as a learner, once the leader of the cluster has added it.
func (q *Quorum) join(ctx context.Context, was plan.Disk, d plan.Decision, answers map[string]answer) (bool, error) {
	self := q.selfAddress()
	for _, a := range answers {
		if a.err != nil || !a.Running || a.Disk.Cluster != d.Cluster {
			continue
		}
		i := slices.IndexFunc(a.Members, func(m plan.Member) bool { return m.Address == self })
		if i < 0 || a.Members[i].Started {
			continue
		}
		lost := plan.Disk{State: plan.Lost, Cluster: d.Cluster}
		if err := q.lose(was, lost); err != nil {
			return false, err
		}
		// Started before there is a log: whoever sees that the server has joined must not take it for emptied. If the
		// process ends before, the disk says Lost again, see openDisk.
		started := plan.Disk{State: plan.Started, Cluster: d.Cluster}
		if err := q.disk.set(lost, started); err != nil {
			return false, err
		}
		err := q.serve(ctx, etcdserver.Peers{All: addresses(a.Members)})
		if !q.disk.dir.HasLog() {
			err = errors.Join(err, q.disk.set(started, lost))
		}
		return true, err
	}
	q.waits("%s; waiting until its leader adds it", d.Why)
	return false, nil
}

// lose sets the data aside: it can't be used, or is not this machine's any more.
func (q *Quorum) lose(was, says plan.Disk) error {
	q.mu.Lock()
	q.index, q.member = 0, 0
	q.mu.Unlock()
	return q.disk.lose(was, says)
}

// newIdentity returns a random identity of a cluster.
func newIdentity() string {
	id := fresh.Bytes()
	return hex.EncodeToString(id[:8])
}

// machine returns what this machine says of itself to plan.
func (q *Quorum) machine() plan.Machine {
	q.mu.Lock()
	s, disk, index, member := q.server, q.disk, q.index, q.member
	m := plan.Machine{Address: q.self, Life: q.lifeID, List: q.config.Machines}
	q.mu.Unlock()
	if disk == nil {
		return m
	}
	w := disk.get()
	m.Disk, m.Saw, m.Index, m.Member = w.Disk, w.Saw, index, member
	if s != nil {
		m.Member = uint64(s.MemberID())
		m.Index, m.Running, m.Record = s.kept(), s.running(), s.record().Machines
		m.Saw = s.confirmed(m.Saw)
	}
	return m
}

// others returns the addresses of all machines that it knows, but its own.
func (q *Quorum) others() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := slices.Clone(q.config.Machines)
	if q.disk != nil {
		all = append(all, q.disk.get().Known...)
	}
	if q.server != nil { // a member that the record has lost has a vote until it is removed
		all = append(all, addresses(q.server.members())...)
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(a string) bool { return a == q.self })
}

// addresses returns those of members. That of a quorum of one may have none yet that others can connect to.
func addresses(members []plan.Member) (all []string) {
	for _, m := range members {
		if checkAddress(m.Address) == nil {
			all = append(all, m.Address)
		}
	}
	return all
}

// lostAfter is how long a machine that keeps the quorum may say nothing before that is logged: one answer may come
// late.
const lostAfter = 5 * time.Second

// remember keeps what the machines said, for Status, and tells of those that no longer answer, and answer again.
func (q *Quorum) remember(answers map[string]answer, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for address, a := range answers {
		was := q.said[address]
		switch {
		case a.err == nil && was.told:
			q.log.Info("a machine of the quorum answers again", "machine", address, "after",
				now.Sub(was.silent).Round(time.Second))
		case a.err != nil:
			a.report, a.silent, a.told = was.report, was.silent, was.told
			if a.silent.IsZero() {
				a.silent = now
			}
			if !a.told && was.Status.Role == Voter && now.Sub(a.silent) >= lostAfter {
				a.told = true
				q.log.Warn("a machine of the quorum does not answer", "machine", address, "since",
					a.silent.UTC().Format(time.RFC3339), "err", a.err)
			}
		}
		q.said[address] = a
	}
}

func (q *Quorum) selfAddress() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.self
}

// waits notes what the process waits for, and logs it when that changes.
func (q *Quorum) waits(format string, args ...any) {
	q.tell(func() (what string) {
		what = fmt.Sprintf(format, args...)
		if q.doing != what {
			q.doing, q.cluster = what, ""
			return what
		}
		return ""
	})
}

// usable notes that the cluster can be used.
func (q *Quorum) usable(cluster string) {
	q.tell(func() string {
		q.doing, q.cluster = "", cluster
		return ""
	})
}

// fail notes that the process can't go on.
func (q *Quorum) fail(err error) {
	q.tell(func() string {
		q.failed = err
		return ""
	})
}

// tell changes what Open waits for, and logs what change returns.
func (q *Quorum) tell(change func() string) {
	q.mu.Lock()
	what := change()
	close(q.changed)
	q.changed = make(chan struct{})
	q.mu.Unlock()
	if what != "" {
		q.log.Info("the quorum: waiting", "for", what)
	}
}
