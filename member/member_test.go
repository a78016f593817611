package member

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/fence"
	"github.com/firn-id/firn/store/memstore"
)

// Every bubble begins at this instant, and so do these layouts.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

var (
	layout  = firn.Layout{Epoch: epoch.Add(-48 * time.Hour), Tick: time.Millisecond, TimeBits: 41, NodeBits: 10, SequenceBits: 12}
	oneNode = firn.Layout{Epoch: layout.Epoch, Tick: time.Millisecond, TimeBits: 41, SequenceBits: 12}
)

const (
	ttl    = 20 * time.Second
	window = 30 * time.Second
)

// world is a store with members, and every ID that they ever gave.
type world struct {
	t       *testing.T
	service *memstore.Service

	mu    sync.Mutex
	given map[firn.ID]string
}

func inBubble(t *testing.T, f func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		f(t, &world{t: t, service: memstore.NewService(), given: map[firn.ID]string{}})
	})
}

// wall is the reading of a machine's clocks, which a test can step.
type wall struct{ off atomic.Int64 }

func (w *wall) step(d time.Duration) { w.off.Add(int64(d)) }

func (w *wall) read() (int64, int64) {
	now := time.Now().UnixNano()
	return now + w.off.Load(), now - epoch.UnixNano()
}

// node is a member that runs, with its way to the store and its clock.
type node struct {
	*Member
	world  *world
	name   string
	client *memstore.Client
	wall   *wall
	cancel func()
	done   chan struct{} // closed when Run has returned
	err    error         // what it returned

	mu   sync.Mutex
	last firn.ID
}

func (w *world) start(name string, changes ...func(*Config)) *node {
	w.t.Helper()
	n := &node{world: w, name: name, client: w.service.Client(name), wall: new(wall), done: make(chan struct{})}
	config := Config{
		Store: n.client, Layout: layout, TTL: ttl, Window: window, Owner: name,
		Clock: firn.NewSteadyClockFrom(0, n.wall.read),
	}
	for _, change := range changes {
		change(&config)
	}
	var err error
	if n.Member, err = New(config); err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	n.cancel = cancel
	go func() {
		defer close(n.done)
		n.err = n.Run(ctx)
	}()
	w.t.Cleanup(func() {
		cancel()
		<-n.done
		n.client.Close()
	})
	return n
}

func (n *node) leave() {
	n.world.t.Helper()
	n.cancel()
	if <-n.done; n.err != nil {
		n.world.t.Errorf("%s: Run: %v", n.name, n.err)
	}
}

// gaveUp waits until Run has returned by itself, and checks its error.
func gaveUp[E error](n *node) {
	n.world.t.Helper()
	select {
	case <-n.done:
	case <-time.After(time.Hour):
		n.world.t.Fatalf("%s: Run has not returned", n.name)
	}
	var e E
	if !errors.As(n.err, &e) {
		n.world.t.Errorf("%s: Run returned %v, want a %T", n.name, n.err, e)
	}
}

func onOneNode(c *Config) { c.Layout = oneNode }

// take takes an ID, and checks it against all others.
func (n *node) take() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	id, err := n.Next(n.world.t.Context())
	if err != nil {
		return err
	}
	n.world.mu.Lock()
	defer n.world.mu.Unlock()
	if by, ok := n.world.given[id]; ok {
		n.world.t.Errorf("%s gave %d, which %s gave before", n.name, id, by)
	}
	n.world.given[id] = n.name
	if id <= n.last {
		n.world.t.Errorf("%s gave %d after %d", n.name, id, n.last)
	}
	n.last = id
	return nil
}

func (n *node) ready(within time.Duration) {
	n.world.t.Helper()
	for deadline := time.Now().Add(within); n.take() != nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			n.world.t.Fatalf("%s is not ready after %v: %v", n.name, within, n.Ready())
		}
	}
}

// serves takes an ID every few milliseconds for so long, and fails at the first error.
func (n *node) serves(d time.Duration) {
	n.world.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(7 * time.Millisecond) {
		if err := n.take(); err != nil {
			n.world.t.Fatalf("%s after %v: %v", n.name, time.Since(epoch), err)
		}
	}
}

// refuses does the same, and fails at the first ID.
func (n *node) refuses(d time.Duration) {
	n.world.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(7 * time.Millisecond) {
		if err := n.take(); !errors.Is(err, ErrNotReady) {
			n.world.t.Fatalf("%s after %v: %v, want ErrNotReady", n.name, time.Since(epoch), err)
		}
	}
	if n.Ready() == nil {
		n.world.t.Errorf("%s says that it is ready", n.name)
	}
}

func TestMembersMakeIDsUnderNodeIDsOfTheirOwn(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		nodes := []*node{w.start("a"), w.start("b"), w.start("c")}
		var all sync.WaitGroup
		for _, n := range nodes {
			all.Go(func() {
				n.ready(time.Second)
				n.serves(5 * time.Minute)
			})
		}
		all.Wait()
		for i, n := range nodes {
			for _, other := range nodes[:i] {
				one, _ := n.NodeID()
				two, _ := other.NodeID()
				if one == two {
					t.Errorf("%s and %s have the node ID %d", n.name, other.name, one)
				}
			}
		}
	})
}

// A store that is gone for less than the window is noticed by nobody; when it is gone for longer, IDs end at the
// horizon, and begin again by themselves.
func TestAStoreThatIsGone(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		a.client.CutOff(true)
		a.serves(2*window/3 - time.Second)
		a.client.CutOff(false)
		a.serves(time.Minute)

		a.client.CutOff(true)
		a.serves(2*window/3 - time.Second)
		time.Sleep(window)
		a.refuses(time.Minute)
		a.client.CutOff(false)
		a.ready(ttl)
		a.serves(time.Minute)
	})
}

// When the node ID is taken away the member goes on under another one, and callers see nothing of it.
func TestALostNodeIDIsReplaced(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		for range 5 {
			before, _ := a.NodeID()
			w.service.Expire(a.session)
			a.serves(window)
			if now, _ := a.NodeID(); now == before {
				t.Errorf("it still has the node ID %d", now)
			}
		}
	})
}

// The IDs of one process ascend also when it goes on under another node ID while it runs ahead of the clock.
func TestIDsAscendAcrossNodeIDs(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		var last firn.ID
		nodes := map[int64]bool{}
		ids := make([]firn.ID, 5000)
		for range 20 {
			w.service.Expire(a.session)
			for end := time.Now().Add(15 * time.Millisecond); time.Now().Before(end); {
				if err := a.Fill(t.Context(), ids); err != nil {
					t.Fatal(err)
				}
				if ids[0] <= last || !slices.IsSorted(ids) {
					t.Fatalf("%d after %d", ids[0], last)
				}
				last = ids[len(ids)-1]
			}
			node, _ := a.NodeID()
			nodes[node] = true
		}
		if len(nodes) < 10 {
			t.Errorf("it went through %d node IDs only", len(nodes))
		}
	})
}

// With a single node ID its owner, paused for longer than lease and window, finds it taken, gives no ID, and
// has it again once it is free.
func TestASuccessorTakesOverTheOnlyNodeID(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a", onOneNode)
		a.ready(time.Second)
		a.client.CutOff(true)
		time.Sleep(ttl + time.Second)
		b := w.start("b", onOneNode)
		b.ready(window)
		b.serves(window)
		a.client.CutOff(false)
		a.refuses(time.Minute)
		b.serves(time.Second)
		b.leave()
		a.ready(10 * time.Second)
		a.serves(time.Minute)
	})
}

func TestLeavingLetsTheNextOneBeginAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		for _, name := range []string{"a", "b", "c"} {
			n := w.start(name, onOneNode)
			n.ready(20 * time.Millisecond)
			n.serves(time.Second)
			n.leave()
			n.refuses(time.Second)
		}
	})
}

// A crash leaves the horizon ahead: the next owner of the node ID waits until there.
func TestAfterACrashTheHorizonIsWaitedFor(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a", onOneNode)
		a.ready(time.Second)
		a.serves(time.Second)
		horizon := a.latest.fence.Horizon()
		w.service.Expire(a.session)
		a.client.CutOff(true)
		b := w.start("b", onOneNode)
		time.Sleep(time.Second)
		b.refuses(time.Until(horizon) - 10*time.Millisecond)
		b.ready(20 * time.Millisecond)
	})
}

func TestRunEndsWhenThereIsNoNodeIDAtTheStart(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a", onOneNode)
		a.ready(time.Second)
		b := w.start("b", onOneNode)
		gaveUp[*fence.NoNodeError](b)
		c := w.start("c", onOneNode, func(c *Config) { c.Wait = true })
		c.refuses(time.Minute)
		a.leave()
		c.ready(10 * time.Second)
	})
}

func TestRunEndsWhenTheClockIsBehindEveryFloor(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a", onOneNode)
		a.ready(time.Second)
		a.leave()
		late := func(c *Config) {
			h := new(wall)
			h.step(-time.Hour)
			c.Clock = firn.NewSteadyClockFrom(0, h.read)
		}
		b := w.start("b", onOneNode, late)
		gaveUp[*fence.ClockBehindError](b)
		c := w.start("c", onOneNode, late, func(c *Config) { c.Wait = true })
		c.refuses(58 * time.Minute)
		c.ready(3 * time.Minute)
	})
}

func TestRunEndsWhenTheLayoutIsNotThatOfTheOthers(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		b := w.start("b", func(c *Config) { c.Layout.NodeBits, c.Layout.SequenceBits = 11, 11 })
		gaveUp[*LayoutError](b)
		w.start("c", func(c *Config) { c.Layout.NodeBits, c.Layout.SequenceBits = 11, 11; c.Sequencer = "other" }).ready(time.Second)
	})
}

// The layouts are compared also when the store fails in between.
func TestTheLayoutIsComparedInTheEnd(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start("a").ready(time.Second)
		b := w.start("b", func(c *Config) {
			c.Layout.NodeBits, c.Layout.SequenceBits = 11, 11
			fails := 3
			c.Store.(*memstore.Client).Inject(func(call memstore.Call) memstore.Fault {
				if call.Op == memstore.Get && fails > 0 {
					fails--
					return memstore.Fault{Outcome: memstore.FailBefore}
				}
				return memstore.Fault{}
			})
		})
		gaveUp[*LayoutError](b)
	})
}

// Callers that come while one node ID takes the place of another get an ID all the same.
func TestTheSwitchIsNotSeen(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a", func(c *Config) { c.Layout.NodeBits, c.Layout.SequenceBits = 2, 20 }) // it is never exhausted for long
		a.ready(time.Second)
		ctx, end := context.WithCancel(t.Context())
		var callers sync.WaitGroup
		for range 4 {
			callers.Go(func() {
				for ctx.Err() == nil {
					if _, err := a.Next(t.Context()); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		for range 2000 {
			h, err := a.claim(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			old, err := a.exchange(h)
			if err != nil {
				t.Fatal(err)
			}
			a.release(t.Context(), old)
			a.latest = h
		}
		end()
		callers.Wait()
	})
}

// A store that can't be reached is tried again and again, and complained of once a minute.
func TestRunKeepsTryingWhileTheStoreIsGone(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var log strings.Builder
		a := w.start("a", func(c *Config) {
			c.Store.(*memstore.Client).CutOff(true)
			c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		})
		a.refuses(10 * time.Minute)
		if n := strings.Count(log.String(), "\n"); n < 9 || n > 11 {
			t.Errorf("%d complaints in ten minutes:\n%s", n, &log)
		}
		a.client.CutOff(false)
		a.ready(10 * time.Second)
	})
}

// Steps of the wall clock: none makes a duplicate or a reordering, steps back and small steps ahead are not even noticed.
func TestTheWallClockSteps(t *testing.T) {
	for _, step := range []time.Duration{-time.Hour, -10 * time.Second, 5 * time.Second} {
		inBubble(t, func(t *testing.T, w *world) {
			a, b := w.start("a"), w.start("b")
			a.ready(time.Second)
			b.ready(time.Second)
			a.serves(time.Second)
			a.wall.step(step)
			a.serves(2 * time.Minute)
			b.serves(time.Second)
		})
	}
}

// A clock that is an hour ahead of the others is not believed: its member uses up what it has written down, and is back
// once the clock is right. It poisons nothing.
func TestAClockThatTheOthersContradict(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		for _, name := range []string{"b", "c"} {
			w.start(name).ready(time.Second)
		}
		a.ready(time.Second)
		a.wall.step(time.Hour)
		a.serves(window / 2)
		time.Sleep(window)
		a.refuses(10 * time.Minute)
		all, err := w.service.Client("test").List(t.Context(), a.fences.Prefix)
		if err != nil {
			t.Fatal(err)
		}
		for _, kv := range all {
			horizon, _, _ := strings.Cut(string(kv.Value), " ")
			if n, err := strconv.ParseInt(horizon, 10, 64); err == nil && n > time.Now().Add(window).UnixMilli() {
				t.Errorf("%s holds %s; it is %d now", kv.Key, kv.Value, time.Now().UnixMilli())
			}
		}
		a.wall.step(-time.Hour)
		a.ready(10 * time.Second)
		a.serves(time.Minute)
	})
}

// Alone, a step ahead is believed: nobody contradicts it. So a machine that was suspended goes on.
func TestAClockThatNobodyContradicts(t *testing.T) {
	for _, l := range []firn.Layout{layout, oneNode} {
		inBubble(t, func(t *testing.T, w *world) {
			a := w.start("a", func(c *Config) { c.Layout = l })
			a.ready(time.Second)
			a.wall.step(time.Hour)
			time.Sleep(window / 2)
			a.ready(10 * time.Second)
			a.serves(time.Minute)
			p, _ := l.Decompose(a.last)
			if off := l.TimeOf(p.Tick).Sub(time.Now().Add(time.Hour)).Abs(); off > time.Second {
				t.Errorf("its IDs are %v away from the wall", off)
			}
		})
	}
}

// Whatever the store, the sessions, the processes and the clocks do, no ID is given twice and each member's ascend.
func TestNoDuplicateWhateverHappens(t *testing.T) {
	few := layout
	few.NodeBits = 2
	for seed := range uint64(40) {
		inBubble(t, func(t *testing.T, w *world) {
			r := rand.New(rand.NewPCG(seed, 3))
			var mu sync.Mutex
			chance := func(n int) bool {
				mu.Lock()
				defer mu.Unlock()
				return r.IntN(n) == 0
			}
			w.service.Inject(func(c memstore.Call) memstore.Fault {
				mu.Lock()
				defer mu.Unlock()
				if r.IntN(5) > 0 {
					return memstore.Fault{}
				}
				outcomes := []memstore.Outcome{memstore.Answered, memstore.FailBefore, memstore.FailAfter, memstore.ApplyLate}
				return memstore.Fault{Outcome: outcomes[r.IntN(4)], Delay: time.Duration(r.Int64N(int64(8 * time.Second)))}
			})
			nodes := map[string]*node{}
			for i := range 300 {
				name := string(rune('a' + i%5))
				n := nodes[name]
				switch {
				case n == nil:
					nodes[name] = w.start(name, func(c *Config) { c.Layout = few; c.Wait = true })
				case chance(12):
					n.leave()
					delete(nodes, name)
				case chance(12): // a crash: nothing of it is heard again
					n.client.CutOff(true)
					delete(nodes, name)
				case chance(8):
					n.client.CutOff(chance(2))
				case chance(8):
					n.wall.step([]time.Duration{-time.Hour, -time.Second, 5 * time.Second, time.Hour}[i%4])
				}
				for _, n := range nodes {
					for range 20 {
						_ = n.take()
					}
				}
				time.Sleep(time.Duration(i%7) * time.Second)
			}
			if len(w.given) < 1000 {
				t.Errorf("seed %d: only %d IDs were given", seed, len(w.given))
			}
		})
	}
}

func TestFill(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		ids := make([]firn.ID, 10_000)
		if err := a.Fill(t.Context(), ids); err != nil || !slices.IsSorted(ids) || ids[0] == 0 {
			t.Errorf("Fill: %v, from %d", err, ids[0])
		}
		a.leave()
		if err := a.Fill(t.Context(), ids); !errors.Is(err, ErrNotReady) || slices.Max(ids) != 0 {
			t.Errorf("Fill after leaving: %v, from %d", err, ids[0])
		}
	})
}

func TestNewRejects(t *testing.T) {
	good := Config{Store: memstore.NewService().Client("a"), Layout: layout}
	for name, change := range map[string]func(*Config){
		"no store":            func(c *Config) { c.Store = nil },
		"no layout":           func(c *Config) { c.Layout = firn.Layout{} },
		"node ID too great":   func(c *Config) { c.Nodes = &Range{0, 1024} },
		"node ID negative":    func(c *Config) { c.Nodes = &Range{-1, 3} },
		"empty range":         func(c *Config) { c.Nodes = &Range{3, 2} },
		"window under a tick": func(c *Config) { c.Window = time.Millisecond },
		"TTL under a second":  func(c *Config) { c.TTL = time.Millisecond },
	} {
		c := good
		change(&c)
		if _, err := New(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := New(good); err != nil {
		t.Error(err)
	}
}
