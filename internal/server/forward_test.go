package server_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/cluster"
	"github.com/firn-id/firn/internal/server"
	"github.com/firn-id/firn/internal/server/auth"
	"github.com/firn-id/firn/member"
	"github.com/firn-id/firn/store/memstore"
)

// wires are a server.Forwarder between the services of one process, by URL.
type wires struct {
	services map[string]*server.Service
	asked    map[string]int
	tokens   map[string]bool
	fail     error // what all answer with; nil: IDs
}

func (w *wires) Fill(ctx context.Context, url, token, sequencer string, ids []firn.ID) error {
	w.asked[url]++
	w.tokens[token] = true
	if w.fail != nil {
		return w.fail
	}
	who, err := new(auth.Policy).Admit("")
	if err != nil {
		return err
	}
	return w.services[url].Many(server.Forwarded(ctx), who, "", sequencer, len(ids), func(b *server.Batch) error {
		n := 0
		for some := range b.All() {
			n += copy(ids[n:], some)
		}
		return nil
	})
}

// forwarding is a cluster of three nodes. One of them serves orders.
type forwarding struct {
	wires
	members []*member.Member
	nodes   []*server.Service
	holder  int
}

func startForwarding(t *testing.T, scattered bool, options ...func(*server.Options)) *forwarding {
	t.Helper()
	l := firn.Default
	l.Epoch = time.Now().Add(-time.Hour) // a bubble begins before that of the preset
	d := cluster.Define(l)
	d.Scattered = scattered
	f := &forwarding{wires: wires{services: map[string]*server.Service{}, asked: map[string]int{}, tokens: map[string]bool{}}, holder: -1}
	shared := memstore.NewService()
	for _, id := range []string{"a", "b", "c"} {
		client := shared.Client(id)
		t.Cleanup(func() { client.Close() })
		url := "http://" + id
		m, err := member.Join(t.Context(), client, member.Options{Owner: id, Vitals: func() member.Vitals {
			return member.Vitals{Addresses: map[string]string{"http": url}}
		}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Leave() })
		o := server.Options{Forwarder: f}
		for _, set := range options {
			set(&o)
		}
		s := server.New(m, o)
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
				err := n.Many(t.Context(), who, "10.0.0.1:1", "orders", 20_000, func(b *server.Batch) error {
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

// A call goes to one other node with its caller's token, and not if it was forwarded before, if nobody may forward, or if
// nobody has IDs; then its error is that of the node that was asked.
func TestForwardedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startForwarding(t, false, func(o *server.Options) { o.NoAutoAttach = true })
		if _, _, err := f.nodes[0].Next(t.Context(), anyone(t), "orders"); server.CodeOf(err) != server.Detached || len(f.asked) != 0 {
			t.Errorf("nobody serves it: %v, and %v were asked", err, f.asked)
		}
		if _, err := f.members[2].Attach(t.Context(), "orders"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		who := callersOf(t, map[string]string{"shop": "allow: [issue]"})["shop"]
		if _, by, err := f.nodes[0].Next(t.Context(), who, "orders"); err != nil || by != f.members[2].ID() || !f.tokens["shop"] {
			t.Errorf("by %q, tokens %v, %v", by, f.tokens, err)
		}
		if _, _, err := f.nodes[0].Next(server.Forwarded(t.Context()), who, "orders"); server.CodeOf(err) != server.Detached {
			t.Errorf("forwarded twice: %v", err)
		}
		alone := server.New(f.members[0], server.Options{NoAutoAttach: true})
		if _, _, err := alone.Next(t.Context(), who, "orders"); server.CodeOf(err) != server.Detached {
			t.Errorf("without a forwarder: %v", err)
		}
		asked := f.asked["http://c"]
		f.fail = errors.New("connection refused")
		for range 3 { // the second and third do not ask one that just failed
			if _, _, err := f.nodes[0].Next(t.Context(), who, "orders"); server.CodeOf(err) != server.Detached {
				t.Errorf("the other one is gone: %v", err)
			}
		}
		if n := f.asked["http://c"] - asked; n != 1 {
			t.Errorf("asked %d times; want 1", n)
		}
		time.Sleep(3 * time.Second)
		f.fail = &server.ElsewhereError{Code: server.RateLimited, Message: "too many", Retry: 2 * time.Second}
		_, _, err := f.nodes[0].Next(t.Context(), who, "orders")
		if server.CodeOf(err) != server.RateLimited || server.RetryAfter(err) != 2*time.Second {
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

// A node is ready for a sequencer if a call for its IDs gets one: from itself, from another node, or as nobody serves it yet.
func TestReadyFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := startForwarding(t, false)
		who := anyone(t)
		ready := func(want string) {
			t.Helper()
			for i, n := range f.nodes {
				err := n.ReadyFor(t.Context(), "orders")
				if got := server.CodeOf(err); err == nil && want != "" || err != nil && string(got) != want {
					t.Errorf("node %d: %v; want %q", i, err, want)
				}
				if n.ReadyFor(t.Context(), "nothing") == nil {
					t.Errorf("node %d is ready for a sequencer that there is not", i)
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
		if err := f.nodes[0].ReadyFor(t.Context(), "orders"); server.CodeOf(err) != server.Waiting {
			t.Errorf("the only one that serves it is out of reach: %v", err)
		}
		if err := f.nodes[1].ReadyFor(t.Context(), "No Name"); server.CodeOf(err) != server.BadRequest {
			t.Errorf("a wrong name: %v", err)
		}
	})
}
