package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// generationOf reads the key of a name.
func (w *world) generationOf(name string) (i generation) {
	w.t.Helper()
	client := w.service.Client("look")
	defer client.Close()
	kv, err := client.Get(w.t.Context(), generationKey(name))
	if err == nil && kv.Version > 0 {
		err = json.Unmarshal(kv.Value, &i)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return i
}

// A member that had not noticed yet that the store lost its data has put the key of a name, as its log was. The members
// of the new log use the name all the same, above all IDs that can have been made for that key.
func TestAGenerationOfALogThatWasLost(t *testing.T) {
	small := cluster.Define(layout)
	small.Nodes = 2
	for name, stale := range map[string]struct {
		further    int64 // than the position at which the present log has the sequencer
		definition cluster.Definition
		destroyed  bool
	}{
		"of a longer log":             {further: 1_000_000, definition: cluster.Define(layout)},
		"of a longer log, destroyed":  {further: 1_000_000, definition: cluster.Define(layout), destroyed: true},
		"of a log as long, destroyed": {definition: cluster.Define(layout), destroyed: true},

		"of a log as long, of another layout": {definition: small},

		"of a longer log, with another layout": {further: 1, definition: small},

		"of a shorter log, destroyed": {further: -1, definition: small, destroyed: true},

		"of a log as long, destroyed, another layout": {definition: small, destroyed: true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				a := w.start("a")
				a.ready(time.Second)
				m := a.mem.Load()
				if _, err := m.Create(t.Context(), "orders", cluster.Define(layout)); err != nil {
					t.Fatal(err)
				}
				q, _ := m.Value().Sequencer("orders")
				horizon := time.Now().Add(window / 2)
				value, err := json.Marshal(generation{
					Created:    q.Created() + stale.further,
					Definition: stale.definition, Destroyed: stale.destroyed,
				})
				if err != nil {
					t.Fatal(err)
				}
				put(t, w, store.Put(generationKey("orders"), value))
				put(t, w, store.Put(fencePrefix("orders")+"last_reported_time/1",
					fmt.Appendf(nil, "%d somebody else", horizon.UnixMilli())))
				soon, cancel := context.WithTimeout(t.Context(), window)
				defer cancel()
				s, err := m.Attach(soon, "orders")
				if err != nil {
					t.Fatal(err)
				}
				last, err := stale.definition.IDLayout().Last(horizon)
				if err != nil {
					t.Fatal(err)
				}
				if id := next(t, s, window); id <= last {
					t.Errorf("%d; IDs up to %d may have been made for the key", id, last)
				}
				if i := w.generationOf("orders"); !i.is(q.Created(), cluster.Define(layout)) || i.Destroyed {
					t.Errorf("the key has %+v", i)
				}
				if err := m.Destroy(t.Context(), "orders"); err != nil {
					t.Error(err)
				}
				if i := w.generationOf("orders"); !i.is(q.Created(), cluster.Define(layout)) || !i.Destroyed {
					t.Errorf("after Destroy the key has %+v", i)
				}
			})
		})
	}
}

// A sequencer is destroyed whose key is one of a lost log, and claims for it are under way: the key has to change, so
// that they fail.
func TestDestroyReplacesAGenerationOfALostLog(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		m := a.mem.Load()
		d := cluster.Define(layout)
		if _, err := m.Create(t.Context(), "orders", d); err != nil {
			t.Fatal(err)
		}
		q, _ := m.Value().Sequencer("orders")
		value, err := json.Marshal(generation{Created: q.Created() + 1, Definition: d})
		if err != nil {
			t.Fatal(err)
		}
		put(t, w, store.Put(generationKey("orders"), value))
		if err := m.Destroy(t.Context(), "orders"); err != nil {
			t.Fatal(err)
		}
		if i := w.generationOf("orders"); !i.Destroyed || i.Created != q.Created() {
			t.Errorf("the key has %+v", i)
		}
	})
}

// The store is wiped while Destroy waits for a member out of reach, and while another begins to use a name: neither
// puts a key into the log that is new, although they have not been told.
func TestNobodyPutsAGenerationOfALostLog(t *testing.T) {
	for name, begin := range map[string]func(t *testing.T, m *Member) error{
		"destroyed": func(t *testing.T, m *Member) error { return m.Destroy(t.Context(), "orders") },
		"claimed": func(t *testing.T, m *Member) error {
			s, err := m.EnsureSequencer(t.Context(), "users", cluster.Define(layout))
			if err == nil {
				err = s.Ready()
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				a, b := w.two()
				orders, err := b.mem.Load().EnsureSequencer(t.Context(), "orders", cluster.Define(layout))
				if err != nil {
					t.Fatal(err)
				}
				next(t, orders, time.Second)
				m := a.mem.Load()
				if _, err := m.Create(t.Context(), "users", cluster.Define(layout)); err != nil {
					t.Fatal(err)
				}
				b.client.CutOff(true)
				var once sync.Once
				a.client.Inject(func(c memstore.Call) memstore.Fault {
					if strings.HasSuffix(c.Key, "/generation") {
						once.Do(func() {
							a.client.Lag(time.Hour)
							w.service.RollBack(memstore.Backup{}, 0)
						})
					}
					return memstore.Fault{}
				})
				errs := make(chan error)
				go func() { errs <- begin(t, m) }()
				synctest.Wait()
				time.Sleep(50 * time.Millisecond)
				for _, name := range []string{"orders", "users"} {
					q, ok := w.value().Sequencer(name)
					if i := w.generationOf(name); i.Created != 0 && (!ok || !i.is(q.Created(), q.Definition())) {
						t.Errorf("the key of %s has %+v, which the log does not have", name, i)
					}
				}
				if err := <-errs; err == nil {
					t.Error("no error although the store has lost what it did")
				}
			})
		})
	}
}

// A member that has read that a sequencer was destroyed does not begin to use it.
func TestWhatTheLogDoesNotHaveIsNotOpened(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		s := a.seq.Load()
		created := s.status.Load().created
		if err := s.m.stillLatest(t.Context(), s.name, created); err != nil {
			t.Errorf("of the log: %v", err)
		}
		if err := s.m.stillLatest(t.Context(), s.name, created-1); !errors.Is(err, errSuperseded) {
			t.Errorf("of no log: %v; want %v", err, errSuperseded)
		}
	})
}
