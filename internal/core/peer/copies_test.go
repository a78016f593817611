package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/fence"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// Go programs can't be forked, so these tests make copies of members: a snapshot is what a member knows, with its
// fences and session, and it goes on as often as a test resumes it, in simulated time.

// snapshot is a member as it was at one moment.
type snapshot struct {
	of       *node
	at       time.Time
	value    store.Position // how far it has read the log
	reserved time.Time      // the latest of its horizons
	session  store.Session
	losses   int64
	fences   map[*fence.Fence]*fence.Fence
	statuses map[string]status
	member   Member // what it knew; not all of it
	pulse    incarnation
	cutOff   bool // its copies reach no store at first
}

func (n *node) snapshot() *snapshot {
	synctest.Wait()
	m := n.mem.Load()
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.incarnation
	sn := &snapshot{
		of: n, at: time.Now(), value: store.Position(m.value.Position()),
		fences: map[*fence.Fence]*fence.Fence{}, statuses: map[string]status{},
	}
	sn.pulse.id, sn.pulse.losses, sn.pulse.joined, sn.pulse.since, sn.pulse.pulse, sn.pulse.stamps = l.id, l.losses,
		l.joined, l.since, l.pulse, l.stamps.Clone()
	sn.session, sn.losses = l.session, m.losses.Load()
	sn.member.value, sn.member.entry, sn.member.floorAt = m.value, m.entry, m.floorAt
	sn.member.mark.Store(m.mark.Load())
	for _, s := range m.registry.all() {
		st := *s.status.Load()
		sn.statuses[s.name] = st
		for _, t := range st.tenures {
			if t.fence != nil {
				sn.fences[t.fence] = t.fence.Clone(fence.Config{}, nil)
				sn.reserved = later(sn.reserved, t.fence.Horizon())
			}
		}
	}
	n.world.service.Backup() // takes the store's lock, so that for the race detector later answers come after all this
	return sn
}

// resumedAt is a store whose log is first followed from where a copy has read it. If the log ends before that, the
// copy's client would know.
type resumedAt struct {
	*memstore.Client
	value *atomic.Int64
}

func (r resumedAt) Follow(ctx context.Context, after store.Position) iter.Seq2[store.Batch, error] {
	read := store.Position(r.value.Swap(0))
	if _, err := r.Read(ctx, read); errors.Is(err, store.ErrRefused) {
		return func(yield func(store.Batch, error) bool) { yield(store.Batch{}, store.ErrRolledBack) }
	}
	return r.Client.Follow(ctx, max(after, read))
}

// resume has a copy go on, with a clock that is so far off.
func (sn *snapshot) resume(name string, off time.Duration) *node {
	w, was := sn.of.world, sn.of.mem.Load()
	n := &node{
		world: w, name: name, client: w.service.Client(name), wall: new(wall), done: make(chan struct{}),
		cancel: func() {},
	}
	n.wall.step(off)
	n.client.CutOff(sn.cutOff)
	close(n.done)
	options := was.options
	options.Logger = options.Logger.With("copy", name)
	options.Journal, options.Clock = nil, firn.NewSteadyClockFrom(0, n.wall.read)
	living, stop := context.WithCancel(context.Background())
	serving, release := context.WithCancelCause(context.Background())
	at := resumedAt{n.client, new(atomic.Int64)}
	at.value.Store(int64(sn.value))
	m := &Member{
		store: at, options: options, log: options.Logger,
		troubles: troubles{log: options.Logger, last: map[string]time.Time{}},
		serving:  serving, release: release, stop: stop, done: make(chan struct{}), wake: make(chan struct{}, 1),
		broken:  make(chan error, 1),
		keeper:  keeper{writing: make(lock, 1), soon: make(chan struct{}, 1), windows: map[time.Duration]bool{}},
		changed: make(chan struct{}), outcomes: map[string]chan<- outcome{},
		registry: registry{sequencers: map[string]*Sequencer{}},
		clock:    firn.NewCoarseClock(options.Clock), lookups: newLookups(),
		value: sn.member.value, entry: sn.member.entry, hasJoined: true, floorAt: sn.member.floorAt,
	}
	m.judge = judge{others: m, clock: options.Clock, judging: make(lock, 1)}
	p := newPlayer(m)
	p.started, p.ids = true, []string{sn.pulse.id}
	m.mark.Store(sn.member.mark.Load())
	m.losses.Store(sn.losses)
	session := n.client.Copy(sn.session)
	l := &incarnation{
		id: sn.pulse.id, session: session, holder: fence.NewHolder(sn.pulse.id), losses: sn.pulse.losses,
		joined: sn.pulse.joined, since: sn.pulse.since, pulse: sn.pulse.pulse, stamps: sn.pulse.stamps.Clone(),
	}
	m.incarnation = l
	for name, st := range sn.statuses {
		v, _ := sn.member.value.Sequencer(name)
		s := m.newSequencer(name, v)
		config := s.fences
		config.Holder = l.holder
		st.changed = make(chan struct{})
		if st.granted.incarnation != nil {
			st.granted.incarnation = l
		}
		for i, t := range st.tenures {
			if t.fence == nil {
				continue
			}
			st.tenures[i].fence = sn.fences[t.fence].Clone(config, session)
			if t.generator != nil {
				g, err := s.generate(st.tenures[i], time.Time{})
				if err != nil {
					w.t.Fatal(err)
				}
				st.tenures[i].generator = g
				if st.generator == t.generator {
					st.generator = g
				}
			}
		}
		s.status.Store(&st)
		s.update(func(*status) {})
		m.registry.sequencers[name] = s
		if name == DefaultSequencer {
			n.seq.Store(s)
		}
	}
	m.registry.show()
	m.store = nil // run opens it, and sequencers run only then
	for _, s := range m.registry.sequencers {
		m.registry.serving.Go(func() {
			for _, err := m.opened(); err != nil; _, err = m.opened() {
				time.Sleep(time.Microsecond)
			}
			s.run(m.serving)
		})
	}
	n.mem.Store(m)
	go p.run(living, func(context.Context) (store.Store, error) { return at, nil })
	w.t.Cleanup(func() {
		n.stop()
		n.client.Close()
	})
	return n
}

// copies is how often it has found out that there may be a copy of it.
func (n *node) copies() uint64 { return n.mem.Load().Stats().Copies }

// unchecked is without a journal: what two copies write down is no run of the model.
func unchecked(c *setup) { c.Journal = io.Discard }

// side takes IDs of nodes in turn for so long. Those that come twice must lie before an instant.
func side(t *testing.T, d time.Duration, before time.Time, given map[firn.ID]bool, nodes ...*node) (twice int) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		for _, n := range nodes {
			id, err := n.Next(t.Context())
			switch at, _ := layout.Time(id); {
			case err != nil && !errors.Is(err, ErrNotReady):
				t.Fatalf("%s: %v", n.name, err)
			case err == nil && given[id] && !at.Before(before):
				t.Fatalf("%s gave %d of %v, which comes twice; %v was reserved", n.name, id, at, before)
			case err == nil && given[id]:
				twice++
			case err == nil:
				given[id] = true
			}
		}
	}
	return twice
}

// A member is copied while it runs. One of the two goes on, as if nothing had happened; the other one finds out at its
// next renewal, gives no more IDs of what it held, and becomes a new member under a new ID and session.
func TestAMemberIsCopied(t *testing.T) {
	for _, detached := range []bool{false, true} {
		inBubble(t, func(t *testing.T, w *world) {
			a, b := w.start("a", unchecked), w.start("b")
			a.ready(time.Second)
			b.ready(time.Second)
			if detached { // only its pulse tells
				if err := a.seq.Load().Detach(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Second)
			id, other := a.id(), b.id()
			sn := a.snapshot()
			twin := sn.resume("twin", 0)
			given := map[firn.ID]bool{}
			twice := side(t, 10*window, sn.reserved, given, a, b, twin)
			if twice == 0 && !detached {
				t.Error("no ID came twice: this is no copy")
			}
			if a.copies()+twin.copies() != 1 {
				t.Errorf("%d and %d of the copies found out, want one", a.copies(), twin.copies())
			}
			winner, loser := a, twin
			if a.copies() > 0 {
				winner, loser = twin, a
			}
			if winner.id() != id || winner.mem.Load().Stats().Rejoins != 0 || b.id() != other {
				t.Errorf("the winner was %s and is %s after %d rejoins; b was %s and is %s", id, winner.id(),
					winner.mem.Load().Stats().Rejoins, other, b.id())
			}
			if loser.id() == id || !w.value().IsMember(loser.id()) || !w.value().IsMember(id) {
				t.Errorf("the loser was %s and is %s; members are %v", id, loser.id(), w.value().Members())
			}
			if !detached {
				one, _ := winner.NodeID()
				two, ok := loser.NodeID()
				if one == two || !ok {
					t.Errorf("both have the node ID %d", one)
				}
			}
			if at := loser.mem.Load().Vitals().CopiedAt; at.IsZero() || !winner.mem.Load().Vitals().CopiedAt.IsZero() {
				t.Errorf("the loser tells of %v, the winner of %v", at, winner.mem.Load().Vitals().CopiedAt)
			}
		})
	}
}

// A copy finds out within a third of the window.
func TestACopyFindsOutAtItsNextRenewal(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a", unchecked)
		a.ready(time.Second)
		twin := a.snapshot().resume("twin", 0)
		for began := time.Now(); a.copies()+twin.copies() == 0; time.Sleep(100 * time.Millisecond) {
			if time.Since(began) > window/3+time.Second {
				t.Fatal("nobody has found out")
			}
		}
	})
}

// A member runs on for minutes, ends, and is set back to a snapshot, as a virtual machine is: with and without its
// clock.
func TestAMemberIsSetBack(t *testing.T) {
	for _, clock := range []bool{false, true} {
		inBubble(t, func(t *testing.T, w *world) {
			a, b := w.start("a", unchecked), w.start("b")
			a.ready(time.Second)
			b.ready(time.Second)
			time.Sleep(time.Second)
			sn := a.snapshot()
			given := map[firn.ID]bool{}
			side(t, 2*time.Minute, time.Time{}, given, a, b)
			a.client.CutOff(true) // it ends
			off := time.Duration(0)
			if clock {
				off = time.Until(sn.at)
			}
			sn.cutOff = true // so that it has not found out before its first ID
			twin := sn.resume("twin", off)
			twice := side(t, time.Second, sn.reserved, given, twin, b)
			twin.client.CutOff(false)
			if clock != (twice > 0) {
				t.Errorf("with the clock set back: %v; %d IDs came twice", clock, twice)
			}
			side(t, 2*time.Minute, sn.reserved, given, twin, b)
			if twin.copies() != 1 || twin.id() == sn.pulse.id || !w.value().IsMember(twin.id()) {
				t.Errorf("it has found out %d times, and is %s, which was %s", twin.copies(), twin.id(), sn.pulse.id)
			}
		})
	}
}

// A copy whose session has ended by its own reckoning, as it was away for long, does not end that of its twin.
func TestACopyThatWasAwayEndsNoSession(t *testing.T) {
	for range 10 { // whether it would end it is a matter of who is faster
		inBubble(t, func(t *testing.T, w *world) {
			a, b := w.start("a", unchecked), w.start("b")
			a.ready(time.Second)
			b.ready(time.Second)
			sn := a.snapshot()
			sn.cutOff = true
			twin := sn.resume("twin", 0)
			given := map[firn.ID]bool{}
			side(t, 2*ttl, sn.reserved, given, a, b, twin)
			twin.client.CutOff(false)
			side(t, 4*window, sn.reserved, given, a, b, twin)
			if a.copies() != 0 || a.id() != sn.pulse.id || a.mem.Load().Stats().Rejoins != 0 {
				t.Errorf("who stayed is %s after %d rejoins, and was %s", a.id(),
					a.mem.Load().Stats().Rejoins, sn.pulse.id)
			}
			if twin.copies() == 0 || twin.Ready() != nil {
				t.Errorf("who was away has found out %d times; %v", twin.copies(), twin.Ready())
			}
		})
	}
}

// When the system tells that it resumed from a snapshot, nothing more is given of what was reserved, and the member
// starts over without waiting for a conflict. Its session and member ID are left to a copy that there may be.
func TestTheSystemResumes(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		resumed := make(chan struct{})
		a := w.start("a", func(c *setup) { c.Resumed = resumed })
		b := w.start("b")
		a.ready(time.Second)
		b.ready(time.Second)
		id, node := a.id(), a.seq.Load().State().Node
		held := a.session()
		a.client.Inject(func(c memstore.Call) memstore.Fault { // it can't have anything new yet
			for _, op := range c.Txn.Then {
				if strings.HasPrefix(op.Key, fencePrefix(DefaultSequencer)) &&
					strings.HasSuffix(op.Key, fmt.Sprint("/", node)) {
					t.Errorf("it writes %s, which is a copy's, if there is one", op.Key)
				}
			}
			return memstore.Fault{Delay: 50 * time.Millisecond}
		})
		resumed <- struct{}{}
		synctest.Wait()
		if _, err := a.Next(t.Context()); !errors.Is(err, ErrNotReady) || !errors.Is(err, ErrCopied) {
			t.Errorf("at once: %v, want ErrCopied", err)
		}
		a.ready(5 * time.Second)
		if now := a.seq.Load().State().Node; a.id() == id || now == node {
			t.Errorf("it is %s with the node ID %d, and was %s with %d", a.id(), now, id, node)
		}
		select {
		case <-held.Done():
		default:
			t.Error("the former session is still renewed")
		}
		for _, c := range w.leaves() {
			if c.Why != cluster.CauseFoundDead { // it is found dead where it does not answer
				t.Errorf("somebody has it leave: %v", c)
			}
		}
		time.Sleep(2 * ttl) // nobody renews it
		if v := w.value(); v.IsMember(id) || !v.IsMember(a.id()) {
			t.Errorf("members are %v", v.Members())
		}
		a.serves(time.Minute)
	})
}

// A member that is a copy says nothing under the ID that it leaves to its twin, also if it ends before it has another
// one.
func TestACopyThatLeaves(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		resumed := make(chan struct{})
		a := w.start("a", func(c *setup) { c.Resumed = resumed })
		b := w.start("b")
		a.ready(time.Second)
		b.ready(time.Second)
		id := a.id()
		a.client.Inject(func(c memstore.Call) memstore.Fault {
			if c.Op == memstore.Open {
				return memstore.Fault{Outcome: memstore.FailBefore}
			}
			if c.Op == memstore.End || c.Op == memstore.Append {
				t.Errorf("it sends %+v", c)
			}
			return memstore.Fault{}
		})
		resumed <- struct{}{}
		synctest.Wait()
		a.stop()
		if v := w.value(); !v.IsMember(id) {
			t.Error("it has left under the ID of its twin")
		}
	})
}

// What shows that a copy goes on may concern an incarnation before the current one, which the copy may have, too. The
// member leaves both.
func TestACopyOfAFormerIncarnation(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start("a")
		a.ready(time.Second)
		m := a.mem.Load()
		_, former, _ := m.look()
		w.service.Expire(former.session)
		time.Sleep(5 * time.Second)
		a.ready(5 * time.Second)
		_, current, _ := m.look()
		if current == former {
			t.Fatal("it has not joined again")
		}
		m.startAnew(former, errTwin)
		if !current.over() || !current.copied.Load() {
			t.Error("it goes on under the current session")
		}
		a.ready(ttl)
		if id := a.id(); id == former.id || id == current.id || a.copies() != 1 {
			t.Errorf("it is %s after %d copies, and was %s and %s", id, a.copies(), former.id, current.id)
		}
	})
}
