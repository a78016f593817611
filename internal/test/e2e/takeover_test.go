//go:build unix

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/etcdtest"
	"github.com/firn-id/firn/internal/test/responsive"
	"github.com/firn-id/firn/internal/test/testenv"
)

// How soon a node that stands by gives IDs in the place of another.
const (
	window       = 3 * time.Second
	afterADetach = time.Second
	afterADeath  = ttl + window + 2*time.Second
)

// standby asks a node all the time, and notes since when it gives IDs.
type standby struct {
	n    *node
	end  chan struct{}
	done sync.WaitGroup

	mu    sync.Mutex
	since time.Time // when the first ID came after the latest refusal; zero while it refuses
	last  time.Time // when the latest ID came
}

func watch(t *testing.T, n *node, name string, l *ledger) *standby {
	s := &standby{n: n, end: make(chan struct{})}
	c := n.connectTo(t, name, l)
	s.done.Go(func() {
		for {
			select {
			case <-s.end:
				return
			case <-time.After(5 * time.Millisecond):
			}
			err := c.one()
			s.note(err)
			switch codeOf(err) {
			case "waiting", "detached", "not_ready":
				continue
			}
			if err != nil {
				<-s.end // it is dead
				return
			}
		}
	})
	t.Cleanup(s.finish)
	return s
}

func (s *standby) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.since = time.Time{}
		return
	}
	s.last = time.Now()
	if s.since.IsZero() {
		s.since = s.last
	}
}

func (s *standby) finish() {
	select {
	case <-s.end:
	default:
		close(s.end)
	}
	s.done.Wait()
}

// giving is since when it gives IDs.
func (s *standby) giving() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.since
}

// gave is when it gave the latest ID.
func (s *standby) gave() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// pair is a sequencer with two node IDs, and the nodes that want one.
type pair struct {
	t       *testing.T
	ledger  ledger
	watched []*standby
}

func (p *pair) add(n *node) {
	p.t.Helper()
	n.mustAttach("pair")
	p.watched = append(p.watched, watch(p.t, n, "pair", &p.ledger))
}

// holders waits until two nodes give IDs.
func (p *pair) holders() (holders []*standby) {
	p.t.Helper()
	eventually(p.t, func() error {
		holders = slices.DeleteFunc(slices.Clone(p.watched), func(s *standby) bool { return s.giving().IsZero() })
		if len(holders) != 2 {
			return fmt.Errorf("%d nodes give IDs of a sequencer for two", len(holders))
		}
		return nil
	})
	return holders
}

// takenOver waits until as many others give IDs as there were holders that ceased to, and returns how long it took from
// the time that is given.
func (p *pair) takenOver(from time.Time, ceased, holders []*standby) (took time.Duration) {
	p.t.Helper()
	eventually(p.t, func() error {
		others := 0
		took = 0
		for _, s := range p.watched {
			if at := s.giving(); !at.IsZero() && !slices.Contains(holders, s) {
				others++
				took = max(took, at.Sub(from))
			}
		}
		if others < len(ceased) {
			return errors.New("no other member takes over")
		}
		return nil
	})
	return took
}

// figures tells how long something took, and fails if that was too long, on a machine that was responsive since from.
func figures(t *testing.T, from time.Time, what string, took []time.Duration, limit time.Duration) {
	t.Helper()
	slices.Sort(took)
	for i := range took {
		took[i] = took[i].Round(time.Millisecond)
	}
	t.Logf("%s: another gave an ID after %v; half of the time within %v", what, took, took[len(took)/2])
	if late := took[len(took)-1]; late > limit {
		responsive.Errorf(t, from, "%s: another gave an ID after %v; want it within %v", what, late, limit)
	}
}

// Two nodes of eight have a node ID. When one lets go of it, or is killed, one that stands by takes over.
func TestStandbysTakeOver(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	server := etcdtest.Start(t, etcdtest.Options{})
	args := with(server, "--ttl="+ttl.String(), "--window="+window.String(), "--no-auto-attach")
	nodes := fleet(t, 8, args...)
	nodes[0].mustCreate("pair", `"nodes":2`)
	p := &pair{t: t}
	for _, n := range nodes {
		p.add(n)
	}

	var took []time.Duration
	from := time.Now()
	for range 10 {
		holders := p.holders()
		leaver, begun := holders[0], time.Now()
		if err := leaver.n.detach("pair"); err != nil {
			t.Fatal(err)
		}
		took = append(took, p.takenOver(begun, holders[:1], holders))
		leaver.n.mustAttach("pair")
	}
	figures(t, from, "a detach", took, afterADetach)

	took, from = nil, time.Now()
	for round, many := range []int{1, 1, 1, 2} {
		holders := p.holders()
		dead, begun := holders[:many], time.Now()
		for _, s := range dead {
			s.n.kill()
			s.finish()
		}
		took = append(took, p.takenOver(begun, dead, holders))
		p.watched = slices.DeleteFunc(p.watched, func(s *standby) bool { return slices.Contains(dead, s) })
		for i := range many {
			n := serve(t, fmt.Sprintf("node %d.%d", 8+round, i), args...)
			n.ready(t, new(ledger))
			p.add(n)
		}
	}
	figures(t, from, "kill -9", took, afterADeath)
	p.holders()
	p.ledger.unique(t, 100)
}
