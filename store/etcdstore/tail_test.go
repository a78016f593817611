//go:build unix

package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/firn-id/firn/internal/test/etcdtest"
	"github.com/firn-id/firn/internal/test/proxytest"
	"github.com/firn-id/firn/store"
)

// watcher is a watch that delivers nothing: be it that it ends at once, or that it is silent.
type watcher struct{ ends bool }

func (w watcher) Watch(context.Context, string, ...clientv3.OpOption) clientv3.WatchChan {
	responses := make(chan clientv3.WatchResponse)
	if w.ends {
		close(responses)
	}
	return responses
}

func (watcher) RequestProgress(context.Context) error { return nil }
func (watcher) Close() error                          { return nil }

// Silence proves nothing: what no watch delivers is found by reading.
func TestFollowWithoutAWatch(t *testing.T) {
	t.Parallel()
	for name, w := range map[string]watcher{"silent": {}, "ends at once": {ends: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openServer(t)
			if _, err := s.Read(t.Context(), 0); err != nil { // so that it is connected
				t.Fatalf("Read: %v", err)
			}
			s.conn.Load().Watcher = w
			s.recheck = 10 * time.Millisecond
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			next := 0
			for batch, err := range s.Follow(ctx, 0) {
				if err != nil {
					t.Fatalf("Follow: %v after %d entries", err, next)
				}
				for _, entry := range batch.Entries {
					if entry.ID != fmt.Sprint(next) {
						t.Errorf("%s comes as number %d", entry.ID, next)
					}
					next++
				}
				if next == 3 {
					return
				}
				if _, err := s.Append(ctx, fmt.Sprint(next), nil); err != nil {
					t.Fatalf("Append: %v", err)
				}
			}
		})
	}
}

// ranges counts the transactions that a client sends, and those of them that read a range of keys.
type ranges struct {
	clientv3.KV
	all, ranged atomic.Int64
}

func (r *ranges) Txn(ctx context.Context) clientv3.Txn {
	r.all.Add(1)
	return rangesIn{r.KV.Txn(ctx), r}
}

type rangesIn struct {
	clientv3.Txn
	count *ranges
}

func (x rangesIn) If(all ...clientv3.Cmp) clientv3.Txn { return rangesIn{x.Txn.If(all...), x.count} }

func (x rangesIn) Then(ops ...clientv3.Op) clientv3.Txn {
	if slices.ContainsFunc(ops, func(op clientv3.Op) bool { return op.RangeBytes() != nil }) {
		x.count.ranged.Add(1)
	}
	return x.Txn.Then(ops...)
}

// While nothing comes to the log, its followers read a few keys, however many entries there are. They know all the same
// up to where nothing has come, and notice an entry that is gone.
func TestAQuietLogIsNotRead(t *testing.T) {
	t.Parallel()
	s := openServer(t)
	if _, err := s.Append(t.Context(), "a", nil); err != nil {
		t.Fatalf("Append: %v", err)
	}
	conn := s.conn.Load()
	count := &ranges{KV: conn.KV}
	conn.Watcher, conn.KV, s.recheck = watcher{}, count, time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	next, stop := iter.Pull2(s.Follow(ctx, 0))
	defer stop()
	if batch, err, _ := next(); err != nil || len(batch.Entries) != 1 {
		t.Fatalf("Follow yields %v, %v; want one entry", batch.Entries, err)
	}
	for count.all.Load() < 20 && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	if n := count.ranged.Load(); n != 1 {
		t.Errorf("the log was read %d times; want it read once", n)
	}
	put, err := conn.Put(ctx, s.prefix+"other", "") // what a store that is set back to before it has lost
	if err != nil {
		t.Fatal(err)
	}
	log := s.currentTail()
	for known := store.Position(0); known < store.Position(put.Header.Revision); {
		if ctx.Err() != nil {
			t.Fatalf("it is known up to %d that nothing has come; want %d", known, put.Header.Revision)
		}
		time.Sleep(time.Millisecond)
		log.mu.Lock()
		known = log.known.upTo
		log.mu.Unlock()
	}
	if _, err := conn.Delete(t.Context(), s.prefix+logPrefix+"a"); err != nil {
		t.Fatal(err)
	}
	if batch, err, _ := next(); !errors.Is(err, store.ErrRolledBack) {
		t.Errorf("Follow yields %v, %v; want that the entry is gone", batch.Entries, err)
	}
}

// watches are watches that deliver what a test has them deliver.
type watches chan chan clientv3.WatchResponse

func (w watches) Watch(context.Context, string, ...clientv3.OpOption) clientv3.WatchChan {
	responses := make(chan clientv3.WatchResponse, 1)
	select {
	case w <- responses:
	default: // the test has enough
	}
	return responses
}

func (watches) RequestProgress(context.Context) error { return nil }
func (watches) Close() error                          { return nil }

// A watch goes on by itself over a new connection, and the servers there may have been set back and have grown since.
// What it delivers then is not taken for the end of the log that was read.
func TestAWatchOfAnotherLog(t *testing.T) {
	t.Parallel()
	proxy := proxytest.New(t, etcdtest.Start(t, etcdtest.Options{}).Address())
	s, err := Open(Config{Endpoints: []string{proxy.Address()}})
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	at, err := s.Append(t.Context(), "first", nil)
	if err != nil {
		t.Fatalf("Append: %v", err)
	}
	s.recheck = 10 * time.Millisecond
	began := make(watches, 1)
	s.conn.Load().Watcher = began
	next, stop := iter.Pull2(s.Follow(t.Context(), 0))
	defer stop()
	follows := func(want string) {
		t.Helper()
		batch, err, _ := next()
		if err != nil || len(batch.Entries) != 1 || batch.Entries[0].ID != want {
			t.Fatalf("Follow yields %v, %v; want the entry %q", batch.Entries, err, want)
		}
	}
	follows("first")
	watch := <-began

	proxy.Drop()
	eventually := func(call func() error) {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			err := call()
			if err == nil {
				return
			}
			if time.Now().After(deadline) {
				t.Fatal(err)
			}
		}
	}
	eventually(func() error { // over a new connection, since the others are closed
		_, err := s.Read(t.Context(), 0)
		return err
	})
	watch <- clientv3.WatchResponse{Events: []*clientv3.Event{{Type: clientv3.EventTypePut, Kv: &mvccpb.KeyValue{
		Key: []byte(s.prefix + logPrefix + "other"), CreateRevision: int64(at) + 9, ModRevision: int64(at) + 9,
	}}}}
	eventually(func() error {
		_, err := s.Append(t.Context(), "second", nil)
		return err
	})
	follows("second")
}

// A follower that comes after a tail has ended, before the others find out, gets a new one.
func TestTailThatEnded(t *testing.T) {
	t.Parallel()
	s := openServer(t)
	if _, err := s.Append(t.Context(), "a", nil); err != nil {
		t.Fatalf("Append: %v", err)
	}
	old, err := s.joinTail(mark{upTo: 1}, s.connections.next())
	if err != nil {
		t.Fatal(err)
	}
	old.fail(store.ErrRefused)
	for batch, err := range s.Follow(t.Context(), 0) {
		if err != nil {
			t.Fatalf("Follow: %v", err)
		}
		if len(batch.Entries) > 0 && batch.Entries[0].ID == "b" {
			break
		}
		s.leaveTail(old)
		if left := s.currentTail(); left == nil || left == old {
			t.Errorf("the new tail went with the old one: %v", left)
		}
		if _, err := s.Append(t.Context(), "b", nil); err != nil {
			t.Fatalf("Append: %v", err)
		}
	}
	if s.currentTail() != nil {
		t.Error("a tail is left without followers")
	}
}

func (s *Store) currentTail() *tail {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tail
}

// Of two that replace the same checkpoint one does.
func TestReplacedCheckpoint(t *testing.T) {
	t.Parallel()
	s := openServer(t)
	for i, want := range []bool{true, false} {
		written, err := s.replaceCheckpoint(t.Context(), "checkpoint", 0,
			store.Checkpoint{Position: store.Position(2 - i)})
		if err != nil || written != want {
			t.Errorf("replacing none, for the %d. time: %v, %v", i+1, written, err)
		}
	}
	if seen, err := (tries{s}).Look(t.Context()); err != nil || seen.Trimmed != 2 {
		t.Errorf("the checkpoint is at %d, %v; want 2", seen.Trimmed, err)
	}
}

// What a tail hands out after any position is what comes there, or it says that it
// does not reach back so far; whatever was added to it, twice or out of turn.
func TestTailAgainstAModel(t *testing.T) {
	const last = 6000
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		exists := func(p store.Position) bool { return (uint64(p)*2654435761+seed)%3 == 0 }
		data := make([]byte, rng.IntN(4<<10))
		begin := store.Position(rng.IntN(50))
		log := &tail{from: begin, known: mark{upTo: begin}, changed: make(chan struct{})}
		cut := store.Position(0) // where its last checkpoint is
		behinds, checkpoints := 0, 0
		for log.known.upTo < last {
			changed := log.changed
			upTo := log.known.upTo + store.Position(rng.IntN(40))
			first := max(0, log.known.upTo-store.Position(rng.IntN(10))) // some of it is known
			var batch store.Batch
			if rng.IntN(100) == 0 {
				first = log.known.upTo + store.Position(rng.IntN(20)) + 1
				upTo = max(upTo, first)
				batch.Checkpoint, cut = &store.Checkpoint{Position: first}, first
			}
			for p := first + 1; p <= upTo; p++ {
				if exists(p) {
					batch.Entries = append(batch.Entries, store.LogEntry{Position: p, Data: data})
				}
			}
			news := log.add(batch, upTo)
			select {
			case <-changed:
				if !news {
					t.Fatalf("seed %d: told of nothing", seed)
				}
			default:
				if news {
					t.Fatalf("seed %d: not told of news", seed)
				}
			}
			after := store.Position(rng.IntN(int(log.known.upTo) + 10))
			got, to, wait, err := log.after(after)
			switch {
			case err != nil:
				t.Fatal(err)
			case wait == nil && to == after:
				behinds++
				if log.from <= after {
					t.Fatalf("seed %d: it reaches back to %d, and not to %d", seed, log.from, after)
				}
				continue
			case got.Checkpoint != nil:
				checkpoints++
				if got.Checkpoint.Position != cut || after >= cut {
					t.Fatalf("seed %d: after %d it has a checkpoint at %d, want %d", seed, after,
						got.Checkpoint.Position, cut)
				}
				after = cut
			case after < cut:
				t.Fatalf("seed %d: after %d it has no checkpoint at %d", seed, after, cut)
			}
			for _, e := range got.Entries {
				for after++; !exists(after); after++ {
				}
				if e.Position != after {
					t.Fatalf("seed %d: it has %d where %d comes", seed, e.Position, after)
				}
			}
			for after++; after <= log.known.upTo; after++ {
				if exists(after) {
					t.Fatalf("seed %d: it lacks %d", seed, after)
				}
			}
			if len(log.entries) > tailEntries || log.bytes > tailBytes {
				t.Fatalf("seed %d: it keeps %d entries of %d bytes", seed, len(log.entries), log.bytes)
			}
		}
		if behinds+checkpoints == 0 {
			t.Errorf("seed %d: no follower was ever behind", seed)
		}
	}
}
