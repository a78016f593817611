package metrics

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/space"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/codes"
	"github.com/firn-id/firn/internal/test/servertest"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
	"github.com/firn-id/firn/store/quorum"
)

// scrapeEvery is how often a stage asks its nodes for their metrics.
const scrapeEvery = 15 * time.Second

// stage is a cluster in simulated time of which something like Prometheus asks for the metrics. Callers take IDs of
// every node.
type stage struct {
	t       *testing.T
	store   *memstore.Service
	nodes   []*staged
	scrapes int
	series  map[string][]string // the values of each series, by its name and labels
}

// staged is a node on a stage.
type staged struct {
	stage   *stage
	name    string
	client  *memstore.Client
	wall    *atomic.Int64 // how far it is off
	member  *peer.Member
	service *calls.Service
	metrics *Metrics
	quorum  atomic.Pointer[quorum.Status]
	room    atomic.Pointer[space.Room]
	dead    bool // it answers nobody
	left    bool // it has left in order
	gone    bool // and is no longer asked
}

// Status implements calls.Quorum. The machines of the quorum are those of the first nodes; how far their clocks are
// ahead is seen by the node's own.
func (n *staged) Status(context.Context) quorum.Status {
	q := *n.quorum.Load()
	q.Machines = slices.Clone(q.Machines)
	for i := range min(len(q.Machines), len(n.stage.nodes)) {
		q.Machines[i].Clock = time.Duration(n.stage.nodes[i].wall.Load() - n.wall.Load())
	}
	return q
}

// asQuorum is a node as the quorum that it sees.
type asQuorum struct {
	*servertest.Quorum
	*staged
}

func (q asQuorum) Status(ctx context.Context) quorum.Status { return q.staged.Status(ctx) }

// sequencers are those that every node of a stage is attached to. The last one has a shorter window.
var sequencers = []string{peer.DefaultSequencer, "orders", "users"}

// staging runs f with a cluster of five nodes that has run for five minutes, and returns the series.
func staging(t *testing.T, f func(s *stage)) map[string][]string {
	var series map[string][]string
	synctest.Test(t, func(t *testing.T) {
		s := &stage{t: t, store: memstore.NewService(), series: map[string][]string{}}
		for range 5 {
			s.start("v1")
		}
		s.pass(5 * time.Minute)
		f(s)
		s.end()
		series = s.series
	})
	return series
}

// end ends all nodes.
func (s *stage) end() {
	for _, n := range s.nodes {
		n.client.CutOff(false)
		if !n.left {
			n.member.Leave()
		}
		n.client.Close()
	}
}

// start adds a node.
func (s *stage) start(version string) *staged {
	s.t.Helper()
	name := fmt.Sprintf("n%d:8080", len(s.nodes)+1)
	n := &staged{
		stage: s, name: name, client: s.store.Client(name), wall: new(atomic.Int64),
		metrics: New(Build{version, "abc", "go1"}),
	}
	began := time.Now()
	clock := firn.NewSteadyClockFrom(0, func() (int64, int64) {
		return time.Now().UnixNano() + n.wall.Load(), int64(time.Since(began))
	})
	var service atomic.Pointer[calls.Service]
	m, err := peer.Join(s.t.Context(), n.client, peer.Options{Owner: name, Clock: clock, Vitals: func() peer.Vitals {
		var v peer.Vitals
		if one := service.Load(); one != nil {
			v = one.Vitals()
		}
		v.Addresses = map[string]string{"http": "http://" + name}
		return v
	}})
	if err != nil {
		s.t.Fatal(err)
	}
	for i, name := range sequencers {
		d := definition()
		d.Layout.Epoch = d.Layout.Epoch.Truncate(24 * time.Hour)
		if i == len(sequencers)-1 {
			d.Window = 9 * time.Second
		}
		if _, err := m.EnsureSequencer(s.t.Context(), name, d); err != nil {
			s.t.Fatal(err)
		}
	}
	n.quorum.Store(healthy())
	n.room.Store(&space.Room{Free: 50 << 30, Share: 0.5, Inodes: 1})
	n.member, n.service = m, calls.New(m, calls.Options{Meter: n.metrics, Quorum: asQuorum{new(servertest.Quorum), n}})
	service.Store(n.service)
	n.metrics.Watch(Node{
		Service: n.service, Member: func() *peer.Member { return m }, Window: 30 * time.Second,
		Store: func() store.Store { return n.client },
		Disks: func() map[string]space.Room {
			return map[string]space.Room{"data": *n.room.Load(), "journal": *n.room.Load()}
		},
	})
	s.nodes = append(s.nodes, n)
	return n
}

// healthy is a quorum of three machines that lacks nothing.
func healthy() *quorum.Status {
	q := servertest.ThreeMachines().State
	for i := range q.Machines {
		m := &q.Machines[i]
		m.Role, m.Err, m.Index, m.Behind, m.Sync, m.Doing = quorum.Voter, "", 120345, 0, time.Millisecond, ""
	}
	return &q
}

// machines changes what the nodes see of the quorum.
func (s *stage) machines(change func(q *quorum.Status)) {
	for _, n := range s.nodes {
		q := *n.quorum.Load()
		q.Machines = slices.Clone(q.Machines)
		change(&q)
		n.quorum.Store(&q)
	}
}

// kill has a node answer nobody from now on, and the store answer it no more.
func (s *stage) kill(nodes ...*staged) {
	for _, n := range nodes {
		n.dead = true
		n.client.CutOff(true)
	}
}

// leave stops a node in order. Nobody asks it afterwards.
func (s *stage) leave(n *staged) {
	n.service.Drain()
	n.member.Leave()
	n.dead, n.left, n.gone = true, true, true
}

// pass has time go by, in which callers take IDs and the nodes are asked for their metrics.
func (s *stage) pass(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		next := time.Now().Add(scrapeEvery)
		s.call()
		s.scrape()
		time.Sleep(time.Until(next))
		synctest.Wait()
	}
}

// call takes IDs of all nodes that live.
func (s *stage) call() {
	who, _ := (&auth.Policy{Trusted: true}).Admit("")
	var all sync.WaitGroup
	for _, n := range s.nodes {
		for _, sequencer := range sequencers {
			if n.dead {
				continue
			}
			all.Go(func() {
				ctx, cancel := context.WithTimeout(s.t.Context(), time.Second)
				defer cancel()
				began := time.Now()
				_, _, err := n.service.Next(ctx, who, sequencer)
				code := codes.OK
				if err != nil {
					code = calls.CodeOf(err)
				}
				n.metrics.Call("http", "POST /api/v1/id").Done(code, 1, time.Since(began))
			})
		}
	}
	all.Wait()
}

// scrape adds a value to each series, as Prometheus does: a series that is not there any more is stale.
func (s *stage) scrape() {
	s.t.Helper()
	now := map[string]string{}
	for _, n := range s.nodes {
		if n.gone {
			continue
		}
		at := fmt.Sprintf(`{job="firn",instance=%q`, n.name)
		now["up"+at+"}"] = "1"
		if n.dead {
			now["up"+at+"}"] = "0"
			continue
		}
		for line := range strings.Lines(own(scraped(s.t, n.metrics))) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			if i := strings.LastIndex(line, "} "); i >= 0 { // a call's name has blanks
				name, value = line[:i+1], strings.TrimSpace(line[i+2:])
			}
			name, labels, _ := strings.Cut(strings.TrimSuffix(name, "}"), "{")
			now[name+strings.TrimSuffix(at+","+labels, ",")+"}"] = value
		}
	}
	for name := range now {
		if s.series[name] == nil {
			s.series[name] = slices.Repeat([]string{"_"}, s.scrapes)
		}
	}
	for name, values := range s.series {
		value, ok := now[name]
		switch last := len(values) - 1; {
		case ok:
		case last >= 0 && values[last] != "_" && values[last] != "stale":
			value = "stale"
		default:
			value = "_"
		}
		s.series[name] = append(values, value)
	}
	s.scrapes++
}
