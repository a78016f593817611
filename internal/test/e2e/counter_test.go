//go:build unix

package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/firn-id/firn/internal/core/counter"
	"github.com/firn-id/firn/internal/test/etcdtest"
	"github.com/firn-id/firn/internal/test/proxytest"
	"github.com/firn-id/firn/internal/test/testenv"
	"github.com/firn-id/firn/store/etcdstore"
)

// callersEach ask each node for numbers of each counter, mostFor at a time at most.
const (
	callersEach = 3
	mostFor     = 5
)

// counted is what callers got of a counter.
type counted struct {
	name   string
	ledger ledger

	mu      sync.Mutex
	answers []answered
	failed  int64 // how many numbers the calls wanted that failed
}

// answered is a call that got numbers.
type answered struct {
	begun, ended time.Time
	first, last  int64
}

// ask asks a node until that is killed or end is closed.
func (c *counted) ask(t *testing.T, n *node, r *rand.Rand, end <-chan struct{}) {
	to := n.connectTo(t, c.name, &c.ledger)
	for {
		select {
		case <-end:
			return
		case <-n.exited:
			return
		case <-time.After(time.Duration(r.IntN(2_000)) * time.Microsecond):
		}
		many, begun := 1+r.IntN(mostFor), time.Now()
		err := to.many(many)
		a := answered{begun, time.Now(), to.first, to.last}
		c.mu.Lock()
		if err == nil {
			c.answers = append(c.answers, a)
		} else {
			c.failed += int64(many)
		}
		c.mu.Unlock()
		if no, ok := errors.AsType[*refused](err); ok && no.status != http.StatusServiceUnavailable {
			t.Errorf("%s: %v", n.name, err)
		}
	}
}

// strictly is the sequence to which a history in strict order is linearizable: each call gets numbers above those of
// the one before.
var strictly = porcupine.Model{
	Init: func() any { return int64(0) },
	Step: func(last, _, got any) (bool, any) {
		a := got.(answered)
		return a.first > last.(int64), a.last
	},
}

// ascend demands that a call which began after another one was answered got greater numbers, and that the history is
// linearizable.
func (c *counted) ascend(t *testing.T) {
	t.Helper()
	var history []porcupine.Operation
	for i, a := range c.answers {
		history = append(history, porcupine.Operation{
			ClientId: i, Call: a.begun.UnixNano(), Return: a.ended.UnixNano(), Output: a,
		})
	}
	if porcupine.CheckOperationsTimeout(strictly, history, time.Minute) == porcupine.Illegal {
		t.Errorf("%s: the history of %d calls is not linearizable", c.name, len(history))
	}
	byBegin := slices.SortedFunc(slices.Values(c.answers), func(a, b answered) int { return a.begun.Compare(b.begun) })
	byEnd := slices.SortedFunc(slices.Values(c.answers), func(a, b answered) int { return a.ended.Compare(b.ended) })
	greatest := answered{}
	for _, a := range byBegin {
		for ; byEnd[0].ended.Before(a.begun); byEnd = byEnd[1:] {
			if byEnd[0].last > greatest.last {
				greatest = byEnd[0]
			}
		}
		if a.first <= greatest.last {
			t.Errorf("%s: a call began %v after another one was answered with %d, and got %d", c.name,
				a.begun.Sub(greatest.ended), greatest.last, a.first)
		}
	}
}

// largest watches a counter until end is closed, and then returns how many numbers its largest block had.
func largest(t *testing.T, s *etcdstore.Store, name string, end <-chan struct{}) (size int64) {
	for {
		select {
		case <-end:
			return size
		case <-time.After(5 * time.Millisecond):
			v, _, err := counter.Read(t.Context(), s, counter.Key(name))
			if err != nil {
				t.Error(err)
				return size
			}
			size = max(size, v.Size)
		}
	}
}

// Callers ask four nodes for numbers of two counters all the time. Nodes are killed, paused, and cut off from the
// store, for less and for more than the TTL. No number comes twice; those in strict order ascend in the order of the
// calls; and no more are left out than docs/orders.md says.
func TestCountersWhileNodesFail(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	server := etcdtest.Start(t, etcdtest.Options{})
	s := logOf(t, server)
	counters := []*counted{{name: "blocks"}, {name: "strict"}, {name: "events"}} // the last are IDs with a time
	var running, watching sync.WaitGroup
	var others ledger
	end, over, births := make(chan struct{}), make(chan struct{}), 0
	proxies := map[*node]*proxytest.Proxy{}
	var nodes []*node
	birth := func() {
		births++
		p := proxytest.New(t, server.Address())
		n := serve(t, fmt.Sprint("node ", births), append([]string{"--etcd=" + p.Address()}, short...)...)
		n.ready(t, &others)
		if births == 1 {
			for _, c := range counters {
				fields := map[string]string{
					"blocks": `"kind":"counter"`, "strict": `"kind":"counter","order":"strict"`,
					"events": `"order":"strict"`,
				}[c.name]
				if _, err := n.create(c.name, fields, nil); err != nil {
					t.Fatal(err)
				}
			}
		}
		nodes, proxies[n] = append(nodes, n), p
		for i, c := range counters {
			for j := range callersEach {
				r := rand.New(rand.NewPCG(seed, uint64(100*births+10*i+j+1)))
				running.Go(func() { c.ask(t, n, r, end) })
			}
		}
	}
	for range 4 {
		birth()
	}
	var ofBlocks int64
	watching.Go(func() { ofBlocks = largest(t, s, "blocks", over) })

	kills, doubts := int64(0), int64(0)
	brief := func() time.Duration { return time.Duration(100+r.IntN(900)) * time.Millisecond }
	kill := func(n *node) {
		kills++
		n.kill()
		nodes = slices.DeleteFunc(nodes, func(other *node) bool { return other == n })
		birth()
	}
	pause := func(n *node, d time.Duration) {
		doubts++
		n.signal(syscall.SIGSTOP)
		time.Sleep(d)
		n.signal(syscall.SIGCONT)
	}
	cut := func(n *node, d time.Duration) {
		doubts++
		proxies[n].Cut(true)
		time.Sleep(d)
		proxies[n].Cut(false)
	}
	for range 2 {
		for _, fault := range []func(*node){
			kill,
			func(n *node) { pause(n, brief()) },
			func(n *node) { cut(n, brief()) },
			func(n *node) { pause(n, ttl+brief()) },
			func(n *node) { cut(n, ttl+brief()) },
		} {
			fault(nodes[r.IntN(len(nodes))])
			time.Sleep(brief() / 4)
		}
	}
	close(end)
	running.Wait()
	stops := int64(len(nodes))
	for _, n := range nodes {
		n.signal(syscall.SIGTERM)
		n.ended()
	}
	close(over)
	watching.Wait()
	for _, c := range counters {
		c.ledger.unique(t, 1_000)
		v, _, err := counter.Read(t.Context(), s, counter.Key(c.name))
		if err != nil {
			t.Fatal(err)
		}
		// Of a node that was killed, two blocks; of a write in doubt, one; and nobody knows what calls got that failed.
		block, most := ofBlocks, int64(0)
		if c.name != "blocks" {
			block = callersEach * mostFor
			c.ascend(t)
		} else {
			most = 2 * block * stops
		}
		most += c.failed + block*(2*kills+doubts)
		left := v.Last - int64(len(c.ledger.ids))
		if c.name == "events" {
			continue // which leave out the ticks between
		}
		t.Logf("%s: of %d numbers %d are left out; %d may be; blocks of at most %d; %d nodes killed, %d paused or "+
			"cut off, %d numbers in calls that failed", c.name, v.Last, left, most, block, kills, doubts, c.failed)
		if left < 0 || left > most {
			t.Errorf("%s: %d of %d numbers are left out; want at most %d", c.name, left, v.Last, most)
		}
	}
}
