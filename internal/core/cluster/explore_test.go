package cluster

import (
	"flag"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/testenv"
)

// This file explores the cluster exhaustively: it runs Apply, Watches and Duties themselves, for up to five
// peers, through every order of everything that can happen. Each peer applies its entries as late as it likes,
// does what it owes, finds dead members, loses its patience, crashes, and comes back under a new ID; its pulse
// may end while it goes on, and its commands may be late.
//
// The promises: values reached by the same entries are equal; the members are always in one ring; no node ID of a
// sequencer has two members; no member wants a node ID that is free; no member with a
// pulse is taken out, but by a joiner that hears nothing of it; and whatever has happened, once nothing goes wrong any
// more, all live peers become members, all dead ones are gone, and no peer owes anything.

var deeper = flag.Bool("deeper", false,
	"explore more, for minutes and in 3 GB: go test -v -run Explore ./internal/core/cluster -deeper -timeout 1h")

// What is explored. Where the lag is the greatest that there is, a peer may be as far behind as it likes: no
// longer log comes about. In the others no peer can append while the slowest one is as far behind as the lag.
var (
	shallow = []scope{
		{peers: 3, lag: lag, budget: budget{crashes: 2}},
		{peers: 3, lag: lag, budget: budget{crashes: 2, lates: 1}},
		{peers: 3, lag: 3, budget: budget{losses: 1}},
		{peers: 2, lag: 3, budget: budget{crashes: 1, comebacks: 1, aborts: 1}},
		{peers: 2, lag: 3, budget: budget{crashes: 1, mistakes: 2}},
		{peers: 2, lag: 3, budget: budget{mistakes: 1}, nodes: 2},
		{peers: 2, lag: 3, budget: budget{crashes: 1}, nodes: 2},
		{peers: 2, lag: 3, budget: budget{crashes: 1, declines: 1}, nodes: 2},
		{peers: 2, lag: 3, budget: budget{lates: 1, verbs: 1}},
		{peers: 2, lag: 2, budget: budget{verbs: 2}, nodes: 2},
		{peers: 2, lag: 2, budget: budget{crashes: 1, verbs: 1}, nodes: 2, policy: true},
	}
	middling = []scope{
		{peers: 3, lag: lag, budget: budget{crashes: 2, comebacks: 1}},
		{peers: 3, lag: lag, budget: budget{crashes: 2, aborts: 2}},
		{peers: 4, lag: lag, budget: budget{crashes: 2}},
		{peers: 3, lag: 4, budget: budget{crashes: 2, comebacks: 2}},
		{peers: 3, lag: 3, budget: budget{crashes: 1, losses: 1, aborts: 1}},
		{peers: 4, lag: 3, budget: budget{crashes: 2, comebacks: 1}},
		{peers: 4, lag: 3, budget: budget{crashes: 2, aborts: 1, lates: 1}},
		{peers: 4, lag: 3, budget: budget{crashes: 1, losses: 1}},
		{peers: 5, lag: 3, budget: budget{crashes: 2}},
		{peers: 3, lag: 3, budget: budget{mistakes: 2}},
		{peers: 3, lag: 3, budget: budget{crashes: 1, lates: 1, mistakes: 1}},
		{peers: 4, lag: 3, budget: budget{crashes: 1, mistakes: 1}},
		{peers: 2, lag: 4, budget: budget{crashes: 1, comebacks: 1}, nodes: 2},
		{peers: 3, lag: 4, nodes: 2},
		{peers: 3, lag: 3, budget: budget{crashes: 1}, nodes: 2},
		{peers: 3, lag: 3, budget: budget{crashes: 1, losses: 1, verbs: 1}},
		{peers: 3, lag: 2, budget: budget{verbs: 2}, nodes: 2},
		{peers: 2, lag: 3, budget: budget{crashes: 1, comebacks: 1, verbs: 2}, nodes: 2},
		{peers: 3, lag: 2, budget: budget{crashes: 1, verbs: 1}, nodes: 2, policy: true},
		{peers: 3, lag: 3, budget: budget{crashes: 1, declines: 1}, nodes: 2},
		{peers: 3, lag: 2, budget: budget{crashes: 1}, nodes: 4},
		{peers: 2, lag: 3, budget: budget{declines: 1, verbs: 1}, nodes: 4},
	}
	deep = []scope{
		{peers: 4, lag: 8, budget: budget{crashes: 2, aborts: 1}},
		{peers: 3, lag: 5, budget: budget{crashes: 2, comebacks: 2}},
		{peers: 3, lag: 4, budget: budget{crashes: 2, comebacks: 1, aborts: 1, lates: 1}},
		{peers: 4, lag: 5, budget: budget{crashes: 2, comebacks: 1}},
		{peers: 4, lag: 4, budget: budget{crashes: 1, losses: 1}},
		{peers: 5, lag: 4, budget: budget{crashes: 3}},
		{peers: 3, lag: 5, budget: budget{crashes: 1}, nodes: 2},
		{peers: 3, lag: 3, budget: budget{crashes: 1, verbs: 2}, nodes: 2},
		{peers: 3, lag: 2, budget: budget{crashes: 1, verbs: 1}, nodes: 4},
	}
)

// TestExploreShortly is for the race detector, for mutants, and for a quick look.
func TestExploreShortly(t *testing.T) { exploreAll(t, shallow) }

func TestExplore(t *testing.T) {
	testenv.Exploration(t)
	if *deeper {
		exploreAll(t, deep)
	}
	exploreAll(t, middling)
}

func exploreAll(t *testing.T, scopes []scope) {
	t.Helper()
	var flags live
	changed := map[operation]bool{}
	for _, sc := range scopes {
		began := time.Now()
		x, wrong := explore(sc, realRules())
		t.Logf("%+v: %d worlds, %d good, %d values, %.1f s", sc, len(x.worlds), x.good, len(x.values),
			time.Since(began).Seconds())
		if wrong != nil {
			t.Fatal(wrong)
		}
		if x.held && sc.lag == lag {
			t.Errorf("%+v: the exploration is incomplete: a peer can be further behind", sc)
		}
		flags |= x.flags
		for n, k := range x.values {
			for e, to := range k.next {
				if e := entry(e << 3); to != unknown && to != number(n) {
					changed[e.op()] = true
				}
			}
		}
	}
	if flags&(evicted|collecting) != evicted|collecting {
		t.Errorf("no peer was ever evicted, or none ever collected: %x", flags)
	}
	for op := opPrepare; op <= opRelease; op++ {
		if changed[op] != (op != opGC) {
			t.Errorf("%s has an effect: %v", newEntry(op, 0, nobody).command().Name(), changed[op])
		}
	}
}

// TestExploreByAnyName explores without making worlds equal that differ in the names of their IDs, and comes to
// the same worlds. They are as many as the model formal/ring.pml has, which is not made from this code, in the same
// scopes: docs/proof.md.
func TestExploreByAnyName(t *testing.T) {
	for _, c := range []struct {
		scope  scope
		worlds int // 0: there is no such model
	}{
		{scope{peers: 2, lag: 3, budget: budget{crashes: 1, comebacks: 1, aborts: 1}}, 9_799},
		{scope{peers: 2, lag: 3, budget: budget{losses: 1}}, 3_388},
		{scope{peers: 3, lag: 3, budget: budget{crashes: 2}}, 11_538},
		{scope{peers: 3, lag: 3, budget: budget{crashes: 1, leaves: 1}}, 14_607},
		{scope{peers: 3, lag: 3, budget: budget{crashes: 1, lates: 1}}, 98_270},
		{scope{peers: 4, lag: 2, budget: budget{crashes: 1}}, 133_521},
		{scope{peers: 5, lag: 1}, 68_325},
		{scope{peers: 3, lag: 2, nodes: 2}, 0},
	} {
		named := exploration{model: model{table: newTable(realRules()), scope: c.scope}, names: true}
		if wrong := named.explore(); wrong != nil {
			t.Fatal(wrong)
		}
		x, wrong := explore(c.scope, realRules())
		if wrong != nil {
			t.Fatal(wrong)
		}
		// Both have tables of their own: the worlds are compared in one of them.
		both := exploration{model: named.model, seed: x.seed}
		for _, w := range named.worlds {
			both.add(both.canonical(w), 0)
		}
		t.Logf("%+v: %d worlds, %d by name", c.scope, len(x.worlds), len(named.worlds))
		if len(both.worlds) != len(x.worlds) {
			t.Errorf("%+v: %d worlds, but %d when named first", c.scope, len(x.worlds), len(both.worlds))
		}
		if c.worlds != 0 && len(named.worlds) != c.worlds {
			t.Errorf("%+v: %d worlds by name; formal/ring.pml and docs/proof.md have %d", c.scope,
				len(named.worlds), c.worlds)
		}
	}
}
