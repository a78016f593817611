package calls_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/codes"
	"github.com/firn-id/firn/internal/test/servertest"
	"github.com/firn-id/firn/store/memstore"
)

// wires are a calls.Forwarder between the services of one process, by URL.
type wires struct {
	services map[string]*calls.Service
	fail     error // what all answer with; nil: IDs
	hang     bool  // nobody answers
	old      bool  // they know of no IDs that exceed others

	mu     sync.Mutex // guards the rest
	asked  map[string]int
	tokens map[string]bool
}

func (w *wires) Fill(ctx context.Context, url, token, sequencer string, after firn.ID, ids []firn.ID) error {
	w.mu.Lock()
	w.asked[url]++
	w.tokens[token] = true
	w.mu.Unlock()
	if w.hang {
		<-ctx.Done()
		return ctx.Err()
	}
	if w.fail != nil {
		return w.fail
	}
	who, err := new(auth.Policy).Admit("")
	if err != nil {
		return err
	}
	if w.old {
		after = 0
	}
	err = w.services[url].ManyAfter(calls.Forwarded(ctx), who, "", sequencer, after, len(ids),
		func(b *calls.Batch) error {
			n := 0
			for some := range b.All() {
				n += copy(ids[n:], some)
			}
			return nil
		})
	if code := calls.CodeOf(err); err != nil && (code == codes.Clock || code == codes.BadRequest) {
		return &calls.ElsewhereError{Code: code, Message: err.Error()}
	}
	return err
}

// forwarding is a cluster of three nodes. One of them serves orders.
type forwarding struct {
	wires
	members []*peer.Member
	nodes   []*calls.Service
	holder  int
}

func startForwarding(t *testing.T, scattered bool, options ...func(*calls.Options)) *forwarding {
	t.Helper()
	l := firn.Default
	l.Epoch = time.Now().Add(-time.Hour) // a bubble begins before that of the preset
	d := cluster.Define(l)
	d.Scattered = scattered
	f := &forwarding{wires: wires{
		services: map[string]*calls.Service{}, asked: map[string]int{},
		tokens: map[string]bool{},
	}, holder: -1}
	shared := memstore.NewService()
	for _, id := range []string{"a", "b", "c"} {
		client := shared.Client(id)
		t.Cleanup(func() { client.Close() })
		url := "http://" + id
		m, err := peer.Join(t.Context(), client, peer.Options{Owner: id, Vitals: func() peer.Vitals {
			return peer.Vitals{Addresses: map[string]string{"http": url}}
		}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Leave() })
		o := calls.Options{Forwarder: f}
		for _, set := range options {
			set(&o)
		}
		s := calls.New(m, o)
		f.members, f.nodes, f.services[url] = append(f.members, m), append(f.nodes, s), s
	}
	d.Allocation = cluster.Allocation{Kind: cluster.AllocateCount, Count: 1}
	if _, err := f.members[0].Create(t.Context(), "orders", d); err != nil {
		t.Fatal(err)
	}
	return f
}

// Every node answers a call for a sequencer that one of them serves, with different IDs that ascend at each.
func TestAnyNodeAnswers(t *testing.T) {
	for _, scattered := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := startForwarding(t, scattered)
			who, seen, made := anyone(t), map[firn.ID]bool{}, map[string]int{}
			take := func(id firn.ID, by string) {
				if seen[id] {
					t.Fatalf("%d comes twice", id)
				}
				seen[id] = true
				made[by]++
			}
			for range 100 {
				for _, n := range f.nodes {
					id, by, err := n.Next(t.Context(), who, "orders")
					if err != nil {
						t.Fatal(err)
					}
					take(id, by)
				}
			}
			for _, n := range f.nodes {
				last := firn.ID(0)
				err := n.Many(t.Context(), who, "10.0.0.1:1", "orders", 20_000, func(b *calls.Batch) error {
					for ids := range b.All() {
						for _, id := range ids {
							take(id, b.By())
							if scattered {
								id = firn.Gather(id)
							}
							if id <= last {
								t.Fatalf("%d after %d", id, last)
							}
							last = id
						}
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			if len(made) != 2 || made[""] != 20_100 || len(f.asked) != 1 {
				t.Errorf("made by %v, asked %v; want a third here, the rest by one other node", made, f.asked)
			}
		})
	}
}

// A call goes to one other node with its caller's token, and not if it was forwarded before, if nobody may forward, or
// if nobody has IDs; then its error is that of the node that was asked.
func TestForwardedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startForwarding(t, false, func(o *calls.Options) { o.NoAutoAttach = true })
		if _, _, err := f.nodes[0].Next(t.Context(), anyone(t), "orders"); calls.CodeOf(err) != codes.Detached ||
			len(f.asked) != 0 {
			t.Errorf("nobody serves it: %v, and %v were asked", err, f.asked)
		}
		if _, err := f.members[2].Attach(t.Context(), "orders"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		who := callersOf(t, map[string]string{"shop": "allow: [issue]"})["shop"]
		if _, by, err := f.nodes[0].Next(t.Context(), who, "orders"); err != nil || by != f.members[2].ID() ||
			!f.tokens["shop"] {
			t.Errorf("by %q, tokens %v, %v", by, f.tokens, err)
		}
		if _, _, err := f.nodes[0].Next(calls.Forwarded(t.Context()), who,
			"orders"); calls.CodeOf(err) != codes.Detached {
			t.Errorf("forwarded twice: %v", err)
		}
		alone := calls.New(f.members[0], calls.Options{NoAutoAttach: true})
		if _, _, err := alone.Next(t.Context(), who, "orders"); calls.CodeOf(err) != codes.Detached {
			t.Errorf("without a forwarder: %v", err)
		}
		asked := f.asked["http://c"]
		f.fail = errors.New("connection refused")
		for range 3 { // the second and third do not ask one that just failed
			if _, _, err := f.nodes[0].Next(t.Context(), who, "orders"); calls.CodeOf(err) != codes.Detached {
				t.Errorf("the other one is gone: %v", err)
			}
		}
		if n := f.asked["http://c"] - asked; n != 1 {
			t.Errorf("asked %d times; want 1", n)
		}
		time.Sleep(3 * time.Second)
		f.fail = &calls.ElsewhereError{Code: codes.RateLimited, Message: "too many", Retry: 2 * time.Second}
		_, _, err := f.nodes[0].Next(t.Context(), who, "orders")
		if calls.CodeOf(err) != codes.RateLimited || calls.RetryAfter(err) != 2*time.Second {
			t.Errorf("the other one says that it is too much: %v", err)
		}
		f.fail = nil
		time.Sleep(3 * time.Second)
		if _, _, err := f.nodes[0].Next(t.Context(), who, "orders"); err != nil {
			t.Errorf("it is back: %v", err)
		}
		if answered, failed := f.nodes[0].Forwarded(); answered != 2 || failed != 2 {
			t.Errorf("%d answered, %d failed; want 2 and 2", answered, failed)
		}
	})
}

// A node is ready for a sequencer if a call for its IDs gets one: from itself, from another node, or as nobody serves
// it yet.
func TestReadyFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startForwarding(t, false)
		who := anyone(t)
		ready := func(want string) {
			t.Helper()
			for i, n := range f.nodes {
				err := n.ReadyFor(t.Context(), "orders")
				if got := calls.CodeOf(err); err == nil && want != "" || err != nil && string(got) != want {
					t.Errorf("node %d: %v; want %q", i, err, want)
				}
				if n.ReadyFor(t.Context(), "nothing") == nil {
					t.Errorf("node %d is ready for a sequencer that does not exist", i)
				}
			}
		}
		time.Sleep(time.Second) // until all have read of it
		ready("")
		if _, _, err := f.nodes[1].Next(t.Context(), who, "orders"); err != nil {
			t.Fatal(err)
		}
		ready("")
		f.fail = errors.New("connection refused")
		if _, _, err := f.nodes[0].Next(t.Context(), who, "orders"); err == nil {
			t.Error("a node that nobody answers gave an ID")
		}
		if err := f.nodes[0].ReadyFor(t.Context(), "orders"); calls.CodeOf(err) != codes.Waiting {
			t.Errorf("the only one that serves it is out of reach: %v", err)
		}
		if err := f.nodes[1].ReadyFor(t.Context(), "No Name"); calls.CodeOf(err) != codes.BadRequest {
			t.Errorf("a wrong name: %v", err)
		}
	})
}

// A node that hangs takes at most half of the calls of one that asks it, and is then left alone for a while. A caller
// that went away at once, or that the other node refuses, keeps nobody else from asking.
func TestSilentNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startForwarding(t, false, func(o *calls.Options) { o.MaxCalls = 10 })
		who := anyone(t)
		if _, _, err := f.nodes[1].Next(t.Context(), who, "orders"); err != nil {
			t.Fatal(err)
		}
		asks := func() (asked int) {
			before := f.asked["http://b"]
			_, _, _ = f.nodes[0].Next(t.Context(), who, "orders")
			return f.asked["http://b"] - before
		}
		if asks() != 1 {
			t.Fatal("the one that serves it was not asked")
		}
		for _, code := range []codes.Code{codes.RateLimited, codes.Overloaded, codes.Unauthenticated, codes.Forbidden} {
			f.fail = &calls.ElsewhereError{Code: code}
			for range 2 {
				if asks() != 1 {
					t.Errorf("%s for one caller: no other one is forwarded", code)
				}
			}
		}
		f.fail, f.hang = nil, true
		gone, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		if _, _, err := f.nodes[0].Next(gone, who, "orders"); err == nil {
			t.Error("an ID of a node that hangs")
		}
		before, began := f.asked["http://b"], time.Now()
		var callers sync.WaitGroup
		for range 8 {
			callers.Go(func() {
				if _, _, err := f.nodes[0].Next(t.Context(), who, "orders"); calls.CodeOf(err) != codes.Waiting {
					t.Errorf("an answer of a node that hangs: %v", err)
				}
			})
		}
		synctest.Wait()
		if n := f.asked["http://b"] - before; n != 5 {
			t.Errorf("%d calls of 10 that may go on wait for the other node; want 5", n)
		}
		if f.hang = false; f.nodes[0].ReadyFor(t.Context(), "orders") != nil {
			t.Error("not ready")
		}
		callers.Wait()
		if took := time.Since(began); took > 600*time.Millisecond || asks() != 0 {
			t.Errorf("after %v, it is asked again at once", took)
		}
		time.Sleep(3 * time.Second)
		if asks() != 1 {
			t.Error("it is never asked again")
		}
	})
}

// A node says of which sequencers its callers get no IDs: once calls have failed for a while, and until they don't for
// a while.
func TestFailingCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startForwarding(t, false)
		who, n := anyone(t), f.nodes[0]
		call := func() error {
			_, _, err := n.Next(t.Context(), who, "orders")
			return err
		}
		if _, _, err := f.nodes[1].Next(t.Context(), who, "orders"); err != nil { // which attaches it
			t.Fatal(err)
		}
		want := func(when string, failing ...string) {
			t.Helper()
			if got := n.Vitals().Failing; !slices.Equal(got, failing) {
				t.Errorf("%s: %q; want %q", when, got, failing)
			}
		}
		if err := call(); err != nil {
			t.Fatal(err)
		}
		f.fail = errors.New("no answer")
		for range 5 {
			if call() == nil {
				t.Fatal("an ID")
			}
			want("calls begin to fail")
			time.Sleep(time.Second)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := n.Next(gone, who, "orders"); err == nil {
			t.Fatal("an ID")
		}
		want("a caller gave up")
		if call() == nil {
			t.Fatal("an ID")
		}
		want("calls fail", "orders")
		if _, _, err := n.Next(t.Context(), who, "nobodys"); err == nil {
			t.Fatal("an ID of a sequencer that does not exist")
		}
		time.Sleep(29 * time.Second)
		want("a while ago", "orders")
		time.Sleep(2 * time.Second)
		want("long ago")
		if !n.Vitals().Forwards {
			t.Error("it does not say that it asks other nodes")
		}
	})
}

// A member that can have no node ID of a sequencer says so and asks another one. Of a sequencer that another member
// created it gets the node ID that it is to use, each time that it attaches.
func TestChosenNodeIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := firn.Default
		l.Epoch = time.Now().Add(-time.Hour)
		few, all, who := cluster.Define(l), cluster.Define(l), anyone(t)
		few.Nodes = 8
		w := wires{services: map[string]*calls.Service{}, asked: map[string]int{}, tokens: map[string]bool{}}
		shared := memstore.NewService()
		join := func(id string, chosen int64) (*peer.Member, *calls.Service) {
			client, url := shared.Client(id), "http://"+id
			t.Cleanup(func() { client.Close() })
			o := peer.Options{Vitals: func() peer.Vitals {
				return peer.Vitals{Addresses: map[string]string{"http": url}}
			}}
			if chosen > 0 {
				o.Nodes = func(string, cluster.Definition) *cluster.Range {
					return &cluster.Range{From: chosen, To: chosen}
				}
			}
			m, err := peer.Join(t.Context(), client, o)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { m.Leave() })
			w.services[url] = calls.New(m, calls.Options{Forwarder: &w})
			return m, w.services[url]
		}
		chooser, a := join("a", 900)
		creator, b := join("b", 0)
		for name, d := range map[string]cluster.Definition{"few": few, "orders": all} {
			if _, err := creator.Create(t.Context(), name, d); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second) // until all have read of it
		unfit := func(what string, err error) {
			t.Helper()
			const says = `node ID 900 of the sequencer "few"; there are 0 to 7`
			if calls.CodeOf(err) != codes.Unfit || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v; want %q", what, err, says)
			}
		}
		if err := a.ReadyFor(t.Context(), "orders"); err != nil {
			t.Errorf("not ready for a sequencer that has the node ID: %v", err)
		}
		unfit("readiness", a.ReadyFor(t.Context(), "few"))
		for range 7 {
			_, _, err := a.Next(t.Context(), who, "few")
			unfit("an ID", err)
			time.Sleep(time.Second)
		}
		if got := a.Vitals().Failing; !slices.Equal(got, []string{"few"}) {
			t.Errorf("calls for %q fail; want few", got)
		}
		if _, _, err := b.Next(t.Context(), who, "few"); err != nil { // which attaches it
			t.Fatal(err)
		}
		if _, by, err := a.Next(t.Context(), who, "few"); err != nil || by != creator.ID() {
			t.Errorf("an ID of the other node: %v, by %q; want %q", err, by, creator.ID())
		}
		if err := a.ReadyFor(t.Context(), "few"); err != nil {
			t.Errorf("not ready, though another node answers: %v", err)
		}
		for range 2 {
			id, by, err := a.Next(t.Context(), who, "orders")
			if node, _ := l.NodeID(id); err != nil || by != "" || node != 900 {
				t.Errorf("an ID of the node ID %d, by %q, %v; want 900", node, by, err)
			}
			s, ok := chooser.Sequencer("orders")
			if !ok {
				t.Fatal("it is not attached")
			}
			if err := s.Detach(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// The store tells a member's address to one call at a time, and is not asked by each where it does not answer.
func TestAddressesAreAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := servertest.Tell(t, "a", cluster.PrepareJoin{Joiner: "a"}, cluster.PrepareJoin{Joiner: "b"},
			cluster.NotifyWatchers{Joiner: "b"}, cluster.AcceptJoin{Joiner: "b"})
		var asked atomic.Int64
		answersAfter := func(d time.Duration) {
			m.Store.Inject(func(c memstore.Call) (f memstore.Fault) {
				if c.Op == memstore.Get && c.Key == "peers/b" {
					asked.Add(1)
					f.Delay = d
				}
				return f
			})
		}
		m.SetPulses(map[string]peer.Pulse{"b": {Vitals: peer.Vitals{Addresses: map[string]string{"http": "http://b"}}}})
		synctest.Wait() // the member reads the pulse once itself, as it begins to watch it
		s := calls.New(m.Member, calls.Options{})
		all := func(want int64, fails bool) {
			t.Helper()
			asked.Store(0)
			var callers sync.WaitGroup
			for range 100 {
				callers.Go(func() {
					if at, err := s.Addresses(t.Context(), "b"); (err != nil || at["http"] != "http://b") != fails {
						t.Errorf("%v, %v", at, err)
					}
				})
			}
			callers.Wait()
			if n := asked.Load(); n != want {
				t.Errorf("the store was asked %d times; want %d", n, want)
			}
		}
		answersAfter(time.Hour)
		all(1, true)
		time.Sleep(3 * time.Second)
		answersAfter(10 * time.Millisecond)
		all(1, false)
		all(0, false)
		time.Sleep(2 * time.Minute)
		all(1, false)
	})
}

// A call that is to exceed an ID of a clock that is ahead gets a greater one at once from another node, too, or is told
// how far it lies ahead. A node that does not know of such calls is waited for, and makes no IDs in vain meanwhile.
func TestAfterAnotherNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startForwarding(t, false)
		who := anyone(t)
		after := func(ms firn.ID) (took time.Duration, asked int, err error) {
			id, _, err := f.nodes[1].Next(t.Context(), who, "orders")
			if err != nil {
				t.Fatal(err)
			}
			ahead := id + ms<<(firn.Default.NodeBits+firn.Default.SequenceBits)
			began, before := time.Now(), f.asked["http://b"]
			err = f.nodes[0].ManyAfter(t.Context(), who, "", "orders", ahead, 100, func(b *calls.Batch) error {
				for ids := range b.All() {
					if ids[0] <= ahead {
						t.Errorf("%d after %d", ids[0], ahead)
					}
				}
				return nil
			})
			return time.Since(began), f.asked["http://b"] - before, err
		}
		for range 2 { // who is told so says nothing about the node
			if took, asked, err := after(3000); calls.CodeOf(err) != codes.Clock || took > 0 || asked != 1 {
				t.Errorf("3 s ahead: after %v and %d calls: %v", took, asked, err)
			}
		}
		if took, _, err := after(3600_000); calls.CodeOf(err) != codes.BadRequest || took > 0 {
			t.Errorf("an hour ahead: after %v: %v", took, err)
		}
		if took, asked, err := after(900); err != nil || took > 0 || asked != 1 {
			t.Errorf("0.9 s ahead: after %v and %d calls: %v", took, asked, err)
		}
		f.old = true
		if took, asked, err := after(3000); err != nil || took < 2*time.Second || asked > 4 {
			t.Errorf("3 s ahead, at an old node: after %v and %d calls: %v", took, asked, err)
		}
	})
}

// Of nodes that claim IDs in strict order at once, all but one ask that one, as long as it answers.
func TestStrictOrderHasNoRivals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startForwarding(t, false)
		who := anyone(t)
		if _, err := f.members[0].Create(t.Context(), "tickets", cluster.Definition{
			Kind: cluster.Counter, Order: cluster.OrderStrict,
		}); err != nil {
			t.Fatal(err)
		}
		order := []int{0, 1, 2}
		slices.SortFunc(order, func(i, j int) int { return strings.Compare(f.members[i].ID(), f.members[j].ID()) })
		least, other := order[0], order[1]
		last := firn.ID(0)
		next := func(node int, from string) {
			t.Helper()
			id, by, err := f.nodes[node].Next(t.Context(), who, "tickets")
			if err != nil || by != from || id <= last {
				t.Errorf("%d of %q after %d: %v; want one of %q", id, by, last, err, from)
			}
			last = id
		}
		for range 3 {
			next(least, "")
		}
		next(other, "") // it finds out
		for range 3 {
			next(other, f.members[least].ID())
			next(least, "")
		}
		asked := f.asked["http://"+[]string{"a", "b", "c"}[least]]
		taken, err := f.nodes[other].Take(t.Context(), who, "tickets", 10)
		if err != nil || taken != last+10 {
			t.Errorf("ten after %d: %d %v", last, taken, err)
		}
		if now := f.asked["http://"+[]string{"a", "b", "c"}[least]]; now != asked {
			t.Error("another node was asked for consecutive numbers, which it makes in pieces")
		}
		last = taken
		var ids []firn.ID
		if err := f.nodes[other].Many(t.Context(), who, "", "tickets", 100, func(b *calls.Batch) error {
			for some := range b.All() {
				ids = append(ids, some...)
			}
			return nil
		}); err != nil || len(ids) != 100 || ids[0] != last+1 || ids[99] != last+100 {
			t.Errorf("a hundred after %d: %v %v", last, ids, err)
		}
		last += 100
		for _, why := range []error{errors.New("no answer"), &calls.ElsewhereError{Code: codes.Overloaded}} {
			f.fail = why
			next(other, "")
			next(other, "")
			f.fail = nil
			time.Sleep(3 * time.Second) // it would be asked again
			next(other, "")
			next(least, "")
			next(other, "") // it finds out
			next(other, f.members[least].ID())
		}
	})
}
