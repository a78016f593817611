//go:build unix

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/test/etcdtest"
	"github.com/firn-id/firn/internal/test/responsive"
	"github.com/firn-id/firn/internal/test/testenv"
	"github.com/firn-id/firn/store/etcdstore"
)

// The TTL that nodes are given, which this etcd grants, and how long after it the ring is closed at the latest on a
// machine that does much else meanwhile. What it takes is logged.
const (
	ttl   = 2 * time.Second
	slack = 15 * time.Second
)

// view is what a node says of its cluster.
type view struct {
	Member   string
	Position int64
	Members  []struct{ ID, Watches string }
	Joins    []struct{ Joiner, Target, Phase string }
}

func (n *node) view() (view, error) {
	var v view
	client := http.Client{Timeout: patience}
	response, err := client.Get(n.admin + "/api/v1/cluster")
	if err != nil {
		return v, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return v, fmt.Errorf("status %d", response.StatusCode)
	}
	return v, json.NewDecoder(response.Body).Decode(&v)
}

// oneRing returns what is missing so that each of these nodes shows exactly these nodes as members, in one ring, with
// nothing pending.
func oneRing(nodes []*node) ([]view, error) {
	var views []view
	var ids []string
	for _, n := range nodes {
		v, err := n.view()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", n.name, err)
		}
		views, ids = append(views, v), append(ids, v.Member)
	}
	slices.Sort(ids)
	for i, v := range views {
		watches := map[string]string{}
		var members []string
		for _, m := range v.Members {
			watches[m.ID] = m.Watches
			members = append(members, m.ID)
		}
		slices.Sort(members)
		if !slices.Equal(members, ids) || len(v.Joins) > 0 {
			return nil, fmt.Errorf("%s, %s, shows the members %v and the joins %v; there are %v", nodes[i].name,
				v.Member, members, v.Joins, ids)
		}
		at, round := v.Member, 0
		for ok := len(ids) > 1; ok && round <= len(ids); {
			if at = watches[at]; at == "" {
				break
			}
			if round++; at == v.Member {
				break
			}
		}
		if len(ids) > 1 && (round != len(ids) || at != v.Member) {
			return nil, fmt.Errorf("%s shows no ring: %v", nodes[i].name, watches)
		}
	}
	return views, nil
}

// becomeOneRing waits until these nodes are the cluster, and returns how they see it and how long it took. That must
// not be too long on a responsive machine.
func becomeOneRing(t *testing.T, within time.Duration, nodes []*node) ([]view, time.Duration) {
	t.Helper()
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		views, err := oneRing(nodes)
		took := time.Since(begun)
		if err == nil {
			if took > within {
				responsive.Errorf(t, begun, "one ring after %v; want it within %v", took, within)
			}
			return views, took
		}
		if took > max(within, patience) {
			var logs strings.Builder
			for _, n := range nodes {
				fmt.Fprintf(&logs, "\n%s:\n%s", n.name, n.log)
			}
			t.Fatalf("no ring after %v: %v%s", within, err, &logs)
		}
	}
}

// nodes are the nodes of a cluster, with load on each of them.
type nodes struct {
	t      *testing.T
	ledger *ledger
	drills drills
	binary func() (string, error)
	args   []string
	live   []*node
	loads  map[*node]*load
	births int
	since  time.Time // the latest death
}

func newNodes(t *testing.T, args ...string) *nodes {
	return &nodes{
		t: t, ledger: new(ledger), drills: drills{t, t.TempDir()}, binary: firnDrilled, args: args,
		loads: map[*node]*load{},
	}
}

// joiner starts a node, and does not wait for anything.
func (c *nodes) joiner() *node {
	c.t.Helper()
	c.births++
	return start(c.t, c.binary, fmt.Sprint("node ", c.births), c.drills.dir, c.args...)
}

// grow starts so many nodes at once, waits until they give IDs, and puts load on them.
func (c *nodes) grow(many int) {
	c.t.Helper()
	var fresh []*node
	for range many {
		fresh = append(fresh, c.joiner())
	}
	for _, n := range fresh {
		c.add(n)
	}
}

func (c *nodes) add(n *node) {
	c.t.Helper()
	n.ready(c.t, c.ledger)
	c.live = append(c.live, n)
	c.loads[n] = n.load(c.t, c.ledger, 1)
}

// kill kills nodes at once.
func (c *nodes) kill(dead ...*node) {
	c.t.Helper()
	c.since = time.Now()
	for _, n := range dead {
		_ = n.cmd.Process.Kill()
	}
	for _, n := range dead {
		n.ended()
		c.buried(n)
	}
}

// dies waits until a joiner has died by a drill.
func (c *nodes) dies(n *node) {
	c.t.Helper()
	n.ended()
	c.since = time.Now()
}

// buried notes that a node is dead.
func (c *nodes) buried(n *node) {
	c.live = slices.DeleteFunc(slices.Clone(c.live), func(l *node) bool { return l == n })
	if b := c.loads[n]; b != nil {
		b.finish()
		delete(c.loads, n)
	}
}

// victim waits until a node dies by a drill.
func (c *nodes) victim() *node {
	c.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		for _, n := range c.live {
			select {
			case <-n.exited:
				c.since = time.Now()
				c.buried(n)
				return n
			default:
			}
		}
	}
	c.t.Fatal("nobody died")
	return nil
}

// ring waits until the living are one ring, and returns how they see it. It logs how long that took, from the latest
// death on, if there was one since the last ring.
func (c *nodes) ring(why string) []view {
	c.t.Helper()
	views, took := becomeOneRing(c.t, ttl+slack, c.live)
	if !c.since.IsZero() {
		took, c.since = time.Since(c.since), time.Time{}
	}
	c.t.Logf("%s: a ring of %d after %v", why, len(c.live), took.Round(time.Millisecond))
	return views
}

// finish ends the load, and demands that no ID was given twice, and, on a machine that was responsive in the last
// minute, that no request to a node that lives failed.
func (c *nodes) finish(least int) {
	c.t.Helper()
	for _, n := range c.live {
		n.taken(c.t, c.ledger, 100)
		if refused := c.loads[n].finish(); len(refused) != 0 {
			responsive.Errorf(c.t, time.Now().Add(-time.Minute), "requests to %s failed: %v", n.name, refused)
		}
	}
	c.ledger.unique(c.t, least)
}

// Two of five nodes are killed at once, next to each other in the ring or not. The others close it, give IDs all the
// while, and two new ones get in.
func TestTwoAtOnceAreKilled(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	server := etcdtest.Start(t, etcdtest.Options{})
	c := newNodes(t, with(server, short...)...)
	c.grow(5)
	views := c.ring("started")
	for round, apart := range []int{1, 2, 4, 3} {
		// The ring from the first node on.
		at := map[string]int{}
		for i, v := range views {
			at[v.Member] = i
		}
		ring := []*node{c.live[0]}
		for id := views[0].Member; len(ring) < len(views); {
			for _, m := range views[0].Members {
				if m.ID == id {
					id = m.Watches
					break
				}
			}
			ring = append(ring, c.live[at[id]])
		}
		c.kill(ring[0], ring[apart])
		c.ring(fmt.Sprintf("killed two, %d apart in the ring", apart))
		c.grow(2)
		views = c.ring(fmt.Sprintf("round %d: two new ones", round))
	}
	c.finish(5000)
}

// All five nodes are killed at once, and five others started at once.
func TestAllAreKilled(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	server := etcdtest.Start(t, etcdtest.Options{})
	c := newNodes(t, with(server, short...)...)
	c.grow(5)
	c.ring("started")
	for _, n := range c.live {
		n.taken(t, c.ledger, 200)
	}
	begun := time.Now()
	c.kill(c.live...)
	c.grow(5)
	t.Logf("five new ones give IDs %v after the old ones were killed", time.Since(begun).Round(time.Millisecond))
	c.ring("five new ones")
	c.finish(2000)
}

// A node dies at each step of its join, or the one that is to accept it does, or the one that noticed a death before it
// tells. Each time the living are one ring again, nothing stays pending, and the next one gets in.
func TestDeathAtEachStep(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	server := etcdtest.Start(t, etcdtest.Options{})
	c := newNodes(t, with(server, short...)...)
	c.grow(4)
	c.ring("started")
	for _, command := range []string{"prepare-join-cluster", "notify-watchers", "attach"} {
		c.drills.kill(command)
		c.dies(c.joiner())
		c.ring("a joiner died before it sent " + command)
		c.grow(1)
		c.ring("one more")
	}

	goOn := c.drills.hold("accept-join-cluster")
	j := c.joiner()
	c.drills.held("accept-join-cluster")
	c.kill(j)
	goOn() // and it is accepted all the same
	c.ring("a joiner died when it was to be accepted")

	goOn = c.drills.hold("accept-join-cluster")
	c.drills.kill("peer-gc")
	j = c.joiner()
	c.drills.held("accept-join-cluster")
	c.dies(j)
	goOn()
	c.ring("a joiner died before it sent peer-gc")

	c.drills.kill("accept-join-cluster")
	j = c.joiner()
	c.victim()
	c.add(j)
	c.ring("a member died before it sent accept-join-cluster")

	c.drills.kill("leave-cluster")
	c.kill(c.live[1])
	c.victim()
	c.ring("who noticed a death died before it sent leave-cluster")
	c.grow(2)
	c.ring("two more")
	c.finish(3000)
}

// logOf opens the log that the nodes play.
func logOf(t *testing.T, server *etcdtest.Server) *etcdstore.Store {
	t.Helper()
	s, err := etcdstore.Open(etcdstore.Config{Endpoints: []string{server.Endpoint()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// A node that the log takes out while it lives joins again, under another ID. Nobody who asks it for IDs sees that: not
// at once, nor when the horizon of the node ID is reached that it had.
func TestTakenOutWhileAlive(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	const window = 5 * time.Second
	server := etcdtest.Start(t, etcdtest.Options{})
	log := logOf(t, server)
	c := newNodes(t, with(server, "--ttl=2s", "--window="+window.String())...)
	c.grow(3)
	for i, v := range c.ring("started") {
		data, err := cluster.Encode(cluster.Leave{Member: v.Member}, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := log.Append(t.Context(), fmt.Sprint("evict-", i), data); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		for {
			now, err := c.live[i].view()
			if err == nil && now.Member != v.Member && now.Position > v.Position {
				break
			}
			if time.Since(begun) > patience {
				t.Fatalf("%s is still %s: %v\n%s", c.live[i].name, now.Member, err, c.live[i].log)
			}
		}
		c.ring("taken out " + c.live[i].name)
	}
	for begun := time.Now(); time.Since(begun) < 2*window; {
		for _, n := range c.live {
			n.taken(t, c.ledger, 10)
		}
	}
	c.finish(3000)
}

// No node can read an entry. Each says so, gives no ID after its horizon, and goes on once an operator has had it
// passed over; so does one that is started later.
func TestAnEntryThatNobodyCanRead(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	const window = 5 * time.Second
	server := etcdtest.Start(t, etcdtest.Options{})
	c := newNodes(t, with(server, "--ttl=2s", "--window="+window.String())...)
	c.grow(3)
	c.ring("started")
	for _, n := range c.live {
		n.taken(t, c.ledger, 100)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	position, err := logOf(t, server).Append(ctx, "unreadable", []byte(`{"version":99,"command":"x","args":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	appended := time.Now()
	says := func(n *node) {
		t.Helper()
		eventually(t, func() error {
			for _, part := range []string{"version 99", fmt.Sprint("position=", position)} {
				if !strings.Contains(n.log.String(), part) {
					return fmt.Errorf("%s does not say %q:\n%s", n.name, part, n.log)
				}
			}
			return nil
		})
	}
	for _, n := range c.live {
		says(n)
		calls := n.connect(t, c.ledger)
		eventually(t, func() error {
			if _, refused := errors.AsType[*refused](calls.one()); !refused {
				return fmt.Errorf("%s goes on giving IDs:\n%s", n.name, n.log)
			}
			return nil
		})
		b := c.loads[n]
		b.finish()
		if late := b.lastOK.Sub(appended); late > window {
			responsive.Errorf(t, appended, "an ID of %s came %v later", n.name, late)
		}
	}
	t.Logf("all have stopped after %v", time.Since(appended).Round(time.Millisecond))
	late := c.joiner()
	says(late)
	eventually(t, func() error { // once all sessions have ended
		if out, err := late.firn("cluster", "skip", "--admin="+late.admin, fmt.Sprint(position)); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	for _, n := range append(c.live, late) {
		n.ready(t, c.ledger)
	}
	c.ledger.unique(t, 300)
}
