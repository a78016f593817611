package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/firn-id/firn/store"
)

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
