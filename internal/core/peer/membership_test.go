package peer

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// crash ends a node at once: nothing of it reaches the store any more. Its pulse ends a TTL later.
func (n *node) crash() {
	n.client.CutOff(true)
	n.cancel()
	_ = n.client.Close()
}

// oneRing returns what is missing so that exactly these nodes are members, in one ring, with nothing pending, and have
// all reached the same value.
func oneRing(nodes []*node) error {
	var first []byte
	for _, n := range nodes {
		m := n.mem.Load()
		if m == nil {
			return fmt.Errorf("%s has not joined: %w", n.name, n.err)
		}
		v, id := m.Value(), m.ID()
		if v.Size() != len(nodes) || !v.IsMember(id) {
			var live []string
			for _, n := range nodes {
				if m := n.mem.Load(); m != nil {
					live = append(live, m.ID())
				}
			}
			return fmt.Errorf("%s, %s: the members are %v, those that live %v", n.name, id, v.Members(), live)
		}
		for joiner, j := range v.Joins() {
			return fmt.Errorf("%s: the join of %s at %s is pending", n.name, joiner, j.Target)
		}
		at, seen := id, 0
		for ok := len(nodes) > 1; ok && (seen == 0 || at != id); seen++ {
			at, ok = v.Watched(at)
		}
		if len(nodes) > 1 && seen != len(nodes) {
			return fmt.Errorf("%s: a ring of %d", n.name, seen)
		}
		value, err := cluster.EncodeCheckpoint(v)
		if err != nil {
			return err
		}
		if first == nil {
			first = value
		}
		if !bytes.Equal(value, first) {
			return fmt.Errorf("%s has come to\n%s\n%s to\n%s", n.name, value, nodes[0].name, first)
		}
	}
	return nil
}

// becomeOneRing waits until these nodes are the cluster, and returns how long it took. All the while
// those that serve must.
func (w *world) becomeOneRing(within time.Duration, nodes []*node, serving ...*node) time.Duration {
	w.t.Helper()
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		err := oneRing(nodes)
		if err == nil {
			return time.Since(begun)
		}
		if time.Since(begun) > within {
			w.t.Fatalf("no ring after %v: %v", within, err)
		}
		for _, n := range serving {
			if err := n.take(); err != nil {
				w.t.Fatalf("%s after %v: %v", n.name, time.Since(begun), err)
			}
		}
	}
}

// startMany starts so many nodes, one after the other.
func (w *world) startMany(prefix string, count int, changes ...func(*setup)) []*node {
	w.t.Helper()
	var nodes []*node
	for i := range count {
		n := w.start(fmt.Sprint(prefix, i), changes...)
		n.ready(time.Minute)
		nodes = append(nodes, n)
	}
	return nodes
}

// without is the nodes but these.
func without(nodes []*node, gone ...*node) []*node {
	return slices.DeleteFunc(slices.Clone(nodes), func(n *node) bool { return slices.Contains(gone, n) })
}

// append writes to the log as some member would.
func (w *world) append(c cluster.Command) {
	w.t.Helper()
	client := w.service.Client("test")
	client.Inject(func(memstore.Call) memstore.Fault { return memstore.Fault{} })
	data, err := cluster.Encode(c, time.Time{})
	if err == nil {
		_, err = client.Append(w.t.Context(), newID(), data)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// value is what the whole log leads to.
func (w *world) value() cluster.Value {
	w.t.Helper()
	batch, err := w.service.Client("test").Read(w.t.Context(), 0)
	if err != nil {
		w.t.Fatal(err)
	}
	var v cluster.Value
	p := &player{skips: w.skips()}
	if batch.Checkpoint != nil {
		if v, err = p.restore(*batch.Checkpoint); err != nil {
			w.t.Fatal(err)
		}
	}
	for _, e := range batch.Entries {
		entry, err := p.decode(e)
		if err != nil {
			w.t.Fatal(err)
		}
		v, _ = cluster.Apply(v, entry)
	}
	return v
}

// cut appends something and cuts the log up to there.
func (w *world) cut() {
	w.t.Helper()
	w.append(cluster.PeerGC{By: "nobody"})
	synctest.Wait() // who can see that has seen it, and is not behind
	v, client := w.value(), w.service.Client("test")
	data, err := cluster.EncodeCheckpoint(v)
	if err == nil {
		err = client.Checkpoint(w.t.Context(), store.Checkpoint{Position: store.Position(v.Position()), Value: data})
	}
	if err == nil {
		err = client.Trim(w.t.Context())
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func TestManyJoinAtOnce(t *testing.T) {
	for _, many := range []int{1, 2, 8, 40} {
		inBubble(t, func(t *testing.T, w *world) {
			var nodes []*node
			for i := range many {
				nodes = append(nodes, w.start(fmt.Sprint("n", i)))
			}
			t.Logf("%d: %v", many, w.becomeOneRing(10*time.Second, nodes))
			for _, n := range nodes {
				n.ready(time.Second)
			}
		})
	}
}

// Any two members die at once: the others notice when the pulses end, and none that lives is missed by anybody.
func TestAnyTwoCrash(t *testing.T) {
	const many = 6
	longest := time.Duration(0)
	for i := range many {
		for j := range i {
			inBubble(t, func(t *testing.T, w *world) {
				nodes := w.startMany("n", many)
				w.becomeOneRing(time.Second, nodes)
				nodes[i].crash()
				nodes[j].crash()
				left := without(nodes, nodes[i], nodes[j])
				took := w.becomeOneRing(ttl+2*time.Second, left, left...)
				longest = max(longest, took)
				if took < ttl/2 {
					t.Errorf("the dead were out after %v; their pulses were there for longer", took)
				}
				fresh := w.start("fresh")
				w.becomeOneRing(time.Second, append(left, fresh), left...)
			})
		}
	}
	t.Logf("the ring was closed after %v at the latest, with a TTL of %v", longest, ttl)
}

// All members die, and as many new ones come at once.
func TestAllCrash(t *testing.T) {
	for _, many := range []int{1, 2, 5} {
		inBubble(t, func(t *testing.T, w *world) {
			for _, n := range w.startMany("old", many) {
				n.crash()
			}
			var nodes []*node
			for i := range many {
				nodes = append(nodes, w.start(fmt.Sprint("new", i)))
			}
			t.Logf("%d: %v", many, w.becomeOneRing(ttl+5*time.Second, nodes))
			for _, n := range nodes {
				n.ready(time.Second)
				n.serves(time.Second)
			}
		})
	}
}

// The same with a store that takes its time: as soon as the silence of the old ones is noticed the new ones get in, one
// after the other and without a pause.
func TestAllCrashAndTheStoreTakesItsTime(t *testing.T) {
	longest := time.Duration(0)
	for range 40 {
		inBubble(t, func(t *testing.T, w *world) {
			w.service.Inject(func(memstore.Call) memstore.Fault {
				return memstore.Fault{Delay: rand.N(10 * time.Millisecond)}
			})
			for _, n := range w.startMany("old", 5) {
				n.crash()
			}
			var nodes []*node
			for i := range 5 {
				nodes = append(nodes, w.start(fmt.Sprint("new", i)))
			}
			longest = max(longest, w.becomeOneRing(ttl+5*time.Second, nodes))
		})
	}
	t.Logf("one ring after %v at the latest", longest)
	if longest > callAfter+answerMost+time.Second {
		t.Errorf("one ring after %v; a joiner waited in vain", longest)
	}
}

// Every member dies while a join is pending at each: the next joiner finds no target, and removes the dead.
func TestAllCrashWhileJoining(t *testing.T) {
	for _, phase := range []string{"notify-watchers", "accept-join-cluster"} {
		inBubble(t, func(t *testing.T, w *world) {
			a := w.start("a")
			a.ready(time.Second)
			firstDies([]*node{a}, "accept-join-cluster")
			b := w.start("b", diesBefore(phase))
			time.Sleep(time.Second)
			b.crash()
			a.crash()
			nodes := []*node{w.start("c"), w.start("d"), w.start("e")}
			t.Logf("%s: %v", phase, w.becomeOneRing(ttl+10*time.Second, nodes))
		})
	}
}

// A member that leaves is out at once, before its session would end: it says so itself, also when it is the last.
func TestLeavingIsSeenAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		nodes := w.startMany("n", 4)
		for len(nodes) > 0 {
			nodes[0].leave()
			nodes = nodes[1:]
			if v := w.value(); v.Size() > len(nodes) {
				t.Errorf("when it has left the members are %v", v.Members())
			}
			if took := w.becomeOneRing(time.Second, nodes, nodes...); took > 50*time.Millisecond {
				t.Errorf("it took %v", took)
			}
		}
	})
}

// A live member that the others remove comes back under another ID. Its callers notice nothing.
func TestEvictedWhileAlive(t *testing.T) {
	for _, many := range []int{1, 2, 5} {
		inBubble(t, func(t *testing.T, w *world) {
			nodes := w.startMany("n", many)
			w.becomeOneRing(time.Second, nodes)
			for _, n := range nodes {
				was := n.mem.Load().ID()
				w.append(cluster.Leave{Member: was})
				time.Sleep(time.Millisecond)
				w.becomeOneRing(5*time.Second, nodes, nodes...)
				n.serves(2 * window)
				if n.mem.Load().ID() == was {
					t.Errorf("%s is still %s", n.name, was)
				}
			}
		})
	}
}

// A member whose session has ended joins again with another.
func TestALostSessionIsReplaced(t *testing.T) {
	for _, many := range []int{1, 2, 5} {
		inBubble(t, func(t *testing.T, w *world) {
			nodes := w.startMany("n", many)
			w.becomeOneRing(time.Second, nodes)
			for _, n := range nodes {
				was := n.mem.Load().ID()
				w.service.Expire(n.session())
				time.Sleep(time.Millisecond)
				w.becomeOneRing(5*time.Second, nodes, nodes...)
				n.serves(2 * window)
				if n.mem.Load().ID() == was {
					t.Errorf("%s is still %s", n.name, was)
				}
			}
		})
	}
}

// diesBefore has a node crash when it is about to send a command.
func diesBefore(command string) func(*setup) {
	return func(c *setup) {
		client := c.store
		client.Inject(func(call memstore.Call) memstore.Fault {
			if isOf(call, command) {
				client.CutOff(true)
				_ = client.Close()
			}
			return memstore.Fault{}
		})
	}
}

func isOf(c memstore.Call, command string) bool {
	return c.Op == memstore.Append && strings.Contains(string(c.Data), `"`+command+`"`)
}

// firstDies has the first of these nodes that is about to send a command crash, and tells which one it was: nil while
// none was.
func firstDies(nodes []*node, command string) func() *node {
	var mu sync.Mutex
	var dead *node
	for _, n := range nodes {
		n.client.Inject(func(c memstore.Call) memstore.Fault {
			mu.Lock()
			defer mu.Unlock()
			if dead == nil && isOf(c, command) {
				dead = n
				n.crash()
			}
			return memstore.Fault{}
		})
	}
	return func() *node {
		mu.Lock()
		defer mu.Unlock()
		return dead
	}
}

// A joiner dies at each step of its join, or the member that is to accept it does, or the one that noticed a death
// before it tells. The living are one ring soon, and the next joiner gets in.
func TestDeathAtEachStep(t *testing.T) {
	// Each of these kills a member, and returns the living.
	deaths := map[string]func(w *world, nodes []*node) []*node{
		"a member before it accepts": func(w *world, nodes []*node) []*node {
			dead := firstDies(nodes, "accept-join-cluster")
			j := w.start("joiner")
			time.Sleep(time.Second)
			return append(without(nodes, dead()), j)
		},
		"the joiner while it waits to be accepted": func(w *world, nodes []*node) []*node {
			for _, n := range nodes {
				n.client.Lag(time.Second)
			}
			j := w.start("joiner")
			time.Sleep(500 * time.Millisecond)
			j.crash()
			return nodes
		},
		"who notices a death before it tells": func(w *world, nodes []*node) []*node {
			nodes[0].crash()
			dead := firstDies(nodes[1:], "leave-cluster")
			time.Sleep(ttl + time.Second)
			return without(nodes[1:], dead())
		},
		"a member before it takes part again": func(w *world, nodes []*node) []*node {
			dead := firstDies(nodes, "prepare-join-cluster")
			w.service.Expire(nodes[0].session())
			time.Sleep(time.Second)
			return without(nodes, dead())
		},
	}
	for _, command := range []string{"prepare-join-cluster", "notify-watchers", "attach"} {
		deaths["the joiner before it sends "+command] = func(w *world, nodes []*node) []*node {
			j := w.start("joiner", diesBefore(command))
			time.Sleep(time.Second)
			j.crash()
			return nodes
		}
	}
	for what, dies := range deaths {
		longest := time.Duration(0)
		for _, many := range []int{1, 2, 3, 6} {
			inBubble(t, func(t *testing.T, w *world) {
				nodes := w.startMany("n", many)
				w.becomeOneRing(time.Second, nodes)
				left := dies(w, nodes)
				if slices.Contains(left, nil) || len(left) > many+1 {
					t.Fatalf("%s: no member died", what)
				}
				left = append(left, w.start("next"))
				longest = max(longest, w.becomeOneRing(ttl+5*time.Second, left))
				for _, n := range left {
					n.ready(time.Second)
				}
			})
		}
		t.Logf("%s: one ring after %v at the latest", what, longest)
	}
}

// The log is cut every so many entries, and reaches back that far. A late joiner begins at the checkpoint; so
// does a member that was cut off until the entries it had not read were gone.
func TestTheLogIsCut(t *testing.T) {
	const every = 20
	inBubble(t, func(t *testing.T, w *world) {
		cut := func(c *setup) { c.CheckpointEvery = every }
		nodes := w.startMany("n", 3, cut)
		w.becomeOneRing(time.Second, nodes)
		write := func(many int, check func()) {
			for range many {
				w.append(cluster.PeerGC{By: "nobody"})
				time.Sleep(time.Millisecond)
				check()
			}
		}
		anyhow := func() {} // with a member cut off that may have been the one to write a checkpoint
		write(10*every, func() {
			batch, err := w.service.Client("test").Read(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			cut := nodes[0].mem.Load().Value().Entries() >= 2*every
			if n := len(batch.Entries); (batch.Checkpoint != nil) != cut || n > 2*every || cut && n < every {
				t.Fatalf("after %d entries the log has %d of them, a checkpoint: %v",
					nodes[0].mem.Load().Value().Entries(), n, batch.Checkpoint != nil)
			}
		})
		nodes = slices.Insert(nodes, 3, w.start("late", cut))
		w.becomeOneRing(time.Second, nodes, nodes[:3]...)

		away, was := nodes[1], nodes[1].mem.Load().ID()
		away.client.CutOff(true)
		write(5*every, anyhow)
		away.client.CutOff(false)
		w.becomeOneRing(5*time.Second, nodes, nodes...)
		if id := away.mem.Load().ID(); id != was {
			t.Errorf("it was %s, and is %s: its session had not ended", was, id)
		}

		away.client.CutOff(true)
		time.Sleep(2 * ttl)
		write(5*every, anyhow)
		away.client.CutOff(false)
		w.becomeOneRing(10*time.Second, nodes, without(nodes, away)...)
		away.ready(10 * time.Second) // a call of when it was cut off may wait for so long
	})
}

// A member that was cut off may have missed the outcome of a command. It sends the command again.
func TestAnAnswerThatWasCutOff(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		nodes := w.startMany("n", 2)
		a := nodes[0]
		a.client.Lag(time.Second)
		created := make(chan error, 1)
		go func() {
			s, err := a.mem.Load().EnsureSequencer(t.Context(), "other", cluster.Define(layout))
			if err == nil {
				_, err = s.Next(t.Context())
			}
			created <- err
		}()
		time.Sleep(time.Millisecond)
		a.client.CutOff(true)
		w.cut()
		a.client.CutOff(false)
		succeeds(t, created)
	})
}

// succeeds waits for what goes on elsewhere to end without an error.
func succeeds(t *testing.T, ended <-chan error) {
	t.Helper()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("it still waits after a minute")
	}
}

// The same of a decline of the only node ID, which a clock that stepped ahead asks for.
func TestADeclineThatWasCutOff(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a", onOneNode)
		a.ready(time.Second)
		declined := make(chan struct{}, 100)
		a.client.Inject(func(c memstore.Call) memstore.Fault {
			if isOf(c, "decline") {
				declined <- struct{}{}
			}
			return memstore.Fault{}
		})
		a.client.Lag(time.Second)
		thief := w.service.Client("thief")
		live := fmt.Sprintf("%slive/%d", a.seq.Load().fences.Prefix, a.seq.Load().State().Node)
		if _, err := thief.Commit(t.Context(), store.Txn{Then: []store.Op{store.Delete(live)}}); err != nil {
			t.Fatal(err)
		}
		<-declined
		time.Sleep(time.Millisecond)
		a.client.CutOff(true)
		w.cut()
		a.client.CutOff(false)
		time.Sleep(window)
		a.ready(10 * time.Second)
		a.serves(time.Minute)
	})
}

// A decline that never came to the log says nothing about the other node IDs: it is repeated.
func TestADeclineThatNeverCame(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a", few, func(c *setup) {
			ahead := new(wall)
			ahead.step(time.Hour)
			c.Clock = firn.NewSteadyClockFrom(0, ahead.read)
		})
		a.ready(time.Second)
		a.leave()
		other := w.start("other", few) // so that the next one gets that of a
		other.ready(time.Second)
		other.leave()
		var lost atomic.Int64
		until := time.Now().Add(7 * time.Second)
		b := w.start("b", few, func(c *setup) {
			c.store.Inject(func(call memstore.Call) memstore.Fault {
				if isOf(call, "decline") && time.Now().Before(until) {
					lost.Add(1)
					return memstore.Fault{Outcome: memstore.FailBefore}
				}
				return memstore.Fault{}
			})
		})
		b.ready(window)
		if lost.Load() == 0 {
			t.Error("b declined nothing: the test tried nothing")
		}
	})
}

// An append is in doubt, and the log is cut beyond it before it is repeated, so that its outcome stays unknown.
// That delays neither a joiner nor a caller who wants a sequencer.
func TestADoubtThatStays(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		nodes := w.startMany("n", 3)
		doubted := func(command string) memstore.Hook {
			until := time.Now().Add(7 * time.Second)
			return func(c memstore.Call) memstore.Fault {
				if isOf(c, command) && time.Now().Before(until) {
					return memstore.Fault{Outcome: memstore.FailBefore}
				}
				return memstore.Fault{}
			}
		}
		joiner := w.start("joiner", func(c *setup) { c.store.Inject(doubted("prepare-join-cluster")) })
		created := make(chan error, 1)
		nodes[0].client.Inject(doubted("create-sequencer"))
		go func() {
			_, err := nodes[0].mem.Load().EnsureSequencer(t.Context(), "other", cluster.Define(layout))
			created <- err
		}()
		for range 10 {
			time.Sleep(time.Second)
			w.cut()
		}
		w.becomeOneRing(10*time.Second, append(nodes, joiner), nodes...)
		succeeds(t, created)
	})
}

// Whatever faults the store, the sessions and the processes have: once they end, the living are one ring and have
// come to the same value, as many as there are node IDs make IDs, and none was given twice.
func TestOneRingInTheEnd(t *testing.T) {
	const most, few = 7, 4
	longest := time.Duration(0)
	for seed := range uint64(40) {
		inBubble(t, func(t *testing.T, w *world) {
			r := rand.New(rand.NewPCG(seed, 5))
			var mu sync.Mutex
			faults := true
			w.service.Inject(func(memstore.Call) memstore.Fault {
				mu.Lock()
				defer mu.Unlock()
				if !faults || r.IntN(5) > 0 {
					return memstore.Fault{}
				}
				outcomes := []memstore.Outcome{
					memstore.Answered, memstore.FailBefore, memstore.FailAfter,
					memstore.ApplyLate,
				}
				return memstore.Fault{
					Outcome: outcomes[r.IntN(4)],
					Delay:   time.Duration(r.Int64N(int64(8 * time.Second))),
				}
			})
			chance := func(n int) bool {
				mu.Lock()
				defer mu.Unlock()
				return r.IntN(n) == 0
			}
			capacity := layout.NodeIDs()
			if seed%2 == 0 {
				capacity = few
			}
			var nodes []*node
			for i := range 200 {
				if len(nodes) < most && chance(4) {
					nodes = append(nodes, w.start(fmt.Sprint("n", i), func(c *setup) {
						c.CheckpointEvery, c.definition.Nodes = 20, capacity
					}))
				}
				for _, n := range nodes {
					switch {
					case chance(100):
						n.leave()
						nodes = without(nodes, n)
						continue
					case chance(60):
						n.crash()
						nodes = without(nodes, n)
						continue
					case chance(30):
						n.client.CutOff(chance(2))
					case chance(60):
						if m := n.mem.Load(); m != nil {
							w.append(cluster.Leave{Member: m.ID()})
						}
					case chance(20):
						n.client.Lag(time.Duration(i%4) * time.Second)
					}
					_ = n.take()
				}
				time.Sleep(time.Duration(i%5) * time.Second)
			}
			mu.Lock()
			faults = false
			mu.Unlock()
			for _, n := range nodes {
				n.client.CutOff(false)
				n.client.Lag(0)
			}
			// A call under way takes up to 8 s, and a last one in doubt as long again.
			took := w.becomeOneRing(2*ttl+30*time.Second, nodes)
			t.Logf("seed %d: %d nodes, %v", seed, len(nodes), took)
			longest = max(longest, took)
			want := min(len(nodes), int(capacity))
			for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
				var refuse []error
				for _, n := range nodes {
					if err := n.take(); err != nil {
						refuse = append(refuse, fmt.Errorf("%s: %w", n.name, n.Ready()))
					}
				}
				if len(nodes)-len(refuse) == want {
					break
				}
				if time.Since(begun) > 3*window {
					t.Fatalf("seed %d: %d of %d make IDs; want %d: %v", seed, len(nodes)-len(refuse),
						len(nodes), want, refuse)
				}
			}
		})
	}
	t.Logf("one ring after %v at the latest", longest)
}

// TestManyFindTheSameDead: each takes a few out at a time and begins at another place, so that they say little twice.
func TestManyFindTheSameDead(t *testing.T) {
	const members = 200
	var v cluster.Value
	ids := make([]string, members)
	for i := range ids {
		ids[i] = fmt.Sprintf("%03d", i*37%members) // those that find the dead lie evenly between them
	}
	id := func(i int) string { return ids[i] }
	position := int64(0)
	apply := func(c cluster.Command) (r cluster.Result) {
		position++
		var out cluster.Outcome
		v, out = cluster.Apply(v, cluster.Entry{Position: position, Command: c})
		return out.Result
	}
	for i := range members {
		apply(cluster.PrepareJoin{Joiner: id(i)})
		apply(cluster.NotifyWatchers{Joiner: id(i)})
		apply(cluster.AcceptJoin{Joiner: id(i)})
	}
	const dead = 150 // the first ones; all others find all of them
	living := map[string]*player{}
	for i := dead; i < members; i++ {
		living[id(i)] = newPlayer(new(Member))
		for j := range dead {
			living[id(i)].dead[id(j)] = death{why: cluster.CauseFoundDead}
		}
	}
	said, rounds := 0, 0
	for ; v.Size() > members-dead; rounds++ {
		before := v
		for i := dead; i < members; i += (members - dead) / 5 { // five of them at once
			for _, c := range living[id(i)].removals(before, id(i)) {
				apply(c)
				said++
			}
		}
	}
	t.Logf("%d entries for %d dead, in %d rounds", said, dead, rounds)
	if said > 3*dead || rounds < dead/removeAtOnce/5 {
		t.Errorf("it took %d entries for %d dead, in %d rounds", said, dead, rounds)
	}
	for name, p := range living {
		if owed := p.removals(v, name); len(owed) > 0 || len(p.dead) > 0 {
			t.Errorf("%s still owes %v for %v", name, owed, p.dead)
		}
	}
}

// batches counts those that a member reads of its log.
type batches struct {
	store.Store
	read atomic.Int64
}

func (b *batches) Follow(ctx context.Context, after store.Position) iter.Seq2[store.Batch, error] {
	return func(yield func(store.Batch, error) bool) {
		for batch, err := range b.Store.Follow(ctx, after) {
			if b.read.Add(1); !yield(batch, err) {
				return
			}
		}
	}
}

// TestEntriesThatComeTogetherAreReplayedTogether: the first at once, and the others after a rest.
func TestEntriesThatComeTogetherAreReplayedTogether(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		counted := &batches{Store: w.service.Client("m")}
		m, err := Join(t.Context(), counted, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Leave()
		for i := range fewMembers {
			joiner := fmt.Sprint("other", i)
			if _, err := counted.Commit(t.Context(),
				store.Txn{Then: []store.Op{store.Put(pulseKey(joiner), nil)}}); err != nil {
				t.Fatal(err)
			}
			for _, c := range []cluster.Command{
				cluster.PrepareJoin{Joiner: joiner},
				cluster.NotifyWatchers{Joiner: joiner},
				cluster.AcceptJoin{Joiner: joiner},
			} {
				w.append(c)
				synctest.Wait()
			}
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if size := m.Value().Size(); size != fewMembers+1 {
			t.Fatalf("%d members", size)
		}
		before, entries := counted.read.Load(), m.Value().Entries()
		const come = 50
		for range come {
			w.append(cluster.PeerGC{By: "somebody"})
			synctest.Wait()
		}
		if now := counted.read.Load() - before; now != 1 || m.Value().Entries() != entries+1 {
			t.Errorf("at once it replayed %d entries in %d batches, want the first", m.Value().Entries()-entries, now)
		}
		time.Sleep(perMember)
		synctest.Wait()
		if now := counted.read.Load() - before; now != 2 || m.Value().Entries() != entries+come {
			t.Errorf("after a rest it has replayed %d entries in %d batches, want %d in 2",
				m.Value().Entries()-entries, now, come)
		}
	})
}

// One of those that live says in its log which node died. Nobody says it of one that left.
func TestADeathIsLogged(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var log logbook
		logs := func(c *setup) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) }
		var all []*node
		for _, name := range []string{"a", "b", "c", "d"} {
			all = append(all, w.start(name, logs))
			all[len(all)-1].ready(time.Second)
		}
		all[2].stop()
		w.becomeOneRing(time.Minute, []*node{all[0], all[1], all[3]})
		all[3].crash()
		w.becomeOneRing(time.Minute, all[:2])
		if said := log.String(); strings.Count(said, "has not left") != 1 ||
			!strings.Contains(said, "node=d member="+all[3].mem.Load().ID()) {
			t.Errorf("want one line of the node d alone:\n%s", said)
		}
	})
}
