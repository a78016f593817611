package peer

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/floor"
	"github.com/firn-id/firn/internal/core/clocks"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// onTwo is a sequencer of two node IDs.
func onTwo(c *setup) {
	c.definition = cluster.Define(firn.Layout{
		Epoch: layout.Epoch, Tick: time.Millisecond, TimeBits: 41,
		NodeBits: 1, SequenceBits: 12,
	})
}

// takesOfEach takes IDs of all nodes for so long, and checks them. It returns how many.
func (w *world) takesOfEach(d time.Duration, nodes ...*node) (taken int) {
	w.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(time.Millisecond) {
		for _, n := range nodes {
			s := n.seq.Load()
			if s == nil {
				continue
			}
			g := s.status.Load().generator
			if g == nil {
				continue
			}
			id, err := g.TryNext()
			if err != nil {
				continue
			}
			taken++
			if by, ok := w.given[id]; ok {
				w.t.Fatalf("%s gave %d (node ID %d), which %s gave before", n.name, id, g.NodeID(), by)
			}
			w.given[id] = n.name
		}
	}
	return taken
}

// floor reads the floor from the store.
func (w *world) floor() floor.Floor {
	w.t.Helper()
	client := w.service.Client("look")
	defer client.Close()
	kv, err := client.Get(context.Background(), floor.Key)
	if err != nil {
		w.t.Fatal(err)
	}
	f, err := floor.Parse(kv.Value)
	if err != nil {
		w.t.Fatal(err)
	}
	return f
}

// noticesLosses waits until a node has noticed so many losses, and has written what it has to.
func (n *node) noticesLosses(losses int64) {
	n.world.t.Helper()
	again := func() bool { // not as the member that it was before
		m := n.mem.Load()
		_, l, _ := m.look()
		return l != nil && l.losses >= losses && m.Ready() == nil
	}
	for deadline := time.Now().Add(window); !again(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			n.world.t.Fatalf("%s has not noticed %d losses", n.name, losses)
		}
	}
}

// The store loses data a second time while nodes wait, or have waited, for the floor after the first loss: it is set
// back to when that floor had just been written. The clocks are 8 s apart.
func TestTwoLosses(t *testing.T) {
	for name, between := range map[string]time.Duration{
		"while all wait":  window / 2,
		"once some serve": window + clocks.Skew + 3*time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				b := w.start("b", onTwo)
				b.ready(time.Second)
				a := w.start("a", onTwo, off(behind))
				a.ready(clocks.Skew)
				w.takesOfEach(window, a, b)
				w.service.RollBack(memstore.Backup{}, 0)
				at := time.Now()
				a.noticesLosses(1)
				b.noticesLosses(1)
				backup := w.service.Backup()
				w.takesOfEach(between-time.Since(at), a, b)
				a.client.CutOff(true) // it may use what it has reserved
				w.service.RollBack(backup, 0)
				b.noticesLosses(2)
				w.takesOfEach(window, a, b)
				a.client.CutOff(false)
				if w.takesOfEach(2*window, a, b) == 0 {
					t.Errorf("nobody makes IDs after the second loss: %v, %v", a.Ready(), b.Ready())
				}
			})
		})
	}
}

// The store loses data again as soon as the floor of the first loss is written: nobody has read an entry or written a
// horizon since, so that nothing but the floor's own version tells.
func TestALossRightAfterAnother(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		one := cluster.Define(firn.Layout{Epoch: layout.Epoch, Tick: time.Millisecond, TimeBits: 41, SequenceBits: 12})
		a := w.start("a", func(c *setup) { c.definition = one })
		a.ready(time.Second)
		b := w.start("b", func(c *setup) { c.definition = one })
		w.takesOfEach(window, a, b)
		w.service.RollBack(memstore.Backup{}, 1_000_000)
		for w.floor().From.IsZero() {
			time.Sleep(time.Millisecond)
		}
		w.service.RollBack(memstore.Backup{}, 2_000_000)
		if w.takesOfEach(4*window, a, b) == 0 {
			t.Errorf("nobody makes IDs after the second loss: %v, %v", a.Ready(), b.Ready())
		}
		if f := w.floor(); f.From.IsZero() {
			t.Errorf("nobody has noticed the second loss: the floor is %+v", f)
		}
	})
}

// A member that was out of reach when the others wrote the floor does not stop those that serve, though it writes a
// later one: it can't know that theirs is of the same loss.
func TestAMemberThatNoticesLate(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.two()
		b.client.CutOff(true)
		w.service.RollBack(memstore.Backup{}, 0)
		a.noticesLosses(1)
		w.takes(2*window, a)
		a.ready(time.Second)
		b.client.CutOff(false)
		b.noticesLosses(1)
		a.serves(2 * window)
		b.ready(time.Second)
		for _, n := range []*node{a, b} {
			if saw := n.mem.Load().witness.saw; saw != sawNothing {
				t.Errorf("%s is a witness (%d) of the next loss, too", n.name, saw)
			}
		}
	})
}

// refusedBy starts two nodes whose clocks agree, and a third that is refused for its clock.
func (w *world) refusedBy(ahead time.Duration, kind clocks.Kind) (a, b, c *node) {
	w.t.Helper()
	a, b = w.two()
	c = w.start("c", off(ahead))
	c.settled()
	c.believes(kind, time.Minute)
	w.takes(window, a, b)
	return a, b, c
}

// A node that is refused because its clock is a day ahead is the first to notice that the store has lost data. The
// others wait no longer for that.
func TestARefusedClockSettlesNoFloor(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b, c := w.refusedBy(24*time.Hour, clocks.Ahead)
		a.client.CutOff(true)
		b.client.CutOff(true)
		w.service.RollBack(memstore.Backup{}, 0)
		c.startsOver()
		if f := w.floor(); !f.Open || !f.From.IsZero() {
			t.Errorf("the floor is %+v; want one that is open", f)
		}
		a.client.CutOff(false)
		b.client.CutOff(false)
		w.takes(window+clocks.Skew+5*time.Second, a, b)
		for _, n := range []*node{a, b} {
			n.ready(10 * time.Second)
		}
		c.believes(clocks.Ahead, time.Minute)
	})
}

// A refused node that notices a loss late opens the floor again. Those who hold all that they want, and claim nothing,
// settle it all the same.
func TestAFloorIsSettledByThoseWhoClaimNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b, c := w.refusedBy(24*time.Hour, clocks.Ahead)
		c.client.CutOff(true)
		w.service.RollBack(memstore.Backup{}, 0)
		a.noticesLosses(1)
		b.noticesLosses(1)
		w.takes(3*window, a, b)
		a.ready(time.Second)
		b.ready(time.Second)
		c.client.CutOff(false)
		c.noticesLosses(1)
		open := func() bool {
			kv, err := w.service.Client("look").Get(t.Context(), floor.Key)
			f, unreadable := floor.Parse(kv.Value)
			if err != nil || unreadable != nil {
				t.Fatal(err, unreadable)
			}
			return f.Open
		}
		for end := time.Now().Add(time.Second); !open(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("c has not opened the floor")
			}
		}
		w.takes(window, a, b)
		if open() {
			t.Error("nobody has settled the floor")
		}
	})
}

// Those that agree about the time are out of reach, and use what they have reserved, when the store loses data. A node
// that was refused because its clock is a day behind notices, and is then alone. No newcomer makes IDs before the
// others have said from when on, or before an operator resumes.
func TestARefusedClockKeepsNewcomersOut(t *testing.T) {
	for _, lag := range []time.Duration{0, window / 2} {
		refusedClockKeepsNewcomersOut(t, lag)
	}
}

func refusedClockKeepsNewcomersOut(t *testing.T, lag time.Duration) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b, c := w.refusedBy(-24*time.Hour, clocks.Behind)
		a.client.CutOff(true)
		b.client.CutOff(true)
		c.client.Lag(lag) // so that it compares clocks before it is told
		w.service.RollBack(memstore.Backup{}, 0)
		c.noticesLosses(1)
		c.client.Lag(0)
		d := w.start("d")
		w.takes(20*time.Second, a, b, c, d)
		w.takes(window, a, b)
		if n := w.takes(2*window, c, d); n != 0 {
			t.Errorf("%d IDs were given though nobody whose clock is believed has said from when on", n)
		}
		var wait *FloorError
		if err := d.Ready(); !errors.As(err, &wait) || !wait.From.IsZero() || wait.By != "c" ||
			!strings.Contains(err.Error(), "most others agree") {
			t.Errorf("Ready of a newcomer: %v; want a FloorError of c", err)
		}
		a.client.CutOff(false)
		b.client.CutOff(false)
		w.takes(2*window, a, b, c, d)
		for _, n := range []*node{a, b, d} {
			n.ready(5 * time.Second)
		}
	})
}

// A node was refused when it noticed a loss, and has had nothing to claim since. Others have settled the floor, and its
// clock is right now. It settles the floor of the next loss, though nobody else lives.
func TestARefusedClockIsBelievedAtTheNextLoss(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b, c := w.refusedBy(24*time.Hour, clocks.Ahead)
		if err := c.seq.Load().Detach(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.service.RollBack(memstore.Backup{}, 0)
		for _, n := range []*node{a, b, c} {
			n.noticesLosses(1)
		}
		c.wall.step(-24 * time.Hour)
		w.takes(window+clocks.Skew+5*time.Second, a, b)
		a.ready(time.Second)
		c.believes(clocks.Agreed, time.Minute)
		w.takes(window, a, b)
		a.stop()
		b.stop()
		w.service.RollBack(memstore.Backup{}, 0)
		c.noticesLosses(2)
		s, err := c.mem.Load().EnsureSequencer(t.Context(), DefaultSequencer, cluster.Define(layout))
		if err != nil {
			t.Fatal(err)
		}
		c.seq.Store(s)
		c.ready(window + clocks.Skew + 5*time.Second)
	})
}

// Only a floor of the loss that a member has noticed makes it a witness no more, and not one that it read before it
// told of it.
func TestWitness(t *testing.T) {
	var m Member
	for _, step := range []struct {
		do   func()
		want sight
	}{
		{func() { m.witness = witness{refused, floorAt{1, math.MaxInt64}} }, refused},
		{func() { m.settled(floorAt{0, 9}, true) }, refused},
		{func() { m.settled(floorAt{1, 9}, true) }, refused},
		{func() { m.told(floorAt{1, 7}) }, refused},
		{func() { m.settled(floorAt{1, 6}, true) }, refused},
		{func() { m.settled(floorAt{2, 8}, true) }, refused}, // of the next loss, which it does not testify of yet
		{func() { m.settled(floorAt{1, 7}, false) }, sawNothing},
		{func() { m.witness.saw = believed; m.settled(floorAt{1, 8}, false) }, believed},
		{func() { m.settled(floorAt{1, 8}, true) }, sawNothing},
	} {
		if step.do(); m.witness.saw != step.want {
			t.Fatalf("the witness is %+v; want %d", m.witness, step.want)
		}
	}
}

// Only nodes that were refused live when the store loses data. They agree with each other afterwards, and with nobody
// who knows better; still they make no ID until an operator resumes.
func TestOnlyRefusedClocksLive(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var others []*node
		for _, name := range []string{"a", "b", "e"} {
			n := w.start(name)
			n.ready(time.Second)
			others = append(others, n)
		}
		c, d := w.start("c", off(-24*time.Hour)), w.start("d", off(-24*time.Hour))
		for _, n := range []*node{c, d} {
			n.settled()
			n.believes(clocks.Behind, time.Minute)
		}
		for _, n := range others {
			n.client.CutOff(true)
		}
		w.service.RollBack(memstore.Backup{}, 0)
		c.startsOver()
		c.believes(clocks.Agreed, time.Minute)
		w.service.RollBack(memstore.Backup{}, 0) // and again
		c.noticesLosses(2)
		d.noticesLosses(2)
		c.believes(clocks.Agreed, time.Minute)
		c.refuses(2 * window)
		if f := w.floor(); !f.Open {
			t.Errorf("the floor is %+v; want one that is open", f)
		}
		until, err := c.mem.Load().Resume(t.Context())
		if err != nil || until.IsZero() {
			t.Errorf("Resume: %v, %v", until, err)
		}
		c.ready(10 * time.Second)
		d.ready(10 * time.Second)
	})
}

// A floor is a month ahead. Two members that agree about the time replace it; one by itself believes it.
func TestAFloorBeyondAllClocks(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		absurd, err := floor.Floor{From: time.Now().Add(30 * 24 * time.Hour), By: "wrong", Why: "test"}.Put()
		if err != nil {
			t.Fatal(err)
		}
		put(t, w, absurd)
		a := w.start("a")
		a.refuses(2 * window)
		b := w.start("b")
		w.takes(window+clocks.Skew+5*time.Second, a, b)
		a.ready(5 * time.Second)
		b.ready(5 * time.Second)
		if f := w.floor(); !strings.Contains(f.Why, `"wrong"`) {
			t.Errorf("the floor is %+v", f)
		}
	})
}

// A floor is an hour ahead, and so is what a member has reserved, since its time ran ahead when all clocks did. A
// newcomer whose time is the clocks' does not doubt the floor.
func TestAFloorThatAHorizonExplains(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.two()
		for _, n := range []*node{a, b} {
			n.wall.step(time.Hour)
		}
		w.takes(window, a, b)
		for _, n := range []*node{a, b} {
			n.wall.step(-time.Hour)
		}
		w.takes(window, a, b)
		w.service.RollBack(memstore.Backup{}, 0)
		a.noticesLosses(1)
		b.noticesLosses(1)
		c := w.start("c")
		w.takes(2*window, a, b, c)
		if f := w.floor(); f.From.Before(time.Now().Add(30 * time.Minute)) {
			t.Errorf("the floor is %+v at %v", f, time.Now())
		}
	})
}

// The longest window with which node IDs were claimed is in the store before the first claim. Members that have read it
// write a floor by it, also if the store has lost it.
func TestTheLongestWindow(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a", onTwo)
		a.ready(time.Second)
		if f := w.floor(); f.Window != window {
			t.Errorf("the floor is %+v; want a window of %v", f, window)
		}
		const long = 3 * window
		c := w.start("c", onTwo, func(s *setup) {
			s.Window = long
			s.store.Inject(func(call memstore.Call) (f memstore.Fault) {
				for _, op := range call.Txn.Then {
					if known := w.floor().Window; isClaim(op) && known != long {
						t.Errorf("a claim with a window of %v is on its way, and the store knows of %v", long, known)
					}
				}
				return f
			})
		})
		c.ready(clocks.Skew)
		w.takesOfEach(window, a, c) // a has read it
		c.client.CutOff(true)
		w.service.RollBack(memstore.Backup{}, 0)
		a.noticesLosses(1)
		if f, want := w.floor(), time.Now().Add(long+clocks.Skew/2); f.From.Before(want) || f.Window != long {
			t.Errorf("the floor is %+v; want one from %v on, and a window of %v", f, want, long)
		}
		w.takesOfEach(2*long, a, c, w.start("late", onTwo))
	})
}

// The store is set back to a backup with the same log and the same floor, while the owner of a node ID is out of reach:
// only horizons tell. A member that has one of another sequencer, and waits in line, tells of the loss before it takes
// the node ID.
func TestOnlyHorizonsAreLost(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a", onOneNode)
		a.ready(time.Second)
		b := w.start("b", onOneNode)
		b.settled()
		users, err := b.mem.Load().EnsureSequencer(t.Context(), "users", cluster.Define(layout))
		if err != nil {
			t.Fatal(err)
		}
		next(t, users, time.Second)
		w.takes(window, a)
		backup := w.service.Backup()
		w.takes(2*window, a)
		a.client.CutOff(true) // it may use what it has reserved
		b.client.Inject(func(c memstore.Call) memstore.Fault {
			if c.Op == memstore.Get && strings.HasPrefix(c.Key, fencePrefix("users")+"live/") {
				return memstore.Fault{Delay: time.Hour} // so that it looks at the other sequencer first
			}
			return memstore.Fault{}
		})
		w.service.RollBack(backup, 1_000_000)
		w.takes(window, a, b)
		b.noticesLosses(1)
		b.client.Inject(nil)
		w.takes(window+2*clocks.Skew, a, b)
		if w.takes(time.Second, b) == 0 {
			t.Errorf("b makes no ID after the floor: %v", b.Ready())
		}
	})
}

// A member whose session has ended since the store was set back to a backup with the same log writes the floor before
// anything to the log.
func TestAMemberTellsOfItsHorizonFirst(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		backup := w.service.Backup()
		w.takes(window, a)
		const ahead = 1_000_000
		w.service.RollBack(backup, ahead)
		client := w.service.Client("test")
		defer client.Close()
		for deadline := time.Now().Add(window / 4); ; time.Sleep(time.Millisecond) { // before a renewal would tell
			b, err := client.Read(t.Context(), ahead)
			if err != nil {
				t.Fatal(err)
			}
			if len(b.Entries) > 0 {
				f, err := client.Get(t.Context(), floor.Key)
				if at := store.Version(b.Entries[0].Position); err != nil || f.Version <= ahead || f.Version > at {
					t.Errorf("the log goes on at %d, and the floor is of %d, %v", at, f.Version, err)
				}
				return
			}
			if time.Now().After(deadline) {
				t.Fatal("it has not joined again")
			}
		}
	})
}

// A member finds, before it claims, that the store has lost a horizon that it wrote for another sequencer.
func TestAClaimLooksForALoss(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		m := a.mem.Load()
		put(t, w, store.Delete(fencePrefix(DefaultSequencer)+"last_reported_time/0"))
		users, err := m.EnsureSequencer(t.Context(), "users", cluster.Define(layout))
		if err != nil {
			t.Fatal(err)
		}
		a.noticesLosses(1)
		if id, err := users.Next(t.Context()); err == nil {
			t.Errorf("it claimed, and gave %d", id)
		}
	})
}

// A newcomer whose clock is an hour behind is alone on a store that was wiped, while all others are out of reach. It is
// believed, since nobody contradicts it. Those that come back raise the floor to what they have used, and refuse its
// clock.
func TestALateClockAloneAfterALoss(t *testing.T) {
	for name, open := range map[string]bool{"nobody has told": false, "the floor is open": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *world) {
				a, b := w.two()
				w.takes(window, a, b)
				a.client.CutOff(true)
				b.client.CutOff(true)
				w.service.RollBack(memstore.Backup{}, 1_000_000)
				if open {
					op, err := floor.Open(nil, "a store", "it was restored")
					if err != nil {
						t.Fatal(err)
					}
					put(t, w, op)
				}
				late := w.start("late", off(-time.Hour))
				late.settled()
				if f := w.floor(); f.Open || f.From.After(time.Now()) {
					t.Fatalf("the newcomer is not believed: %+v", f)
				}
				used := later(a.claimed().Horizon(), b.claimed().Horizon())
				a.client.CutOff(false)
				b.client.CutOff(false)
				a.noticesLosses(1)
				b.noticesLosses(1)
				if f := w.floor(); f.Open || f.From.Before(used.Add(clocks.Skew)) {
					t.Errorf("others have used what lies before %v, and the floor is %+v", used, f)
				}
				w.takes(2*window, a, b)
				if w.takes(time.Second, a) == 0 || w.takes(time.Second, b) == 0 {
					t.Errorf("those that were there make no IDs: %v, %v", a.Ready(), b.Ready())
				}
				if j := late.mem.Load().judged(); !j.Out() {
					t.Errorf("the late clock is %v", j)
				}
			})
		})
	}
}
