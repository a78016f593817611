package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/firn-id/firn/store"
)

// "A store is linearizable and does not forget what it committed": while several clients
// write and read keys, sessions, watches and the log, and some are cut off, lose answers or
// their sessions, or the service is away, all that they are told has one order.
func oneOrder(s *suite) {
	seed := rand.Uint64()
	if err := observe(s, seed).check(); err != nil {
		s.Errorf("seed %d: %v", seed, err)
	}
}

// observe runs clients under faults, and returns what they saw.
func observe(s *suite, seed uint64) *observation {
	r := &observation{suite: s, seed: seed, stop: make(chan struct{}), final: make(chan struct{})}
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	r.ctx = ctx
	for range 3 {
		r.clients = append(r.clients, s.open())
	}
	for _, client := range r.clients {
		r.start(client, (*worker).useKeys)
		r.start(client, (*worker).useKeys)
		r.start(client, (*worker).useLog)
		r.watch(client)
		r.follow(client)
	}
	r.sessions = r.start(r.clients[0], (*worker).useSessions)
	r.faults(rand.New(rand.NewPCG(seed, 0)))
	close(r.stop)
	r.working.Wait()
	r.finish()
	r.watching.Wait()
	cancel()
	r.following.Wait()
	r.addEnds()
	s.Logf("%d calls about keys, %d about the log, %d of both in doubt, %d sessions", len(r.keys), len(r.log),
		r.inDoubt(), len(r.lives))
	return r
}

func (r *observation) inDoubt() (n int) {
	for _, c := range r.keys {
		if c.outcome == inDoubt {
			n++
		}
	}
	for _, c := range r.log {
		if c.outcome == inDoubt {
			n++
		}
	}
	return n
}

// observation is one run of several clients, of which history is what they saw.
type observation struct {
	history
	suite     *suite
	seed      uint64
	ctx       context.Context
	clients   []store.Store
	stop      chan struct{} // closed when workers must stop
	working   sync.WaitGroup
	final     chan struct{}  // closed when no key is left: every watch must fire then
	watching  sync.WaitGroup // ends when they have
	following sync.WaitGroup // ends with ctx
	all       []*worker

	sessions  *worker // who has sessions from the beginning
	followers []*follower

	living sync.Mutex // guards what follows
	lives  []*life
}

// life is that of a session.
type life struct {
	store.Session
	number int
	opened int64 // when it was
	over   int64 // a moment at which it had ended; zero: none is known
}

func (r *observation) newWorker(client store.Store) *worker {
	number := len(r.all) + 1
	w := &worker{
		observation: r, client: client, number: number,
		random: rand.New(rand.NewPCG(r.seed, uint64(number))),
		known:  make(map[string]store.KV), holding: make(chan struct{}, 1),
	}
	r.all = append(r.all, w)
	return w
}

// start has a worker do something until the observation stops.
func (r *observation) start(client store.Store, do func(*worker)) *worker {
	w := r.newWorker(client)
	r.working.Go(func() {
		for {
			select {
			case <-r.stop:
				return
			case <-time.After(time.Duration(w.random.Int64N(int64(r.suite.TTL / 50)))):
				do(w)
			}
		}
	})
	return w
}

// ends notes that a session has ended.
func (r *observation) ends(s *life) {
	r.living.Lock()
	defer r.living.Unlock()
	s.over = r.now()
}

// addEnds adds the ends of the sessions to the history. A session that nobody knows the end
// of may end at any time, or at the very end, which is never.
func (r *observation) addEnds() {
	for _, s := range r.lives {
		c := &keyCall{
			span: span{call: s.opened, end: s.over}, kind: ending, group: groups[len(groups)-1],
			session: s.number,
		}
		if c.end == 0 {
			c.end = r.now()
		}
		r.addKeys(c)
	}
}

// watch watches one key after the other until it is gone.
func (r *observation) watch(client store.Store) {
	w := r.newWorker(client)
	r.watching.Go(func() {
		for !w.stopped() {
			time.Sleep(time.Duration(w.random.Int64N(int64(r.suite.TTL / 50))))
			group := groups[w.random.IntN(len(groups))]
			c := &keyCall{span: span{worker: w.number, call: r.now()}, kind: firing, group: group, key: w.anyKey(group)}
			fires, err := client.Gone(r.ctx, c.key)
			switch outcomeOf(err, store.ErrUnavailable) {
			case mistaken:
				r.problem("Gone %s: %w", c.key, err)
				return
			case noEffect:
				continue
			}
			if !r.fires(fires) {
				r.problem("Gone %s, called at %d, does not fire within %v of the key's end", c.key, c.call,
					r.suite.Patience)
				return
			}
			c.end = r.now()
			r.addKeys(c)
		}
	})
}

// fires waits until a watch fires; false: it does not, although the key is gone.
func (r *observation) fires(gone <-chan struct{}) bool {
	select {
	case <-gone:
		return true
	case <-r.final:
	}
	select {
	case <-gone:
		return true
	case <-time.After(r.suite.Patience):
		return false
	}
}

// follower is a Follow from the beginning of the log.
type follower struct {
	*observation
	least store.Position // what its first batches must reach

	mu    sync.Mutex // guards what follows
	begun bool       // those have come
	upTo  store.Position
	ids   []string // of all entries, those that a checkpoint stood for, too
}

// follow follows the log to the end of the observation.
func (r *observation) follow(client store.Store) {
	f := &follower{observation: r}
	r.mu.Lock()
	for _, c := range r.log {
		f.least = max(f.least, c.position)
	}
	r.mu.Unlock()
	r.followers = append(r.followers, f)
	r.following.Go(func() {
		for batch, err := range client.Follow(r.ctx, 0) {
			if err != nil && r.ctx.Err() == nil {
				r.problem("Follow ends: %w", err)
			}
			f.yielded(batch)
		}
	})
}

func (f *follower) yielded(batch store.Batch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if at := batch.Checkpoint; at != nil {
		ids := idsOf(at)
		if len(ids) < len(f.ids) || !slices.Equal(ids[:len(f.ids)], f.ids) {
			f.problem("Follow yields a checkpoint of %d entries at %d that does not stand for the %d entries up to %d",
				len(ids), at.Position, len(f.ids), f.upTo)
		}
		f.ids = ids
		f.ascends(at.Position)
	}
	for _, e := range batch.Entries {
		f.ids = append(f.ids, e.ID)
		f.ascends(e.Position)
	}
	if !f.begun && !batch.More {
		f.begun = true
		if f.upTo < f.least {
			f.problem("Follow yields entries up to %d first, and one at %d was there before", f.upTo, f.least)
		}
	}
}

func (f *follower) ascends(position store.Position) {
	if position <= f.upTo {
		f.problem("Follow yields %d after %d", position, f.upTo)
	}
	f.upTo = position
}

func (f *follower) at(position store.Position) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.upTo >= position
}

// faults makes what can go wrong go wrong.
func (r *observation) faults(random *rand.Rand) {
	s := r.suite
	rest := func(ttls float64) { time.Sleep(time.Duration(ttls * float64(s.TTL))) }
	victim := func() store.Store { return r.clients[random.IntN(len(r.clients))] }
	rest(0.7)
	if s.Expire != nil {
		r.expire(r.sessions)
	}
	for _, client := range r.clients[1:] {
		r.start(client, (*worker).useSessions)
	}
	if s.CutOff != nil {
		for _, ttls := range []float64{0.4, 1.3} {
			client := victim()
			s.CutOff(client, true)
			rest(ttls)
			s.CutOff(client, false)
		}
	}
	r.follow(victim())
	if s.Disturb != nil {
		for _, disturbed := range []bool{true, false} {
			for _, client := range r.clients {
				s.Disturb(client, disturbed)
			}
			rest(0.7)
		}
	}
	if s.Stop != nil {
		s.Stop(s.T)
		rest(0.4)
		s.Start(s.T)
	}
	rest(0.3)
}

// expire has the session of a worker expire. No other is open.
func (r *observation) expire(w *worker) {
	w.holding <- struct{}{}
	defer func() { <-w.holding }()
	if w.session == nil {
		w.openSession()
	}
	if w.session != nil {
		r.suite.Expire(r.suite.T, w.session.Session)
		r.ends(w.session)
	}
}

// finish deletes all keys, and reads the log, once the faults are over. Every watch must
// fire then, and every follower have the whole log.
func (r *observation) finish() {
	for _, w := range r.all {
		if w.doubt != nil {
			r.addLog(w.doubt)
		}
	}
	for _, w := range r.all {
		if w.session != nil {
			r.until("the end of a session", func() bool { return w.closeSession() })
		}
	}
	w := r.newWorker(r.suite.open())
	for _, group := range groups {
		r.until("a List of "+group, func() bool { return w.list(group) })
		r.until("a delete of all of "+group, func() bool {
			c := &keyCall{kind: committing, group: group, value: w.newValue()}
			for _, name := range groupKeys {
				c.txn.Then = append(c.txn.Then, store.Delete(group+name))
			}
			return w.do(c)
		})
	}
	close(r.final)
	r.until("a last append", w.append)
	var last store.Batch
	r.until("a Read of the whole log", func() (ok bool) {
		last, ok = w.readLog(0)
		return ok
	})
	ids := idsOf(last.Checkpoint)
	for _, e := range last.Entries {
		ids = append(ids, e.ID)
	}
	for i, f := range r.followers {
		if !r.until(fmt.Sprintf("follower %d at the end of the log", i), func() bool { return f.at(w.read) }) {
			continue
		}
		f.mu.Lock()
		if !slices.Equal(f.ids, ids) {
			r.problem("follower %d has yielded %d entries, and the log has %d: %s", i, len(f.ids), len(ids),
				difference(f.ids, ids))
		}
		f.mu.Unlock()
	}
}

// difference says where two lists part.
func difference(have, want []string) string {
	i := 0
	for i < len(have) && i < len(want) && have[i] == want[i] {
		i++
	}
	return fmt.Sprintf("from the %dth on they are %q, and %q", i+1, have[i:min(i+3, len(have))],
		want[i:min(i+3, len(want))])
}

// until repeats something until it succeeds; false: it did not in time.
func (r *observation) until(what string, succeeds func() bool) bool {
	for deadline := time.Now().Add(r.suite.Patience); !succeeds(); time.Sleep(r.suite.TTL / 50) {
		if time.Now().After(deadline) {
			r.problem("%s: not within %v of the last fault", what, r.suite.Patience)
			return false
		}
	}
	return true
}
