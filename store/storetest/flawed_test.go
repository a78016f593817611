package storetest

import (
	"context"
	"errors"
	"iter"
	"maps"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// sometimes is how often a mistake of calls that are many shows, and often of those that are few.
func sometimes() bool { return rand.IntN(20) == 0 }
func often() bool     { return rand.IntN(2) == 0 }

// flawed is a store with a mistake in it.
type flawed struct {
	*memstore.Client
	*flaw
}

// flaw is the mistake, in place of what the store does.
type flaw struct {
	get        func(c *memstore.Client, ctx context.Context, key string) (store.KV, error)
	list       func(c *memstore.Client, ctx context.Context, prefix string) ([]store.KV, error)
	commit     func(c *memstore.Client, ctx context.Context, txn store.Txn) (store.Version, error)
	gone       func(c *memstore.Client, ctx context.Context, key string) (<-chan struct{}, error)
	append     func(c *memstore.Client, ctx context.Context, id string, data []byte) (store.Position, error)
	read       func(store.Batch) store.Batch
	follow     func(store.Batch) store.Batch
	checkpoint func(c *memstore.Client, ctx context.Context, at store.Checkpoint) error
	forgets    bool // the service, what it wrote last before it stopped
}

func (f flawed) Get(ctx context.Context, key string) (store.KV, error) {
	if f.get != nil {
		return f.get(f.Client, ctx, key)
	}
	return f.Client.Get(ctx, key)
}

func (f flawed) List(ctx context.Context, prefix string) ([]store.KV, error) {
	if f.list != nil {
		return f.list(f.Client, ctx, prefix)
	}
	return f.Client.List(ctx, prefix)
}

func (f flawed) Commit(ctx context.Context, txn store.Txn) (store.Version, error) {
	if f.commit != nil {
		return f.commit(f.Client, ctx, txn)
	}
	return f.Client.Commit(ctx, txn)
}

func (f flawed) Gone(ctx context.Context, key string) (<-chan struct{}, error) {
	if f.gone != nil {
		return f.gone(f.Client, ctx, key)
	}
	return f.Client.Gone(ctx, key)
}

func (f flawed) Append(ctx context.Context, id string, data []byte) (store.Position, error) {
	if f.append != nil {
		return f.append(f.Client, ctx, id, data)
	}
	return f.Client.Append(ctx, id, data)
}

func (f flawed) Read(ctx context.Context, after store.Position) (store.Batch, error) {
	batch, err := f.Client.Read(ctx, after)
	if f.read != nil && err == nil {
		batch = f.read(batch)
	}
	return batch, err
}

func (f flawed) Follow(ctx context.Context, after store.Position) iter.Seq2[store.Batch, error] {
	return func(yield func(store.Batch, error) bool) {
		for batch, err := range f.Client.Follow(ctx, after) {
			if f.follow != nil && err == nil {
				batch = f.follow(batch)
			}
			if !yield(batch, err) {
				return
			}
		}
	}
}

func (f flawed) Checkpoint(ctx context.Context, at store.Checkpoint) error {
	if f.checkpoint != nil {
		return f.checkpoint(f.Client, ctx, at)
	}
	return f.Client.Checkpoint(ctx, at)
}

// doubled ends the ID of an entry that a flawed store appends a second time.
const doubled = "-doubled"

func undouble(b store.Batch) store.Batch {
	entries := make([]store.LogEntry, len(b.Entries))
	for i, e := range b.Entries {
		e.ID = strings.TrimSuffix(e.ID, doubled)
		entries[i] = e
	}
	b.Entries = entries
	return b
}

// flaws are mistakes that a store can have. Each returns a new one.
var flaws = []struct {
	name string
	flaw func() *flaw
	says string // in the report
}{
	{"a stale Get", func() *flaw {
		var mu sync.Mutex
		before := make(map[string]store.KV)
		return &flaw{get: func(c *memstore.Client, ctx context.Context, key string) (store.KV, error) {
			kv, err := c.Get(ctx, key)
			mu.Lock()
			defer mu.Unlock()
			if old, ok := before[key]; ok && err == nil && sometimes() {
				return old, nil
			}
			if err == nil {
				before[key] = kv
			}
			return kv, err
		}}
	}, "no order"},
	{"a stale List", func() *flaw {
		var mu sync.Mutex
		before := make(map[string][]store.KV)
		return &flaw{list: func(c *memstore.Client, ctx context.Context, prefix string) ([]store.KV, error) {
			kvs, err := c.List(ctx, prefix)
			mu.Lock()
			defer mu.Unlock()
			if old, ok := before[prefix]; ok && err == nil && sometimes() {
				return old, nil
			}
			if err == nil {
				before[prefix] = kvs
			}
			return kvs, err
		}}
	}, "no order"},
	{"a List of two moments", func() *flaw {
		return &flaw{list: func(c *memstore.Client, ctx context.Context, prefix string) (all []store.KV, err error) {
			for _, name := range groupKeys {
				kv, err := c.Get(ctx, prefix+name)
				if err != nil {
					return nil, err
				}
				if kv.Version != 0 {
					all = append(all, kv)
				}
				time.Sleep(time.Millisecond)
			}
			return all, nil
		}}
	}, "no order"},
	{"a lost condition", func() *flaw {
		return &flaw{commit: func(c *memstore.Client, ctx context.Context, txn store.Txn) (store.Version, error) {
			if len(txn.If) > 0 && sometimes() {
				txn.If = txn.If[1:]
			}
			return c.Commit(ctx, txn)
		}}
	}, "no order"},
	{"conditions and operations at two moments", func() *flaw {
		return &flaw{commit: func(c *memstore.Client, ctx context.Context, txn store.Txn) (store.Version, error) {
			for _, condition := range txn.If {
				kv, err := c.Get(ctx, condition.Key)
				if err != nil {
					return 0, err
				}
				if kv.Version != condition.Version {
					return 0, store.ErrConflict
				}
			}
			time.Sleep(time.Millisecond)
			return c.Commit(ctx, store.Txn{Then: txn.Then})
		}}
	}, "no order"},
	{"a commit that is sent again", func() *flaw {
		return &flaw{commit: func(c *memstore.Client, ctx context.Context, txn store.Txn) (store.Version, error) {
			version, err := c.Commit(ctx, txn)
			if errors.Is(err, store.ErrAmbiguous) {
				return c.Commit(ctx, txn)
			}
			return version, err
		}}
	}, "no order"},
	{"a commit in doubt that is said to have failed", func() *flaw {
		return &flaw{commit: func(c *memstore.Client, ctx context.Context, txn store.Txn) (store.Version, error) {
			version, err := c.Commit(ctx, txn)
			if errors.Is(err, store.ErrAmbiguous) {
				err = store.ErrUnavailable
			}
			return version, err
		}}
	}, "no order"},
	{"a lost write", func() *flaw {
		return &flaw{commit: func(c *memstore.Client, ctx context.Context, txn store.Txn) (store.Version, error) {
			if sometimes() {
				txn.Then = txn.Then[:len(txn.Then)-1]
			}
			return c.Commit(ctx, txn)
		}}
	}, "no order"},
	{"another version than the key has", func() *flaw {
		return &flaw{commit: func(c *memstore.Client, ctx context.Context, txn store.Txn) (store.Version, error) {
			version, err := c.Commit(ctx, txn)
			if err == nil && sometimes() {
				version++
			}
			return version, err
		}}
	}, "no order"},
	{"a version that begins again for a new key", func() *flaw {
		var mu sync.Mutex
		first := make(map[string]store.Version) // of the key as it is
		seen := func(kv store.KV) store.KV {
			mu.Lock()
			defer mu.Unlock()
			if kv.Version != 0 {
				if first[kv.Key] == 0 {
					first[kv.Key] = kv.Version - 1
				}
				kv.Version -= first[kv.Key]
			} else {
				delete(first, kv.Key)
			}
			return kv
		}
		return &flaw{
			get: func(c *memstore.Client, ctx context.Context, key string) (store.KV, error) {
				kv, err := c.Get(ctx, key)
				if err == nil {
					kv = seen(kv)
				}
				return kv, err
			},
		}
	}, "no order"},
	{"an ephemeral key that stays", func() *flaw {
		return &flaw{commit: func(c *memstore.Client, ctx context.Context, txn store.Txn) (store.Version, error) {
			then := txn.Then
			txn.Then = nil
			for _, op := range then {
				if often() {
					op.Session = nil
				}
				txn.Then = append(txn.Then, op)
			}
			return c.Commit(ctx, txn)
		}}
	}, "no order"},
	{"a watch that fires for a write", func() *flaw {
		return &flaw{gone: func(c *memstore.Client, ctx context.Context, key string) (<-chan struct{}, error) {
			was, err := c.Get(ctx, key)
			if err != nil || was.Version == 0 {
				return c.Gone(ctx, key)
			}
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				for ctx.Err() == nil {
					kv, err := c.Get(ctx, key)
					if err == nil && kv.Version != was.Version {
						return
					}
					time.Sleep(time.Millisecond)
				}
			}()
			return gone, nil
		}}
	}, "no order"},
	{"a watch that never fires", func() *flaw {
		return &flaw{gone: func(c *memstore.Client, ctx context.Context, key string) (<-chan struct{}, error) {
			gone, err := c.Gone(ctx, key)
			if err == nil && often() {
				gone = make(chan struct{})
			}
			return gone, err
		}}
	}, "does not fire"},
	{"an append that is there twice", func() *flaw {
		return &flaw{
			append: func(c *memstore.Client, ctx context.Context, id string, data []byte) (store.Position, error) {
				position, err := c.Append(ctx, id, data)
				if err == nil && sometimes() {
					_, _ = c.Append(ctx, id+doubled, data)
				}
				return position, err
			},
			read: undouble, follow: undouble,
		}
	}, "no order"},
	{"an append that is lost", func() *flaw {
		return &flaw{append: func(c *memstore.Client, ctx context.Context, id string,
			data []byte,
		) (store.Position, error) {
			position, err := c.Append(ctx, id, data)
			if errors.Is(err, store.ErrAmbiguous) && position == 0 {
				return 1 << 40, nil
			}
			return position, err
		}}
	}, "no order"},
	{"an append that is there, and said to have failed", func() *flaw {
		return &flaw{append: func(c *memstore.Client, ctx context.Context, id string,
			data []byte,
		) (store.Position, error) {
			position, err := c.Append(ctx, id, data)
			if err == nil && sometimes() {
				return 0, store.ErrUnavailable
			}
			return position, err
		}}
	}, "no order"},
	{"a stale Read", func() *flaw {
		return &flaw{read: func(b store.Batch) store.Batch {
			if n := len(b.Entries); n > 0 && sometimes() {
				b.Entries = b.Entries[:n-1]
			}
			return b
		}}
	}, "no order"},
	{"a Read without its checkpoint", func() *flaw {
		return &flaw{read: func(b store.Batch) store.Batch {
			if sometimes() {
				b.Checkpoint = nil
			}
			return b
		}}
	}, "no order"},
	{"a gap in a Follow", func() *flaw {
		return &flaw{follow: func(b store.Batch) store.Batch {
			if n := len(b.Entries); n > 0 && sometimes() {
				b.Entries = b.Entries[:n-1]
			}
			return b
		}}
	}, "follower"},
	{"a Follow that repeats an entry", func() *flaw {
		var mu sync.Mutex
		last := map[store.Position]store.LogEntry{}
		return &flaw{follow: func(b store.Batch) store.Batch {
			mu.Lock()
			defer mu.Unlock()
			for _, e := range b.Entries {
				last[e.Position] = e
			}
			if len(last) > 0 && sometimes() {
				for e := range maps.Values(last) {
					b.Entries = append([]store.LogEntry{e}, b.Entries...)
					break
				}
			}
			return b
		}}
	}, "Follow yields"},
	{"a checkpoint that is not written", func() *flaw {
		return &flaw{checkpoint: func(c *memstore.Client, ctx context.Context, at store.Checkpoint) error {
			if often() {
				return nil
			}
			return c.Checkpoint(ctx, at)
		}}
	}, "no order"},
	{"a service that forgets what it wrote last", func() *flaw { return &flaw{forgets: true} }, "no order"},
}

// The check finds each of the mistakes.
func TestFlawedStoresAreFound(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // for the drawings
	for _, tt := range flaws {
		t.Run(tt.name, func(t *testing.T) {
			var err error
			for range 5 { // a mistake with the answers that are lost may have no occasion: in one run of 30 at most
				if err = observeFlawed(t, tt.flaw()); err != nil {
					break
				}
			}
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("the check says %v, want %q", err, tt.says)
			}
			t.Logf("%.6000v", err)
		})
	}
}

// A store that has none is not said to have one.
func TestAFlawlessStoreIsNotFound(t *testing.T) {
	for range 10 {
		if err := observeFlawed(t, &flaw{}); err != nil {
			t.Error(err)
		}
	}
}

// observeFlawed runs the check over a store in memory.
func observeFlawed(t *testing.T, f *flaw) error {
	var r *observation
	synctest.Test(t, func(t *testing.T) {
		svc := memstore.NewService()
		clientOf := func(s store.Store) *memstore.Client { return s.(flawed).Client }
		harness := Harness{
			Open:     func(*testing.T) store.Store { return flawed{svc.Client("c"), f} },
			TTL:      time.Second,
			Patience: 10 * time.Second,
			CutOff:   func(s store.Store, cut bool) { clientOf(s).CutOff(cut) },
			Disturb: func(s store.Store, disturbed bool) {
				if disturbed {
					clientOf(s).Inject(slow)
				} else {
					clientOf(s).Inject(nil)
				}
			},
			Expire: func(_ *testing.T, session store.Session) { svc.Expire(session) },
		}
		if f.forgets {
			harness.Stop = func(*testing.T) {
				backup := svc.Backup()
				time.Sleep(harness.TTL / 10)
				svc.RollBack(backup, 1<<40)
			}
			harness.Start = func(*testing.T) {}
		}
		r = observe(newSuite(t, harness), rand.Uint64())
	})
	return r.check() // which takes real time
}

// slow is a service that takes its time, and may lose its answers.
func slow(memstore.Call) (f memstore.Fault) {
	f.Delay = time.Duration(rand.Int64N(int64(30 * time.Millisecond)))
	if rand.IntN(5) == 0 {
		f.Outcome = memstore.FailAfter
	}
	return f
}
