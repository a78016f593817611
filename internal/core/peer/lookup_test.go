package peer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/store/memstore"
)

// reads counts the node's reads of the log from now on.
func (n *node) reads() *atomic.Int64 {
	var count atomic.Int64
	n.client.Inject(func(c memstore.Call) memstore.Fault {
		if c.Op == memstore.Read {
			count.Add(1)
		}
		return memstore.Fault{Delay: time.Millisecond}
	})
	return &count
}

// TestUnknownNamesCostTheStoreLittle: calls for any number of unknown names, one after the other or at once, read
// the log ten times, and then once a second.
func TestUnknownNamesCostTheStoreLittle(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, _ := w.two()
		m, reads := a.mem.Load(), a.reads()
		unknown := func(name string) {
			if _, err := m.Lookup(t.Context(), name); !errors.Is(err, ErrNoSequencer) {
				t.Errorf("%s: %v, want ErrNoSequencer", name, err)
			}
			if _, err := m.AttachOnDemand(t.Context(), name); !errors.Is(err, ErrNoSequencer) {
				t.Errorf("attach to %s: %v, want ErrNoSequencer", name, err)
			}
		}
		var all sync.WaitGroup
		for i := range 1000 {
			all.Go(func() { unknown(fmt.Sprint("at-once-", i)) })
		}
		all.Wait()
		if n := reads.Load(); n > vainMost+1 {
			t.Errorf("2000 calls at once read the log %d times, want %d at most", n, vainMost+1)
		}
		reads.Store(0)
		const seconds = 20
		for i, end := 0, time.Now().Add(seconds*time.Second); time.Now().Before(end); i++ {
			unknown(fmt.Sprint("another-", i))
			time.Sleep(time.Millisecond)
		}
		if n := reads.Load(); n > seconds+1 {
			t.Errorf("in %d s the log was read %d times, want once a second", seconds, n)
		}
	})
}

// TestWhatIsCreatedMeanwhileIsFound, at another member, and however many names that do not exist were asked for.
func TestWhatIsCreatedMeanwhileIsFound(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.two()
		m := b.mem.Load()
		for i := range 5 * vainMost {
			name := fmt.Sprint("orders-", i)
			if _, err := m.Lookup(t.Context(), name); !errors.Is(err, ErrNoSequencer) {
				t.Fatalf("%s: %v, want ErrNoSequencer", name, err)
			}
			if _, err := a.mem.Load().Create(t.Context(), name, cluster.Define(layout)); err != nil {
				t.Fatal(err)
			}
			if i >= vainMost-1 { // the log is not read for it
				time.Sleep(time.Millisecond) // but the news arrives
			}
			if _, err := m.Lookup(t.Context(), name); err != nil {
				t.Fatalf("%s, that was just created: %v", name, err)
			}
		}
	})
}

// TestOperatorsAreNotLimited: however many unknown names were asked for, what an operator asks of a sequencer that was
// created at another member an instant ago finds it.
func TestOperatorsAreNotLimited(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.two()
		b.client.Lag(time.Second)
		m := b.mem.Load()
		for name, ask := range map[string]func(name string) error{
			"attach":   func(name string) error { _, err := m.Attach(t.Context(), name); return err },
			"drain":    func(name string) error { return m.Drain(t.Context(), name, m.ID()) },
			"undrain":  func(name string) error { return m.Undrain(t.Context(), name, m.ID()) },
			"allocate": func(name string) error { return m.Allocate(t.Context(), name, cluster.Allocation{}) },
			"policy": func(name string) error {
				return m.SetPolicy(t.Context(), []cluster.Share{{Sequencer: name, Percent: 100}})
			},
			"destroy": func(name string) error { return m.Destroy(t.Context(), name) },
		} {
			for i := range 2 * vainMost {
				_, _ = m.Lookup(t.Context(), fmt.Sprint("none-", i))
			}
			if _, err := a.mem.Load().Create(t.Context(), name, cluster.Define(layout)); err != nil {
				t.Fatal(err)
			}
			if _, there := m.Value().Sequencer(name); there {
				t.Fatal("the other member has heard of it: the test tests nothing")
			}
			if err := ask(name); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// TestUnknownNamesWithoutTheStore: it is not said of a name that it does not exist when that is not known.
func TestUnknownNamesWithoutTheStore(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, _ := w.two()
		m := a.mem.Load()
		for i := range 2 * vainMost {
			_, _ = m.Lookup(t.Context(), fmt.Sprint("none-", i))
		}
		a.client.CutOff(true)
		time.Sleep(vainEvery)
		var all sync.WaitGroup
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		for i := range 100 {
			all.Go(func() {
				if _, err := m.Lookup(ctx, fmt.Sprint("some-", i)); err == nil || errors.Is(err, ErrNoSequencer) {
					t.Errorf("%v, want that the store can't be read", err)
				}
			})
		}
		all.Wait()
	})
}
