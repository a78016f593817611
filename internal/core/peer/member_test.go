package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/reason"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/fence"
	"github.com/firn-id/firn/internal/core/journal"
	"github.com/firn-id/firn/store/memstore"
)

// Every bubble begins at this instant, and so do these layouts.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

var (
	layout = firn.Layout{
		Epoch: epoch.Add(-48 * time.Hour), Tick: time.Millisecond, TimeBits: 41, NodeBits: 10,
		SequenceBits: 12,
	}
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

	journals []journal.File // of all members
}

func inBubble(t *testing.T, f func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, service: memstore.NewService(), given: map[firn.ID]string{}}
		t.Cleanup(w.checkJournals) // after all members have ended
		f(t, w)
	})
}

// checkJournals checks what the members did against the model of the proof.
func (w *world) checkJournals() {
	w.t.Helper()
	r, err := journal.Check(w.journals...)
	if err != nil {
		w.t.Error(err)
	}
	for i, v := range r.Violations {
		if w.t.Error(v); i == 5 {
			break
		}
	}
}

// wall is the reading of a machine's clocks, which a test can step.
type wall struct{ off atomic.Int64 }

func (w *wall) step(d time.Duration) { w.off.Add(int64(d)) }

func (w *wall) read() (int64, int64) {
	now := time.Now().UnixNano()
	return now + w.off.Load(), now - epoch.UnixNano()
}

// node is a member with a sequencer, its way to the store and its clock.
type node struct {
	world  *world
	name   string
	client *memstore.Client
	wall   *wall
	seq    atomic.Pointer[Sequencer]
	mem    atomic.Pointer[Member]
	cancel func()
	done   chan struct{} // closed when it has joined and attached, or could not
	err    error         // why it could not

	mu        sync.Mutex
	last      firn.ID
	lastNext  firn.ID
	local     *Local
	lastLocal firn.ID
	turns     int
}

// setup is what a test can change of a node.
type setup struct {
	Options
	store      *memstore.Client
	wall       *wall
	definition cluster.Definition
}

func lowest(nodes cluster.Range) int64 { return nodes.From }

func (w *world) start(name string, changes ...func(*setup)) *node {
	w.t.Helper()
	n := &node{world: w, name: name, client: w.service.Client(name), wall: new(wall), done: make(chan struct{})}
	c := setup{
		store: n.client, wall: n.wall, definition: cluster.Define(layout),
		Options: Options{
			TTL: ttl, Window: window, Owner: name, Start: lowest,
			Clock: firn.NewSteadyClockFrom(0, n.wall.read),
		},
	}
	for _, change := range changes {
		change(&c)
	}
	if c.Journal == nil {
		lines := new(bytes.Buffer)
		w.journals = append(w.journals, journal.File{Name: name, Reader: lines})
		c.Journal = lines
	}
	n.wall = c.wall
	ctx, cancel := context.WithCancel(w.t.Context())
	n.cancel = cancel
	go func() {
		defer close(n.done)
		m, err := Join(ctx, c.store, c.Options)
		if err != nil {
			n.err = err
			return
		}
		n.mem.Store(m)
		s, err := m.EnsureSequencer(ctx, DefaultSequencer, c.definition)
		if err != nil {
			n.err = err
			return
		}
		n.seq.Store(s)
	}()
	w.t.Cleanup(func() {
		n.stop()
		n.client.Close()
	})
	return n
}

// two are ready members.
func (w *world) two() (a, b *node) {
	w.t.Helper()
	a, b = w.start("a"), w.start("b")
	a.ready(time.Second)
	b.ready(time.Second)
	return a, b
}

// stop has it leave, if it ever joined.
func (n *node) stop() {
	n.cancel()
	<-n.done
	if m := n.mem.Load(); m != nil {
		m.Leave()
	}
}

func (n *node) leave() {
	n.world.t.Helper()
	n.stop()
	if m := n.mem.Load(); m != nil && m.Err() != nil {
		n.world.t.Errorf("%s: %v", n.name, m.Err())
	}
}

// settled waits until the outcome of its first attempt at a node ID is known.
func (n *node) settled() *Sequencer {
	n.world.t.Helper()
	select {
	case <-n.done:
	case <-time.After(time.Hour):
		n.world.t.Fatalf("%s: it has not settled", n.name)
	}
	return n.seq.Load()
}

// session is the one that it has now.
func (n *node) session() *memstore.Session {
	_, incarnation, _ := n.mem.Load().look()
	return incarnation.session.(*memstore.Session)
}

// Next and the other methods are those of the sequencer; they return ErrNotReady while the node has no sequencer.
func (n *node) Next(ctx context.Context) (firn.ID, error) {
	if s := n.seq.Load(); s != nil {
		return s.Next(ctx)
	}
	return 0, ErrNotReady
}

func (n *node) Fill(ctx context.Context, ids []firn.ID) error {
	if s := n.seq.Load(); s != nil {
		return s.Fill(ctx, ids)
	}
	return ErrNotReady
}

func (n *node) Ready() error {
	if s := n.seq.Load(); s != nil {
		return s.Ready()
	}
	return ErrNotReady
}

func (n *node) NodeID() (int64, bool) {
	if s := n.seq.Load(); s != nil {
		if state := s.State(); state.Phase == Attached {
			return state.Node, true
		}
	}
	return 0, false
}

// wish is for the node IDs of a range, in every sequencer.
func wish(from, to int64) func(string, cluster.Definition) *cluster.Range {
	return func(string, cluster.Definition) *cluster.Range { return &cluster.Range{From: from, To: to} }
}

func onOneNode(c *setup) { c.definition = cluster.Define(oneNode) }

// NextLocally is Next of a Local, which goroutines must not call at once.
func (n *node) NextLocally(ctx context.Context) (firn.ID, error) {
	s := n.seq.Load()
	if s == nil {
		return 0, ErrNotReady
	}
	if n.local == nil || n.local.s != s {
		n.local = s.Local()
	}
	return n.local.Next(ctx)
}

// take takes an ID, every other time of a Local, and checks it against all others.
func (n *node) take() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	next, last := n.Next, &n.lastNext
	if n.turns++; n.turns%2 == 0 {
		next, last = n.NextLocally, &n.lastLocal
	}
	id, err := next(n.world.t.Context())
	if err != nil {
		return err
	}
	n.world.mu.Lock()
	defer n.world.mu.Unlock()
	if by, ok := n.world.given[id]; ok {
		n.world.t.Errorf("%s gave %d, which %s gave before", n.name, id, by)
	}
	n.world.given[id] = n.name
	if id <= *last {
		n.world.t.Errorf("%s gave %d after %d", n.name, id, *last)
	}
	*last, n.last = id, id
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

// No caller notices a store that is gone for less than the window; when it is gone for longer, IDs end at the
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

// A member that takes its own node ID again, from its horizon on, refuses no call at that instant.
func TestNoCallFallsBetweenTenures(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a", onOneNode)
		a.ready(time.Second)
		for i := range 20 {
			horizon := a.seq.Load().status.Load().inUse().fence.Horizon()
			w.service.Expire(a.session())
			time.Sleep(time.Until(horizon) - 10*time.Millisecond)
			for time.Until(horizon) > -10*time.Millisecond {
				if err := a.take(); err != nil {
					t.Fatalf("round %d, %v before the horizon: %v", i, time.Until(horizon), err)
				}
				time.Sleep(time.Until(horizon) % time.Millisecond) // to the instant itself, sooner or later
				time.Sleep(time.Millisecond)
			}
			time.Sleep(window)
		}
	})
}

// When the node ID is taken away the member goes on under another one, and callers see nothing of it.
func TestALostNodeIDIsReplaced(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		for range 5 {
			before, _ := a.NodeID()
			w.service.Expire(a.session())
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
			w.service.Expire(a.session())
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
		horizon := a.seq.Load().status.Load().inUse().fence.Horizon()
		w.service.Expire(a.session())
		a.client.CutOff(true)
		b := w.start("b", onOneNode)
		time.Sleep(time.Second)
		b.refuses(time.Until(horizon) - 10*time.Millisecond)
		b.ready(20 * time.Millisecond)
	})
}

// With all node IDs taken a member stands in line, says so, and has one as soon as one is given back.
func TestWaitingInLine(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a", onOneNode)
		a.ready(time.Second)
		b, c := w.start("b", onOneNode), w.start("c", onOneNode)
		for i, n := range []*node{b, c} {
			if err := n.settled().Ready(); !errors.Is(err, ErrNotReady) || !errors.Is(err, ErrWaiting) {
				t.Errorf("%s: %v, want ErrWaiting", n.name, err)
			}
			_ = i
		}
		b.refuses(time.Minute)
		a.leave()
		first, second := b, c
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
			if b.Ready() == nil {
				break
			}
			if c.Ready() == nil {
				first, second = c, b
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("neither b nor c took over: %v, %v", b.Ready(), c.Ready())
			}
		}
		first.serves(time.Second)
		second.refuses(time.Second)
	})
}

// Who loses its session and finds others in line for the only node ID uses up what it has written down, and its
// successor goes on right there.
func TestWhoIsInLineAgainUsesUpItsTime(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a", onOneNode)
		a.ready(time.Second)
		b := w.start("b", onOneNode)
		b.settled()
		w.service.Expire(a.session())
		horizon := a.seq.Load().status.Load().inUse().fence.Horizon()
		a.serves(time.Until(horizon) - 10*time.Millisecond)
		time.Sleep(20 * time.Millisecond)
		a.refuses(time.Second)
		b.ready(10 * time.Millisecond)
		if err := a.Ready(); !errors.Is(err, ErrWaiting) {
			t.Errorf("a: %v, want ErrWaiting", err)
		}
		if state := a.seq.Load().State(); state != (State{Phase: Waiting, Place: 1}) {
			t.Errorf("a is %v, want the first in line", state)
		}
	})
}

// A member whose node ID the cluster takes back, since fewer are to have one, stops at once and gives it back.
func TestANodeIDThatIsTakenBack(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		half := func(c *setup) {
			c.definition.Allocation = cluster.Allocation{Kind: cluster.AllocatePercent, Percent: 50}
		}
		a := w.start("a", half)
		a.ready(time.Second)
		b := w.start("b", half)
		if err := b.settled().Ready(); !errors.Is(err, ErrWaiting) {
			t.Errorf("b: %v, want ErrWaiting", err)
		}
		c := w.start("c", half) // of three, two are to have one
		b.ready(time.Second)
		node, _ := b.NodeID()
		c.leave()
		for deadline := time.Now().Add(time.Second); b.Ready() == nil; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("b goes on")
			}
		}
		b.refuses(time.Second)
		kv, err := w.service.Client("test").Get(t.Context(), fmt.Sprintf("sequencers/default/workers/live/%d", node))
		if err != nil || kv.Version != 0 {
			t.Errorf("b holds node ID %d still: %s, %v", node, kv.Value, err)
		}
		a.serves(time.Second)
	})
}

// A sequencer that is created again with another definition is another one: the handle of the former makes no
// more IDs, in any layout, and the name can be asked for again.
func TestASequencerThatIsCreatedAgainIsAnother(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		small := cluster.Define(layout)
		small.Nodes = 8
		w.append(cluster.DestroySequencer{Sequencer: DefaultSequencer})
		w.append(cluster.CreateSequencer{Sequencer: DefaultSequencer, Definition: small})
		synctest.Wait()
		if _, err := a.Next(t.Context()); !errors.Is(err, ErrDestroyed) {
			t.Errorf("Next of the former one: %v, want ErrDestroyed", err)
		}
		if s, _ := a.mem.Load().Value().Sequencer(DefaultSequencer); s.Attached(a.mem.Load().ID()) {
			t.Error("it attached to the new one by itself")
		}
		if _, err := a.mem.Load().EnsureSequencer(t.Context(), DefaultSequencer,
			cluster.Define(layout)); !errors.Is(err, ErrSequencerExists) {
			t.Errorf("asked for the former one: %v, want ErrSequencerExists", err)
		}
		s, err := a.mem.Load().EnsureSequencer(t.Context(), DefaultSequencer, small)
		if err != nil {
			t.Fatal(err)
		}
		id, err := s.Next(t.Context())
		for deadline := time.Now().Add(time.Second); err != nil; id, err = s.Next(t.Context()) {
			if time.Now().After(deadline) {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond) // its node ID was used until a moment ago
		}
		if p, err := small.IDLayout().Decompose(id); err != nil || p.Node > 7 {
			t.Errorf("%d is %+v, %v", id, p, err)
		}
		if _, err := a.Next(t.Context()); !errors.Is(err, ErrNotReady) {
			t.Errorf("Next of the former one: %v", err)
		}
	})
}

// A member that asks for certain node IDs gets one of those, or waits for it.
func TestNodeIDsThatAreWishedFor(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		seven := func(c *setup) { c.Nodes = wish(7, 7) }
		a := w.start("a", seven)
		a.ready(time.Second)
		if node, _ := a.NodeID(); node != 7 {
			t.Errorf("it has node ID %d", node)
		}
		b := w.start("b", seven)
		if err := b.settled().Ready(); !errors.Is(err, ErrWaiting) ||
			!strings.Contains(err.Error(), "node ID 7 is held") {
			t.Errorf("b: %v", err)
		}
		w.start("c").ready(time.Second)
		a.leave()
		b.ready(10 * time.Second)
	})
}

func TestTheClockIsBehindEveryFloor(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a", onOneNode)
		a.ready(time.Second)
		a.leave()
		b := w.start("b", onOneNode, func(c *setup) {
			h := new(wall)
			h.step(-time.Hour)
			c.Clock = firn.NewSteadyClockFrom(0, h.read)
		})
		var behind *fence.ClockBehindError
		if err := b.settled().Ready(); !errors.As(err, &behind) {
			t.Errorf("%v, want a ClockBehindError", err)
		}
		b.refuses(58 * time.Minute)
		b.ready(3 * time.Minute)
	})
}

// A node ID that was used by a clock that ran ahead is exchanged for another.
func TestANodeIDWithAFloorAheadIsDeclined(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		few := func(c *setup) { c.definition.Nodes = 2 }
		ahead := func(c *setup) {
			h := new(wall)
			h.step(time.Hour)
			c.Clock = firn.NewSteadyClockFrom(0, h.read)
		}
		a := w.start("a", few, ahead)
		a.ready(time.Second)
		w.start("b", few).ready(time.Minute)
		a.leave()
		c := w.start("c", few)
		err := c.settled().Ready()
		var behind *fence.ClockBehindError
		if !errors.As(err, &behind) {
			t.Errorf("%v, want a ClockBehindError: the other node ID is held", err)
		}
	})
}

// A member that is given another node ID while it waits for the floor of the first gives that one back.
func TestANodeIDThatWasNeverUsedIsGivenBack(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		two := func(c *setup) { c.definition.Nodes = 2 }
		for _, name := range []string{"a", "b"} {
			crashes := w.start(name, two)
			crashes.ready(time.Second)
			w.service.Expire(crashes.session())
			crashes.client.CutOff(true)
		}
		c := w.start("c", two)
		waits := func() *fence.Fence {
			if s := c.seq.Load(); s != nil {
				return s.status.Load().latest().fence
			}
			return nil
		}
		for waits() == nil {
			time.Sleep(time.Millisecond)
		}
		w.append(cluster.Decline{Sequencer: DefaultSequencer, Member: c.mem.Load().ID(), Node: waits().Node()})
		c.ready(2 * window)
		w.start("d", two).ready(2 * window)
	})
}

func TestTheDefinitionIsNotThatOfTheOthers(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.start("a").ready(time.Second)
		b := w.start("b", func(c *setup) { c.definition.Nodes = 8 })
		b.settled()
		var exists *ExistsError
		if !errors.Is(b.err, ErrSequencerExists) || !errors.As(b.err, &exists) || exists.InForce.Nodes != 1024 ||
			exists.Wanted.Nodes != 8 {
			t.Fatalf("%v, want an ExistsError", b.err)
		}
		other, err := b.mem.Load().EnsureSequencer(t.Context(), "other", exists.Wanted)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := other.Next(t.Context()); err != nil {
			t.Error(err)
		}
		again, err := b.mem.Load().EnsureSequencer(t.Context(), "other", exists.Wanted)
		if err != nil || again != other {
			t.Errorf("asked for again: %p, %v, want %p", again, err, other)
		}
	})
}

// decline has the log take the sequencer's node ID away and give it another, and returns at once.
func (n *node) decline() {
	n.world.t.Helper()
	id, _ := n.NodeID()
	n.world.append(cluster.Decline{Sequencer: DefaultSequencer, Member: n.mem.Load().ID(), Node: id})
}

// Callers that come while one node ID replaces another still get an ID.
func TestTheSwitchIsNotSeen(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
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
		for range 500 {
			before, _ := a.NodeID()
			a.decline()
			for after := before; after == before; after, _ = a.NodeID() {
				time.Sleep(100 * time.Microsecond)
			}
		}
		end()
		callers.Wait()
	})
}

// A caller that comes between the end of the old generator and the start of the new one waits for the new one.
func TestTheSwitchIsWaitedFor(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var looks atomic.Pointer[func()] // called at each look at the clock, as a new generator takes
		a := w.start("a", func(c *setup) {
			h := new(wall)
			c.Clock = firn.NewSteadyClockFrom(0, func() (int64, int64) {
				if call := looks.Load(); call != nil {
					(*call)()
				}
				return h.read()
			})
		})
		a.ready(time.Second)
		generator := a.settled().status.Load().generator
		came := make(chan error, 1)
		comes := func() {
			call := looks.Swap(nil)
			if _, err := generator.TryNext(); !errors.Is(err, firn.ErrStopped) {
				looks.Store(call) // it is not in the middle of a switch yet
				return
			}
			var ended atomic.Bool
			go func() {
				err := a.take()
				ended.Store(true)
				came <- err
			}()
			for !waits("(*Sequencer).take(") { // the bubble does not tell
				if ended.Load() {
					t.Error("it did not wait")
					return
				}
				runtime.Gosched()
			}
		}
		looks.Store(&comes)
		a.decline()
		if err := <-came; err != nil {
			t.Error(err)
		}
	})
}

// waits reports whether a goroutine waits for a channel in a function.
func waits(function string) bool {
	stacks := make([]byte, 1<<20)
	for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		if strings.Contains(stack, "[chan receive") && strings.Contains(stack, function) {
			return true
		}
	}
	return false
}

// logbook is what was logged. It is safe for concurrent use.
type logbook struct {
	mu   sync.Mutex
	said strings.Builder
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.said.Write(p)
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.said.String()
}

// A store that can't be reached is tried again and again, and complained of once a minute.
func TestRunKeepsTryingWhileTheStoreIsGone(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var log logbook
		a := w.start("a", func(c *setup) {
			c.store.CutOff(true)
			c.Logger = slog.New(slog.NewTextHandler(&log, nil))
		})
		a.refuses(10 * time.Minute)
		if said := log.String(); strings.Count(said, "\n") < 9 || strings.Count(said, "\n") > 11 {
			t.Errorf("%d complaints in ten minutes:\n%s", strings.Count(said, "\n"), said)
		}
		a.client.CutOff(false)
		a.ready(10 * time.Second)
	})
}

// Steps of the wall clock: none makes a duplicate or a reordering, steps back and small steps ahead are not even
// noticed.
func TestTheWallClockSteps(t *testing.T) {
	for _, step := range []time.Duration{-time.Hour, -10 * time.Second, 5 * time.Second} {
		inBubble(t, func(t *testing.T, w *world) {
			a, b := w.two()
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
		all, err := w.service.Client("test").List(t.Context(), a.seq.Load().fences.Prefix)
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
			a := w.start("a", func(c *setup) { c.definition = cluster.Define(l) })
			a.ready(time.Second)
			a.wall.step(time.Hour)
			time.Sleep(window / 2)
			a.ready(10 * time.Second)
			a.serves(time.Minute)
			p, _ := l.Decompose(a.last)
			if off := l.TickStart(p.Tick).Sub(time.Now().Add(time.Hour)).Abs(); off > time.Second {
				t.Errorf("its IDs are %v away from the wall", off)
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

func TestJoinRejects(t *testing.T) {
	for name, options := range map[string]Options{
		"a TTL under a second":  {TTL: time.Millisecond},
		"a window of nothing":   {Window: time.Millisecond},
		"a negative checkpoint": {CheckpointEvery: -1},
	} {
		if _, err := Join(t.Context(), memstore.NewService().Client("a"), options); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := Join(t.Context(), nil, Options{}); err == nil {
		t.Error("no store: no error")
	}
}

func TestWishesAreValidated(t *testing.T) {
	for name, tt := range map[string]struct {
		from, to int64
		says     string
	}{
		"an empty range":            {3, 2, `node IDs 3 to 2 of the sequencer "orders"; there are 0 to 1023`},
		"a range below all of them": {-1, 2, "node IDs -1 to 2"},
		"one beyond":                {0, 1024, "node IDs 0 to 1024"},
		"a node ID beyond":          {1024, 1024, `node ID 1024 of the sequencer "orders"; there are 0 to 1023`},
	} {
		err := (Options{Nodes: wish(tt.from, tt.to)}).ValidateFor("orders", cluster.Define(layout))
		if err == nil || reason.Of(err) != "unfit" || !strings.HasSuffix(err.Error(), tt.says) &&
			!strings.Contains(err.Error(), tt.says+" of the sequencer") {
			t.Errorf("%s: %v; want an error with %q", name, err, tt.says)
		}
	}
}

// TestWindowTooShortForTicks: a member with a short window can't take part where a tick is long, and others can.
func TestWindowTooShortForTicks(t *testing.T) {
	d := cluster.Define(layout)
	d.Layout.Tick = time.Second
	err := Options{Window: 2 * time.Second}.ValidateFor("orders", d)
	if reason.Of(err) != "unfit" || !strings.Contains(err.Error(), "want at least 3s, three ticks of the layout") {
		t.Errorf("three ticks in two: %v", err)
	}
}

func TestSequencerRejects(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a", func(c *setup) { c.Nodes = wish(0, 10) })
		a.ready(time.Second)
		good := cluster.Define(layout)
		slow, small, none := good, good, good
		slow.Layout.Tick, small.Nodes, none.Nodes = time.Second*20, 8, 0
		for name, d := range map[string]cluster.Definition{
			"Capital": good, "": good, "no-layout": {}, "slow": slow,
			"small": small, "none": none,
		} {
			_, err := a.mem.Load().EnsureSequencer(t.Context(), name, d)
			if unfit := name == "small"; err == nil || (reason.Of(err) == "unfit") != unfit {
				t.Errorf("%q: %v, which says unfit, %v", name, err, unfit)
			}
		}
	})
}
