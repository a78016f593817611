package servertest

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/base/clusterid"
	"github.com/firn-id/firn/internal/base/fresh"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// Cluster is the ID of the clusters of this package.
const Cluster = "fj4ltw4x"

// Join returns a member that has joined a cluster of its own, over a store in memory. It leaves when the test ends.
func Join(t testing.TB) *peer.Member {
	t.Helper()
	return JoinOver(t, memstore.NewService().Client("a"))
}

// JoinOver is Join over a store, which it closes.
func JoinOver(t testing.TB, s store.Store) *peer.Member {
	t.Helper()
	put(t, s, clusterid.Key, Cluster)
	m, err := peer.Join(t.Context(), s, peer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.Leave()
		_ = s.Close()
	})
	return m
}

// Waiting returns a member whose store does not open, and which says why.
func Waiting(t testing.TB, why string) *peer.Member {
	t.Helper()
	m, err := peer.Start(func(context.Context) (store.Store, error) {
		return nil, fmt.Errorf("%w: %s", store.ErrUnavailable, why)
	}, peer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Leave)
	until(t, m, func() bool { return strings.HasSuffix(m.Ready().Error(), why) })
	return m
}

// Told is a member of a cluster that a test tells it: what is in the log and what the store says of others. By itself
// it writes nothing, and so changes none of that; what an operator asks of it, it does.
type Told struct {
	*peer.Member
	Store *memstore.Client // its own; for faults

	t    testing.TB
	id   string
	all  *memstore.Client // the test's
	told *told
}

// Tell starts a member that has this ID once it has joined, which it has when the log says so.
func Tell(t testing.TB, id string, log ...cluster.Command) *Told {
	t.Helper()
	return TellOver(t, memstore.NewService(), id, log...)
}

// TellOver is Tell over what a store has already.
func TellOver(t testing.TB, service *memstore.Service, id string, log ...cluster.Command) *Told {
	t.Helper()
	f := &Told{Store: service.Client(id), t: t, id: id, all: service.Client("test")}
	f.told = &told{Client: f.Store}
	m, err := peer.Start(func(context.Context) (store.Store, error) { return f.told, nil }, peer.Options{
		ID: func() string { return id },
		Vitals: func() (v peer.Vitals) {
			if own := f.told.vitals.Load(); own != nil {
				v = *own
			}
			return v
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Member = m
	t.Cleanup(func() {
		f.Fail(nil)
		f.Store.Inject(nil)
		m.Leave()
		_ = f.Store.Close()
		_ = f.all.Close()
	})
	until(t, m, func() bool { return m.ID() == id && f.told.plays.Load() })
	f.Apply(log...)
	return f
}

// until waits without letting the time of a bubble pass.
func until(t testing.TB, m *peer.Member, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for !done() {
		if ctx.Err() != nil {
			t.Fatalf("the member is at position %d: %v", m.Value().Position(), m.Ready())
		}
		runtime.Gosched()
	}
}

// Apply appends commands to the log, without times, and waits until the member has replayed them.
func (f *Told) Apply(commands ...cluster.Command) {
	f.t.Helper()
	f.ApplyAt(time.Time{}, commands...)
}

// ApplyAt is Apply of commands that were sent at a time.
func (f *Told) ApplyAt(sent time.Time, commands ...cluster.Command) {
	f.t.Helper()
	f.Await(f.appendAt(sent, commands...))
}

// Await waits until the member has replayed the log up to a position.
func (f *Told) Await(at int64) {
	f.t.Helper()
	until(f.t, f.Member, func() bool { return f.Value().Position() >= at })
}

// Append is Apply without waiting. It returns the position of the last command.
func (f *Told) Append(commands ...cluster.Command) int64 {
	f.t.Helper()
	return f.appendAt(time.Time{}, commands...)
}

func (f *Told) appendAt(sent time.Time, commands ...cluster.Command) (at int64) {
	f.t.Helper()
	for _, c := range commands {
		data, err := cluster.Encode(c, sent)
		if err != nil {
			f.t.Fatal(err)
		}
		at = f.AppendData(data)
	}
	return at
}

// AppendData appends an entry that may be unreadable, and returns its position.
func (f *Told) AppendData(data []byte) int64 {
	f.t.Helper()
	at, err := f.all.Append(f.t.Context(), fresh.Text(), data)
	if err != nil {
		f.t.Fatal(err)
	}
	return int64(at)
}

// Cut drops the entries of the log up to a position, in favour of a checkpoint of what they led to.
func (f *Told) Cut(at int64) {
	f.t.Helper()
	batch, err := f.all.Read(f.t.Context(), 0)
	if err != nil {
		f.t.Fatal(err)
	}
	var v cluster.Value
	if batch.Checkpoint != nil {
		if v, err = cluster.DecodeCheckpoint(batch.Checkpoint.Value); err != nil {
			f.t.Fatal(err)
		}
	}
	for _, e := range batch.Entries {
		if int64(e.Position) > at {
			break
		}
		entry, err := cluster.Decode(int64(e.Position), e.Data)
		if err != nil {
			f.t.Fatal(err)
		}
		v, _ = cluster.Apply(v, entry)
	}
	data, err := cluster.EncodeCheckpoint(v)
	if err != nil {
		f.t.Fatal(err)
	}
	f.CutTo(at, data)
}

// CutTo is Cut in favour of a checkpoint that may be unreadable.
func (f *Told) CutTo(at int64, checkpoint []byte) {
	f.t.Helper()
	err := f.all.Checkpoint(f.t.Context(), store.Checkpoint{Position: store.Position(at), Value: checkpoint})
	if err == nil {
		err = f.all.Trim(f.t.Context())
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// SetPulses sets what the store says of the living.
func (f *Told) SetPulses(pulses map[string]peer.Pulse) {
	f.t.Helper()
	own := pulses[f.id].Vitals
	f.told.vitals.Store(&own)
	setAll(f, "peers/", pulses)
}

// SetHistory sets the minutes of the last hour.
func (f *Told) SetHistory(hour []peer.Minute) {
	f.t.Helper()
	byMinute := map[string]peer.Minute{}
	for _, m := range hour {
		byMinute[m.At.String()] = m
	}
	setAll(f, "history/", byMinute)
}

// SetNodes sets what the store keeps about nodes.
func (f *Told) SetNodes(nodes ...peer.NodeRecord) {
	f.t.Helper()
	byName := map[string]peer.NodeRecord{}
	for _, n := range nodes {
		byName[n.Name] = n
	}
	setAll(f, "nodes/", byName)
}

// setAll has the store hold these values below a prefix, and no others.
func setAll[T any](f *Told, prefix string, values map[string]T) {
	f.t.Helper()
	ctx := context.WithoutCancel(f.t.Context())
	before, err := f.all.List(ctx, prefix)
	if err != nil {
		f.t.Fatal(err)
	}
	var txn store.Txn
	for _, kv := range before {
		if _, ok := values[kv.Key[len(prefix):]]; !ok {
			txn.Then = append(txn.Then, store.Delete(kv.Key))
		}
	}
	for key, v := range values {
		data, err := json.Marshal(v)
		if err != nil {
			f.t.Fatal(err)
		}
		txn.Then = append(txn.Then, store.Put(prefix+key, data))
	}
	for some := range slices.Chunk(txn.Then, 64) {
		if _, err := f.all.Commit(ctx, store.Txn{Then: some}); err != nil {
			f.t.Fatal(err)
		}
	}
}

// peers is the prefix of pulses.
const peers = "peers/"

// Compute has the store hold, below a prefix, what values returns whenever that is listed. Of pulses it is read, too.
func (f *Told) Compute(prefix string, values func() map[string]string) {
	f.told.computed.Store(prefix, values)
}

// Put puts a key into the store.
func (f *Told) Put(key, value string) {
	f.t.Helper()
	put(f.t, f.all, key, value)
}

func put(t testing.TB, s store.Store, key, value string) {
	t.Helper()
	if _, err := s.Commit(t.Context(), store.Txn{Then: []store.Op{store.Put(key, []byte(value))}}); err != nil {
		t.Fatal(err)
	}
}

// Fail has what is asked of the store from now on fail with err; nil ends that. The member goes on following the log.
func (f *Told) Fail(err error) { f.told.err.Store(&err) }

// Unfollowed waits until nobody but the member follows the log.
func (f *Told) Unfollowed() { f.told.others.Wait() }

// told is the store as such a member sees it.
type told struct {
	*memstore.Client
	vitals  atomic.Pointer[peer.Vitals] // what the member shows in its pulse
	err     atomic.Pointer[error]       // why it does not answer
	swallow atomic.Int64                // writes that have no effect
	plays   atomic.Bool                 // the member follows the log
	others  sync.WaitGroup              // who follow it besides

	computed sync.Map // by prefix, functions that return what is below it
}

func (s *told) failed() error {
	if err := s.err.Load(); err != nil {
		return *err
	}
	return nil
}

// Get reads a key.
func (s *told) Get(ctx context.Context, key string) (store.KV, error) {
	if err := s.failed(); err != nil {
		return store.KV{}, err
	}
	if key == clusterid.Key {
		return store.KV{Key: key, Version: 1, Value: []byte(Cluster)}, nil
	}
	if at := strings.IndexByte(key, '/') + 1; key[:at] == peers {
		if values, ok := s.computed.Load(peers); ok {
			kv := store.KV{Key: key}
			if value, ok := values.(func() map[string]string)()[key[at:]]; ok {
				kv.Version, kv.Value = 1, []byte(value)
			}
			return kv, nil
		}
	}
	return s.Client.Get(ctx, key)
}

// List reads keys.
func (s *told) List(ctx context.Context, prefix string) ([]store.KV, error) {
	if err := s.failed(); err != nil {
		return nil, err
	}
	values, ok := s.computed.Load(prefix)
	if !ok {
		return s.Client.List(ctx, prefix)
	}
	var all []store.KV
	for key, value := range values.(func() map[string]string)() {
		all = append(all, store.KV{Key: prefix + key, Version: 1, Value: []byte(value)})
	}
	slices.SortFunc(all, func(a, b store.KV) int { return strings.Compare(a.Key, b.Key) })
	return all, nil
}

// Commit writes, unless it would write the member's pulse or history: a test does.
func (s *told) Commit(ctx context.Context, txn store.Txn) (store.Version, error) {
	if err := s.failed(); err != nil {
		return 0, err
	}
	if slices.ContainsFunc(txn.Then, func(o store.Op) bool {
		return strings.HasPrefix(o.Key, "peers/") || strings.HasPrefix(o.Key, "history/")
	}) {
		return store.Version(s.swallow.Add(1)), nil
	}
	return s.Client.Commit(ctx, txn)
}

// Append appends what an operator has asked for.
func (s *told) Append(ctx context.Context, id string, data []byte) (store.Position, error) {
	if err := s.failed(); err != nil {
		return 0, err
	}
	if e, err := cluster.Decode(1, data); err == nil && e.Who == "" {
		return 0, fmt.Errorf("%w: no operator has asked for %s", store.ErrUnavailable, e.Command.Name())
	}
	return s.Client.Append(ctx, id, data)
}

// Read reads the log.
func (s *told) Read(ctx context.Context, after store.Position) (store.Batch, error) {
	if err := s.failed(); err != nil {
		return store.Batch{}, err
	}
	return s.Client.Read(ctx, after)
}

// Follow follows the log. The first is the member itself, which never fails.
func (s *told) Follow(ctx context.Context, after store.Position) iter.Seq2[store.Batch, error] {
	all := s.Client.Follow(ctx, after)
	if !s.plays.Swap(true) {
		return all
	}
	return func(yield func(store.Batch, error) bool) {
		s.others.Add(1)
		defer s.others.Done()
		for batch, err := range all {
			if failed := s.failed(); failed != nil {
				yield(store.Batch{}, failed)
				return
			}
			if !yield(batch, err) {
				return
			}
		}
	}
}
