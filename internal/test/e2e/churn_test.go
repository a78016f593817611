//go:build unix

package e2e

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/etcdtest"
	"github.com/firn-id/firn/internal/test/testenv"
)

var (
	churnFor  = flag.Duration("churn", 20*time.Second, "TestSequencersUnderChurn: for how long")
	churnSeed = flag.Uint64("churnseed", 0,
		"TestSequencersUnderChurn: what is done at random follows from it; 0 is any")
)

// ups is a name with the sequencers that have it, one after the other.
type ups struct {
	name        string
	definitions []string // that they have
	ledger      ledger
	// the latest may yet be destroyed, by a call that was not answered; used by the one that makes trouble
	doubt bool

	mu    sync.Mutex
	steps int   // grows when one is gone, and before the next is created: odd means that there is none
	max   int64 // the greatest ID
	floor int64 // the greatest when the last one was gone: those of the next exceed it
}

// asks is how things stand before an ID is asked for.
func (u *ups) asks() (steps int, floor int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.steps, u.floor
}

// gave notes an answer with IDs, and says what is wrong with it, from how things stood when it was asked for.
func (u *ups) gave(c *connection, steps int, floor int64) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.max = max(u.max, c.last)
	switch {
	case steps%2 == 1 && steps == u.steps:
		return fmt.Errorf("%d of %s was asked for after it had been destroyed everywhere, and came before it was "+
			"created again", c.last, u.name)
	case c.first <= floor:
		return fmt.Errorf("%d of %s is not above %d, which a former sequencer of the name gave", c.first, u.name, floor)
	}
	return nil
}

// gone notes that no ID can be made.
func (u *ups) gone() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.steps, u.floor = u.steps+1, u.max
}

// coming notes that the next one is about to be created.
func (u *ups) coming() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.steps += u.steps % 2
}

// churn is a cluster that is not left in peace.
type churn struct {
	t       *testing.T
	args    []string
	names   []*ups
	ledger  ledger // of the default sequencer
	births  int
	running sync.WaitGroup
	end     chan struct{}
	stop    func() // ends what is running

	mu    sync.Mutex // guards what follows
	nodes []*node
	count map[string]int
}

func (c *churn) tally(what string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var r *refused
	switch {
	case err == nil:
		what += ": done"
	case errors.As(err, &r):
		what += fmt.Sprintf(": %d %s", r.status, r.code)
	default:
		what += ": no answer"
	}
	c.count[what]++
}

// documented are the errors that a call may end with.
var documented = map[string][]int{
	"not_ready": {503}, "waiting": {503}, "detached": {503}, "unavailable": {503}, "overloaded": {503},
	"unknown_sequencer": {404}, "attached_again": {409}, "exists": {409},
}

// answered checks how a call to a node ended, and tells whether the node lives.
func (c *churn) answered(n *node, what string, err error) bool {
	c.tally(what, err)
	var r *refused
	switch {
	case err == nil:
		return true
	case errors.As(err, &r):
		if !slices.Contains(documented[r.code], r.status) ||
			r.status == http.StatusServiceUnavailable && r.retryAfter == "" {
			c.t.Errorf("%s: %s: %v, Retry-After %q", n.name, what, err, r.retryAfter)
		}
		return true
	}
	select {
	case <-n.exited:
		if n.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			c.t.Errorf("%s ended by itself:\n%s", n.name, n.log)
		}
	case <-time.After(patience):
		c.t.Errorf("%s lives, and did not answer: %s: %v", n.name, what, err)
	}
	return false
}

// pause waits for up to so long, and tells whether it goes on.
func (c *churn) pause(r *rand.Rand, upTo time.Duration) bool {
	select {
	case <-c.end:
		return false
	case <-time.After(time.Duration(r.Int64N(int64(upTo)))):
		return true
	}
}

// birth starts a node, and has it asked for IDs. Every other one attaches only when it is told to.
func (c *churn) birth() {
	c.t.Helper()
	args := c.args
	if c.births++; c.births%2 == 0 {
		args = append(slices.Clone(args), "--no-auto-attach")
	}
	n := serve(c.t, fmt.Sprint("node ", c.births), args...)
	n.ready(c.t, &c.ledger)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes = append(c.nodes, n)
	for _, u := range c.names {
		to, r := n.connectTo(c.t, u.name, &u.ledger), rand.New(rand.NewPCG(uint64(c.births), 0))
		c.running.Go(func() { c.ask(to, u, r) })
	}
}

// ask asks a node for IDs as long as it lives.
func (c *churn) ask(to *connection, u *ups, r *rand.Rand) {
	for c.pause(r, 10*time.Millisecond) {
		steps, floor := u.asks()
		var err error
		if r.IntN(4) == 0 {
			err = to.many(1 + r.IntN(200))
		} else {
			err = to.one()
		}
		if err == nil {
			if wrong := u.gave(to, steps, floor); wrong != nil {
				c.t.Errorf("%s: %v", to.n.name, wrong)
			}
		}
		if !c.answered(to.n, "IDs of "+u.name, err) {
			return
		}
	}
}

// any is a node that was not killed.
func (c *churn) any(r *rand.Rand) *node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nodes[r.IntN(len(c.nodes))]
}

// trouble attaches, detaches, destroys and creates.
func (c *churn) trouble(u *ups, r *rand.Rand) {
	for c.pause(r, 200*time.Millisecond) {
		switch k := r.IntN(40); {
		case k < 20:
			n := c.any(r)
			c.answered(n, "attach", n.attach(u.name))
		case k < 36:
			n := c.any(r)
			c.answered(n, "detach", n.detach(u.name))
		case k == 36:
			c.replace(u, r)
			c.rouse(u, r)
		default:
			c.destroy(u, r)
			c.pause(r, 300*time.Millisecond)
			c.create(u, r)
			c.rouse(u, r)
		}
	}
}

// destroy destroys the sequencer, through one node after the other until one answers.
func (c *churn) destroy(u *ups, r *rand.Rand) {
	doubt := u.doubt
	u.doubt = false
	for ; ; doubt = true {
		n := c.any(r)
		status, d, err := n.destroy(u.name)
		c.answered(n, fmt.Sprintf("destroy (%d)", status), err)
		switch {
		case status == http.StatusOK:
			u.gone()
			return
		case status == http.StatusAccepted && d.Until != nil:
			time.Sleep(time.Until(*d.Until))
			u.gone()
			return
		case status == http.StatusAccepted:
			return
		case status == http.StatusNotFound:
			if !doubt {
				c.t.Errorf("%s does not know %s", n.name, u.name)
			}
			return
		}
	}
}

// create creates one again, mostly with another definition.
func (c *churn) create(u *ups, r *rand.Rand) {
	u.coming()
	fields := u.any(r)
	for {
		n := c.any(r)
		status, err := n.create(u.name, fields, nil)
		c.answered(n, fmt.Sprintf("create (%d)", status), err)
		if err == nil || codeOf(err) == "exists" { // an attempt in doubt was none
			return
		}
	}
}

// any is a definition: most often the first.
func (u *ups) any(r *rand.Rand) string {
	if r.IntN(3) == 0 {
		return u.definitions[0]
	}
	return u.definitions[r.IntN(len(u.definitions))]
}

// replace creates the next one before it is known that no more IDs of the former can be made.
func (c *churn) replace(u *ups, r *rand.Rand) {
	former, fields := c.any(r), u.any(r)
	gone, answered := make(chan struct{}), false
	c.running.Go(func() {
		defer close(gone)
		status, _, err := former.destroy(u.name)
		answered = status != 0
		c.answered(former, fmt.Sprintf("destroy in haste (%d)", status), err)
	})
	for created := false; !created; {
		select {
		case <-gone:
			created = true // or it is in doubt whether there is one
			c.create(u, r)
		default:
			next := c.any(r)
			status, err := next.create(u.name, fields, nil)
			if codeOf(err) != "exists" {
				c.answered(next, fmt.Sprintf("create in haste (%d)", status), err)
			}
			created = status == http.StatusCreated
		}
	}
	<-gone
	u.doubt = !answered // it may have been sent, and come later
}

// rouse has about half of the nodes attach, of those too that don't by themselves.
func (c *churn) rouse(u *ups, r *rand.Rand) {
	c.mu.Lock()
	nodes := slices.Clone(c.nodes)
	c.mu.Unlock()
	for _, n := range nodes {
		if r.IntN(2) == 0 {
			c.answered(n, "attach", n.attach(u.name))
		}
	}
}

// kill kills a node, most often one that gives IDs of the sequencer with two node IDs.
func (c *churn) kill(r *rand.Rand) {
	c.t.Helper()
	victim := c.any(r)
	for range 10 {
		s, err := victim.sequencer("pair")
		if err != nil || s.Here.State == "attached" || r.IntN(4) == 0 {
			break
		}
		victim = c.any(r)
	}
	c.mu.Lock()
	c.nodes = slices.DeleteFunc(c.nodes, func(n *node) bool { return n == victim })
	c.mu.Unlock()
	victim.kill()
	c.tally("kill -9", nil)
}

// settled waits until every sequencer is with as many nodes as it is for, once all want it.
func (c *churn) settled(u *ups) {
	c.t.Helper()
	eventually(c.t, func() error {
		for _, n := range c.nodes {
			if err := n.attach(u.name); err != nil {
				return err
			}
		}
		s, err := c.nodes[0].sequencer(u.name)
		if err != nil {
			return err
		}
		d := definition(c.t, s.Definition)
		want := min(int(d.Capacity()), len(c.nodes))
		switch a := d.Allocation; {
		case a.Count > 0:
			want = min(want, int(a.Count))
		case a.Percent > 0:
			want = min(want, (int(a.Percent)*len(c.nodes)+99)/100)
		}
		give := 0
		for _, n := range c.nodes {
			if n.connectTo(c.t, u.name, &u.ledger).one() == nil {
				give++
			}
		}
		have := map[string]bool{}
		for _, member := range s.Nodes {
			have[member] = true
		}
		if len(have) != want || len(have)+len(s.Waiting) != len(c.nodes) || give != want {
			return fmt.Errorf("%s is for %d of %d nodes; %d have a node ID, %d give IDs, %d wait", u.name, want,
				len(c.nodes), len(have), give, len(s.Waiting))
		}
		return nil
	})
}

// finish ends the churn and demands that all is well then.
func (c *churn) finish() {
	c.t.Helper()
	c.stop()
	becomeOneRing(c.t, ttl+slack, c.nodes)
	for _, u := range c.names {
		c.settled(u)
	}
	sameValue(c.t, c.nodes)
	calls, ids := 0, 0
	for _, what := range slices.Sorted(maps.Keys(c.count)) {
		c.t.Logf("%7d  %s", c.count[what], what)
		calls += c.count[what]
	}
	for _, u := range c.names {
		c.t.Logf("%s, %d times destroyed:", u.name, (u.steps+1)/2)
		u.ledger.unique(c.t, 100)
		ids += len(u.ledger.ids)
	}
	c.t.Logf("%d IDs in %d calls", ids, calls)
}

// All nodes are asked for IDs of three sequencers all the time, while nodes attach and detach, sequencers are destroyed
// and created again, alike and different, and nodes are killed. No ID of a name comes twice, whichever sequencer has
// it; IDs of one that is created again exceed all those before; and none comes while there is no sequencer.
func TestSequencersUnderChurn(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	seed := *churnSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-churnseed %d", seed)
	server := etcdtest.Start(t, etcdtest.Options{})
	c := &churn{
		t: t, args: with(server, "--ttl="+ttl.String(), "--window="+window.String()), end: make(chan struct{}),
		count: map[string]int{},
		names: []*ups{
			{name: "wide", definitions: []string{
				`"nodes":128`, `"nodes":512`,
				`"nodes":8,"allocation":{"kind":"count","count":5}`,
			}},
			{name: "pair", definitions: []string{
				`"nodes":2`, `"nodes":1`, `"nodes":4`,
				`"nodes":2,"allocation":{"kind":"percent","percent":20}`,
			}},
			{name: "half", definitions: []string{
				`"nodes":128,"allocation":{"kind":"percent","percent":50}`,
				`"nodes":8,"allocation":{"kind":"percent","percent":50}`,
				`"nodes":128,"allocation":{"kind":"percent","percent":75}`,
			}},
		},
	}
	c.stop = sync.OnceFunc(func() {
		close(c.end)
		c.running.Wait()
	})
	defer c.stop()
	for range 8 {
		c.birth()
	}
	becomeOneRing(t, ttl+slack, c.nodes)
	for i, u := range c.names {
		c.nodes[0].mustCreate(u.name, u.definitions[0])
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		c.running.Go(func() { c.trouble(u, r) })
	}
	r := rand.New(rand.NewPCG(seed, 99))
	for begun := time.Now(); time.Since(begun) < *churnFor && !t.Failed(); {
		c.pause(r, 3*time.Second)
		many := 1 + r.IntN(4)/3
		for range many {
			c.kill(r)
		}
		c.pause(r, 3*time.Second)
		for range many {
			c.birth()
		}
	}
	c.finish()
}
