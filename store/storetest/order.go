package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
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

// worker does one call after the other through a client.
type worker struct {
	*observation
	client store.Store
	number int
	random *rand.Rand
	values int

	known map[string]store.KV // what it read of keys last

	holding chan struct{} // has an element during a call about the session
	session *life

	read  store.Position // how far it has read the log
	doubt *logCall       // an append that it must repeat
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

// begin is the beginning of a call.
func (w *worker) begin() (span, context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(w.ctx, w.suite.TTL/2)
	return span{worker: w.number, call: w.now()}, ctx, cancel
}

// newValue is one that nobody else writes.
func (w *worker) newValue() string {
	w.values++
	return fmt.Sprintf("%d.%d", w.number, w.values)
}

func (w *worker) chance(percent int) bool { return w.random.IntN(100) < percent }

func (w *worker) anyKey(group string) string { return group + groupKeys[w.random.IntN(len(groupKeys))] }

// useKeys reads or writes keys.
func (w *worker) useKeys() {
	group := groups[w.random.IntN(len(groups))]
	switch key := w.anyKey(group); {
	case w.chance(30):
		w.get(group, key)
	case w.chance(30):
		w.list(group)
	default:
		w.commit(group, nil)
	}
}

func (w *worker) get(group, key string) {
	span, ctx, cancel := w.begin()
	defer cancel()
	kv, err := w.client.Get(ctx, key)
	w.finds(&keyCall{span: span, kind: getting, group: group, key: key, found: []store.KV{kv}}, err)
}

func (w *worker) list(group string) bool {
	span, ctx, cancel := w.begin()
	defer cancel()
	kvs, err := w.client.List(ctx, group)
	return w.finds(&keyCall{span: span, kind: listing, group: group, found: kvs}, err)
}

// finds notes what a read found; false: nothing.
func (w *worker) finds(c *keyCall, err error) bool {
	c.end = w.now()
	switch outcomeOf(err, store.ErrUnavailable) {
	case mistaken:
		w.problem("a read of %s%s: %w", c.group, c.key, err)
		return false
	case noEffect:
		return false
	}
	if c.kind == listing {
		for _, name := range groupKeys {
			w.known[c.group+name] = store.KV{}
		}
	}
	for _, kv := range c.found {
		w.known[kv.Key] = kv
	}
	w.addKeys(c)
	return true
}

// commit writes one or two keys, most often if they are as the worker knows them. It puts
// them under the session, unless that is nil.
func (w *worker) commit(group string, session *life) {
	c := &keyCall{kind: committing, group: group, value: w.newValue()}
	keys := slices.Clone(groupKeys[:])
	w.random.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	for _, name := range keys[:1+w.random.IntN(2)] {
		key := group + name
		if w.chance(85) {
			c.txn.If = append(c.txn.If, store.Condition{Key: key, Version: w.known[key].Version})
		}
		switch {
		case w.chance(20):
			c.txn.Then = append(c.txn.Then, store.Delete(key))
		case session != nil:
			c.session = session.number
			c.txn.Then = append(c.txn.Then, store.PutEphemeral(key, []byte(c.value), session.Session))
		default:
			c.txn.Then = append(c.txn.Then, store.Put(key, []byte(c.value)))
		}
	}
	if w.chance(90) { // it can't take effect much later than it was sent
		for _, name := range groupKeys {
			if kv := w.known[group+name]; kv.Version != 0 {
				c.txn.If = append(c.txn.If, store.Condition{Key: kv.Key, Version: kv.Version})
				break
			}
		}
	}
	if w.do(c); c.outcome == inDoubt {
		w.list(group)
	}
}

// do commits a transaction; false: nobody knows that it was applied.
func (w *worker) do(c *keyCall) bool {
	allowed := []error{store.ErrConflict, store.ErrAmbiguous, store.ErrUnavailable}
	if c.session != 0 {
		allowed = append(allowed, store.ErrSessionEnded)
	}
	span, ctx, cancel := w.begin()
	defer cancel()
	version, err := w.client.Commit(ctx, c.txn)
	span.end = w.now()
	c.span, c.version, c.outcome = span, version, outcomeOf(err, allowed...)
	switch c.outcome {
	case sessionEnded:
		select {
		case <-w.session.Done(): // it has given up, although the service may not have
			c.gaveUp = true
		default:
		}
	case mistaken:
		w.problem("%v: %w", c, err)
		c.outcome = inDoubt
	case noEffect:
		return false // nobody may see it
	case applied:
		for _, op := range c.txn.Then {
			w.known[op.Key] = store.KV{Key: op.Key, Value: op.Value, Version: version}
			if op.Delete {
				w.known[op.Key] = store.KV{}
			}
		}
	}
	w.addKeys(c)
	return c.outcome == applied
}

// useSessions begins and ends sessions, and writes under them.
func (w *worker) useSessions() {
	group := groups[len(groups)-1]
	w.holding <- struct{}{}
	defer func() { <-w.holding }()
	switch s := w.session; {
	case s == nil:
		w.openSession()
	case w.chance(60):
		w.commit(group, s)
	case w.chance(50):
		w.get(group, w.anyKey(group))
	case w.chance(15):
		w.closeSession()
	default:
		select {
		case <-s.Done():
			w.closeSession()
		default:
		}
	}
}

func (w *worker) openSession() {
	w.living.Lock()
	number := len(w.lives) + 1
	w.living.Unlock()
	if number >= maxSessions/2 { // others may be about to open one
		return
	}
	span, ctx, cancel := w.begin()
	defer cancel()
	session, err := w.client.OpenSession(ctx, w.suite.TTL)
	switch outcomeOf(err, store.ErrUnavailable) {
	case mistaken:
		w.problem("OpenSession: %w", err)
	case applied:
		w.living.Lock()
		defer w.living.Unlock()
		w.session = &life{Session: session, number: len(w.lives) + 1, opened: span.call}
		w.lives = append(w.lives, w.session)
	}
}

// closeSession closes the session; false: it does not know whether that has ended.
func (w *worker) closeSession() bool {
	_, ctx, cancel := w.begin()
	defer cancel()
	switch err := w.session.Close(ctx); outcomeOf(err, store.ErrUnavailable) {
	case mistaken:
		w.problem("Close of a session: %w", err)
	case noEffect:
		return false
	case applied:
		w.ends(w.session)
		w.list(groups[len(groups)-1])
	}
	w.session = nil
	return true
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

// useLog appends, reads, and cuts the log.
func (w *worker) useLog() {
	switch {
	case w.doubt != nil || w.chance(60):
		w.append()
	case w.chance(60):
		w.readLog(w.read)
	case w.chance(50):
		w.readLog(0)
	default:
		w.cut()
	}
}

// append adds an entry, or tries again to add one in doubt.
func (w *worker) append() bool {
	span, ctx, cancel := w.begin()
	defer cancel()
	c := w.doubt
	if c == nil {
		c = &logCall{kind: appending, span: span, id: strings.ReplaceAll(w.newValue(), ".", "-")}
	}
	position, err := w.client.Append(ctx, c.id, dataOf(c.id))
	c.end, c.position, w.doubt = w.now(), position, nil
	switch c.outcome = outcomeOf(err, store.ErrAmbiguous, store.ErrUnavailable); c.outcome {
	case mistaken:
		w.problem("Append %s: %w", c.id, err)
		c.outcome = inDoubt
		w.addLog(c)
	case inDoubt:
		if w.chance(70) {
			w.doubt = c
			return false
		}
		w.addLog(c)
	case applied:
		w.addLog(c)
	}
	return c.outcome == applied
}

func (w *worker) stopped() bool {
	select {
	case <-w.stop:
		return true
	default:
		return false
	}
}

func (w *worker) readLog(after store.Position) (store.Batch, bool) {
	span, ctx, cancel := w.begin()
	defer cancel()
	batch, err := w.client.Read(ctx, after)
	span.end = w.now()
	switch outcomeOf(err, store.ErrUnavailable) {
	case mistaken:
		w.problem("Read after %d: %w", after, err)
		return batch, false
	case noEffect:
		return batch, false
	}
	w.addLog(&logCall{kind: reading, span: span, after: after, batch: batch})
	for _, e := range batch.Entries {
		w.read = max(w.read, e.Position)
		if string(e.Data) != string(dataOf(e.ID)) {
			w.problem("the entry %s has the data %.40q", e.ID, e.Data)
		}
	}
	return batch, true
}

// cut writes a checkpoint that has all IDs that it stands for, and trims. The first word of
// its value is its own.
func (w *worker) cut() {
	batch, ok := w.readLog(0)
	if !ok || len(batch.Entries) < 2 {
		return
	}
	ids := idsOf(batch.Checkpoint)
	for _, e := range batch.Entries[:len(batch.Entries)/2] {
		ids = append(ids, e.ID)
	}
	at := store.Checkpoint{
		Position: batch.Entries[len(batch.Entries)/2-1].Position,
		Value:    []byte("by-" + w.newValue() + " " + strings.Join(ids, " ")),
	}
	c := &logCall{kind: checkpointing, checkpoint: at}
	span, ctx, cancel := w.begin()
	defer cancel()
	err := w.client.Checkpoint(ctx, at)
	span.end = w.now()
	c.span, c.outcome = span, outcomeOf(err, store.ErrAmbiguous, store.ErrUnavailable)
	switch c.outcome {
	case mistaken:
		w.problem("%v: %w", c, err)
		return
	case applied, inDoubt:
		w.addLog(c)
	}
	if err := w.client.Trim(ctx); outcomeOf(err, store.ErrAmbiguous, store.ErrUnavailable) == mistaken {
		w.problem("Trim: %w", err)
	}
}

// idsOf are the IDs that such a checkpoint stands for.
func idsOf(c *store.Checkpoint) []string {
	if c == nil {
		return nil
	}
	return strings.Fields(string(c.Value))[1:]
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
