package browser_test

import (
	"context"
	"encoding/json"
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
	*servertest.Told // nil: the log is being made
	client           *memstore.Client
	names            []string         // of the sequencers
	now              func() time.Time // for entries

	mu    sync.Mutex    // guards what follows
	made  int           // entries and members
	value cluster.Value // that the log leads to
}

// Value returns the value that the member has reached, or to which the log has led so far.
func (c *crowd) Value() cluster.Value {
	if c.Told != nil {
		return c.Told.Value()
	}
	return c.value
}

func (c *crowd) pulses() map[string]string {
	pulses := map[string]string{}
	third := time.Now().UnixMilli() / 10_000 // each member has written its pulse again since the last one
	for i, id := range c.Value().Members() {
		if i%100 == 50 { // these are dead
			continue
		}
		noise := (int64(i)*7919 + third*104729) % 100
		ms := time.Duration(noise * 1e6)
		pulses[id] = text(peer.Pulse{
			Owner: owner(id), Clock: time.Now().Add(-50 * ms), Every: 10 * time.Second,
			Vitals: peer.Vitals{
				Version:   "v1.4.0",
				Addresses: map[string]string{"admin": fmt.Sprintf("http://node-%d.example.org:9080", i)},
				Since:     began,
				Ready:     true, Given: uint64(third * 1000), Rate: 200 + float64(noise), Verdict: "agreed",
				Offset: ms/10 - 5*time.Millisecond,
				Judged: time.Now(), Left: 30*time.Second - ms, RoundTrip: time.Millisecond + ms/50,
			},
		})
	}
	return pulses
}

func text(v any) string {
	data, _ := json.Marshal(v)
	return string(data)
}

var began = time.Now().Add(-50 * time.Hour)

// hour is one in which the rate went up, and a tenth of the members was not ready for a while.
func (c *crowd) hour() map[string]string {
	hour := map[string]string{}
	now := time.Now().Truncate(time.Minute)
	members := c.Value().Members()
	for i := range 60 {
		m := peer.Minute{At: now.Add(time.Duration(i-60) * time.Minute)}
		for n, id := range members {
			node := peer.NodeMinute{
				Owner: owner(id), Ready: n%10 > 0 || i < 20 || i > 25,
				Rate: float64(100 + 2*i + n%7),
			}
			if node.Ready {
				m.Ready++
			}
			m.Members++
			m.Rate += node.Rate
			if len(members) <= 2000 { // as of package peer
				m.Nodes = append(m.Nodes, node)
			}
		}
		hour[strconv.Itoa(i)] = text(m)
	}
	return hour
}

func owner(id string) string { return fmt.Sprintf("rack-%s.example.org", id[1:4]) }

// owners are those of the node IDs of a sequencer.
func (c *crowd) owners(name string) map[string]string {
	all := map[string]string{}
	q, _ := c.Value().Sequencer(name)
	now := time.Now()
	for node, id := range q.Nodes() {
		lead := 20*time.Second + time.Duration(node%100)*100*time.Millisecond
		switch node % 37 {
		case 5:
			lead = 4 * time.Second
		case 11:
			lead = -3 * time.Second
		}
		all[fmt.Sprint("live/", node)] = fmt.Sprintf("x %d %s", now.Add(-time.Hour).UnixMilli(), owner(id))
		all[fmt.Sprint("last_reported_time/", node)] = fmt.Sprintf("%d x x", now.Add(lead).UnixMilli())
	}
	return all
}

// gather is a crowd of so many members, all attached to each of so many sequencers, whose entries are written at times.
func gather(t *testing.T, members, sequencers int, now func() time.Time) *crowd {
	t.Helper()
	service := memstore.NewService()
	c := &crowd{client: service.Client("crowd"), now: now}
	t.Cleanup(func() { c.client.Close() })
	for i := range sequencers {
		name := []string{
			"default", "orders", "invoices", "visits", "payments", "sessions", "messages", "uploads",
			"events", "tickets",
		}[i%10]
		c.names = append(c.names, name)
		layout := firn.Default
		if members > 2000 {
			layout.DatacenterBits, layout.NodeBits, layout.SequenceBits = 0, 14, 8
		}
		c.add(t, cluster.CreateSequencer{Sequencer: name, Definition: cluster.Define(layout)})
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
	told := servertest.TellOver(t, service, first)
	compute := func(prefix string, values func() map[string]string) {
		if members > 2000 { // to make so many at each look would cost more than what is tested
			values = lasting(time.Second, values)
		}
		told.Compute(prefix, values)
	}
	compute("peers/", c.pulses)
	compute("history/", c.hour)
	for _, name := range c.names {
		compute("sequencers/"+name+"/workers/", func() map[string]string { return c.owners(name) })
	}
	told.Await(c.value.Position())
	c.Told = told
	return c
}

// lasting returns the values of values, which it calls again after so long.
func lasting(long time.Duration, values func() map[string]string) func() map[string]string {
	var mu sync.Mutex
	var made time.Time
	var latest map[string]string
	return func() map[string]string {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(made) >= long {
			made, latest = time.Now(), values()
		}
		return latest
	}
}

// first is the first member, which serves.
const first = "3kq7wm5xh2rvc"

// add appends an entry, and waits until the member has read it.
func (c *crowd) add(t *testing.T, command cluster.Command) {
	t.Helper()
	if at := c.append(t, command); c.Told != nil {
		c.Await(at)
	}
}

// append appends an entry, and returns its position.
func (c *crowd) append(t *testing.T, command cluster.Command) int64 {
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
	c.value, _ = cluster.Apply(c.value, cluster.Entry{Position: int64(at), Command: command})
	return int64(at)
}

// steps are the entries by which a new member joins and attaches.
func (c *crowd) steps() []cluster.Command {
	id := first
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

// churn has members go and others come, an entry at a time, until ctx ends. It does not wait until the member has read
// them, which would cost more than all that is measured.
func (c *crowd) churn(ctx context.Context, t *testing.T, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		members := c.Value().Members()
		for _, step := range append([]cluster.Command{cluster.Leave{Member: members[1+rand.IntN(len(members)-1)]}},
			c.steps()...) {
			select {
			case <-tick.C:
				c.append(t, step)
			case <-ctx.Done():
				return
			}
		}
	}
}
