package browser_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/test/servertest"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/memstore"
)

// crowd is a cluster of many members as one of them sees it, without the others: their entries are in a log, and their
// pulses and horizons are made up.
type crowd struct {
	servertest.Member
	client *memstore.Client
	names  []string         // of the sequencers
	now    func() time.Time // for entries

	mu   sync.Mutex // guards what follows
	made int        // entries and members
}

func (c *crowd) Pulses(context.Context) (map[string]peer.Pulse, error) {
	pulses := map[string]peer.Pulse{}
	third := time.Now().UnixMilli() / 10_000 // each member has written its pulse again since the last one
	for i, id := range c.Value().Members() {
		if i%100 == 50 { // these are dead
			continue
		}
		noise := (int64(i)*7919 + third*104729) % 100
		ms := time.Duration(noise * 1e6)
		pulses[id] = peer.Pulse{
			Owner: owner(id), Clock: time.Now().Add(-50 * ms), Every: 10 * time.Second,
			Vitals: peer.Vitals{
				Version:   "v1.4.0",
				Addresses: map[string]string{"admin": fmt.Sprintf("http://node-%d.example.org:9080", i)},
				Since:     began,
				Ready:     true, Given: uint64(third * 1000), Rate: 200 + float64(noise), Verdict: "agreed",
				Offset: ms/10 - 5*time.Millisecond,
				Judged: time.Now(), Left: 30*time.Second - ms, RoundTrip: time.Millisecond + ms/50,
			},
		}
	}
	return pulses, nil
}

var began = time.Now().Add(-50 * time.Hour)

// History is that of an hour in which the rate went up, and a tenth of the members was not ready for a while.
func (c *crowd) History(context.Context) (hour []peer.Minute, err error) {
	now := time.Now().Truncate(time.Minute)
	for i := range 60 {
		m := peer.Minute{At: now.Add(time.Duration(i-60) * time.Minute)}
		for n, id := range c.Value().Members() {
			node := peer.NodeMinute{
				Owner: owner(id), Ready: n%10 > 0 || i < 20 || i > 25,
				Rate: float64(100 + 2*i + n%7),
			}
			if node.Ready {
				m.Ready++
			}
			m.Members++
			m.Rate += node.Rate
			m.Nodes = append(m.Nodes, node)
		}
		hour = append(hour, m)
	}
	return hour, nil
}

func owner(id string) string { return fmt.Sprintf("rack-%s.example.org", id[1:4]) }

func (c *crowd) Owners(ctx context.Context, name string) (all []peer.Owner, err error) {
	q, err := c.Lookup(ctx, name)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	for node, id := range q.Nodes() {
		lead := 20*time.Second + time.Duration(node%100)*100*time.Millisecond
		switch node % 37 {
		case 5:
			lead = 4 * time.Second
		case 11:
			lead = -3 * time.Second
		}
		all = append(all,
			peer.Owner{Node: node, Live: true, Name: owner(id), Since: now.Add(-time.Hour), Horizon: now.Add(lead)})
	}
	return all, nil
}

// gather is a crowd of so many members, all attached to each of so many sequencers, whose entries are written at times.
func gather(t *testing.T, members, sequencers int, now func() time.Time) *crowd {
	t.Helper()
	c := &crowd{client: memstore.NewService().Client("crowd"), now: now}
	c.Name, c.Journal = "3kq7wm5xh2rvc", c.client
	t.Cleanup(func() { c.client.Close() })
	for i := range sequencers {
		name := []string{
			"default", "orders", "invoices", "visits", "payments", "sessions", "messages", "uploads",
			"events", "tickets",
		}[i%10]
		c.names = append(c.names, name)
		c.add(t, cluster.CreateSequencer{Sequencer: name, Definition: cluster.Define(firn.Default)})
	}
	for range members {
		c.join(t)
		if v := c.Value(); v.Position()%1000 < 13 {
			data, err := cluster.EncodeCheckpoint(v)
			if err == nil {
				err = c.client.Checkpoint(t.Context(),
					store.Checkpoint{Position: store.Position(v.Position()), Value: data})
			}
			if err == nil {
				err = c.client.Trim(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return c
}

// add appends an entry, and applies it.
func (c *crowd) add(t *testing.T, command cluster.Command) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made++
	data, err := cluster.Encode(command, c.now())
	if err != nil {
		t.Fatal(err)
	}
	at, err := c.client.Append(t.Context(), fmt.Sprint(c.made), data)
	if err != nil {
		t.Fatal(err)
	}
	v, _ := cluster.Apply(c.Value(), cluster.Entry{Position: int64(at), Command: command})
	c.SetValue(v)
}

// steps are the entries by which a new member joins and attaches.
func (c *crowd) steps() []cluster.Command {
	id := c.ID()
	if n := c.Value().Entries(); c.Value().Size() > 0 {
		id = strconv.FormatUint(uint64(n)*0x9e3779b97f4a7c15|1<<63, 36)
	}
	all := []cluster.Command{
		cluster.PrepareJoin{Joiner: id},
		cluster.NotifyWatchers{Joiner: id},
		cluster.AcceptJoin{Joiner: id},
	}
	for _, name := range c.names {
		all = append(all, cluster.Attach{Sequencer: name, Member: id})
	}
	return all
}

func (c *crowd) join(t *testing.T) {
	t.Helper()
	for _, step := range c.steps() {
		c.add(t, step)
	}
}

// churn has members go and others come, an entry at a time, until ctx ends.
func (c *crowd) churn(ctx context.Context, t *testing.T, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		members := c.Value().Members()
		for _, step := range append([]cluster.Command{cluster.Leave{Member: members[1+rand.IntN(len(members)-1)]}},
			c.steps()...) {
			select {
			case <-tick.C:
				c.add(t, step)
			case <-ctx.Done():
				return
			}
		}
	}
}
