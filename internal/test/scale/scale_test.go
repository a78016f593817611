//go:build unix

// Package scale measures how a cluster grows and shrinks: many members in one process over a
// quorum of one, or of three; and what one member costs among many that are simulated, over a quorum
// of one, each in a process of its own. It is a test, so that CI runs it small; what it prints is what it is for.
//
//	go test -v -run Scale ./internal/test/scale -members 64,256,1024 -timeout 20m
//	go test -v -run Scale ./internal/test/scale -members 64,256,1024 -timeout 20m -quorum
//	go test -v -run Simulated ./internal/test/scale -simulated 100,1000,10000 -window 30s -timeout 30m
package scale

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/test/testenv"
	"github.com/firn-id/firn/store"
)

var (
	sizes = flag.String("members", "16", "how many members, one run for each number")
	rest  = flag.Duration("rest", 0, "for how long to measure what the members cost at rest")
)

// patience is how long a phase may take. It is no claim about speed.
const patience = 5 * time.Minute

// Members join from cold, one of them dies, and then an eighth of all at once.
func TestScale(t *testing.T) {
	testenv.Slow(t)
	// A thousand members in one process hold a thousand copies of the value. That is the price of measuring
	// them in one; collecting garbage less often keeps it small.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	for text := range strings.SplitSeq(*sizes, ",") {
		members, err := strconv.Atoi(text)
		if err != nil || members < 8 {
			t.Fatalf("-members %q; want numbers of at least 8", text)
		}
		t.Run(text, func(t *testing.T) { run(t, members) })
	}
}

func run(t *testing.T, size int) {
	stores := openStores(t, size)
	entries := follow(t, stores[0])
	began, before, used := time.Now(), count(t), cpu()
	peers := make([]*living, size)
	var all sync.WaitGroup
	for i := range peers {
		peers[i] = &living{store: &mortal{Store: stores[i%len(stores)]}}
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			peers[i].Member, peers[i].err = peer.Join(ctx, peers[i].store, peer.Options{Owner: fmt.Sprint("peer ", i)})
		})
	}
	all.Wait()
	joined := time.Since(began)
	for _, p := range peers {
		if p.err != nil {
			t.Fatal(p.err)
		}
	}
	t.Cleanup(func() {
		var all sync.WaitGroup
		for _, p := range peers {
			all.Go(p.Leave)
		}
		all.Wait()
	})
	everybody := agree(t, peers, began)
	after := count(t)
	t.Logf("%d members joined in %v, and all knew it after %v; CPU %v, %d goroutines", size, round(joined),
		round(everybody), round(cpu()-used), runtime.NumGoroutine())
	entries.print(t, size)
	t.Logf("  the store per join: %s", after.since(before, float64(size)))
	if *rest > 0 {
		before = after
		time.Sleep(*rest)
		after = count(t)
		t.Logf("  at rest, per member and second: %s; %.1f watches for each",
			after.since(before, float64(size)*rest.Seconds()), after.watches/float64(size))
	}

	before = count(t)
	took, live := die(t, peers, peers[size/2:size/2+1])
	after = count(t)
	t.Logf("one died: all knew it %v after its pulse was gone; %.0f writes, %.0f reads", round(took),
		after.writes-before.writes, after.reads-before.reads)

	before = count(t)
	dying := slices.Clone(live[:size/8])
	took, live = die(t, live, dying)
	after = count(t)
	t.Logf("%d died at once: all knew it %v after their pulses were gone; %.0f writes, %.0f reads", len(dying),
		round(took), after.writes-before.writes, after.reads-before.reads)
	_ = live
}

// living is a member, and the way to the store that it can be cut off from for good.
type living struct {
	*peer.Member
	store *mortal
	err   error
}

// agree waits until all peers hold the same value, in which exactly they are members.
func agree(t *testing.T, peers []*living, since time.Time) time.Duration {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		agreed := 0
		for _, p := range peers {
			v := p.Value()
			if v.Size() == len(peers) && v.IsMember(p.ID()) {
				agreed++
			}
		}
		if agreed == len(peers) {
			return time.Since(since)
		}
		if time.Now().After(deadline) {
			t.Fatalf("only %d of %d agree; the first is at %v", agreed, len(peers), peers[0].Value().Size())
		}
	}
}

// die kills some, and waits until the others know.
func die(t *testing.T, peers, dying []*living) (time.Duration, []*living) {
	t.Helper()
	live := slices.DeleteFunc(slices.Clone(peers), func(p *living) bool { return slices.Contains(dying, p) })
	began := time.Now()
	var all sync.WaitGroup
	for _, p := range dying {
		all.Go(func() { p.store.kill() })
	}
	took := agree(t, live, began)
	all.Wait()
	return took, live
}

// mortal is a store that a member shares with the others until it is killed: its sessions end, and
// nothing that it does is heard any more.
type mortal struct {
	store.Store

	mu       sync.Mutex
	dead     bool
	sessions []store.Session
	follows  []context.CancelFunc
}

var errDead = fmt.Errorf("%w: it was killed", store.ErrUnavailable)

func (m *mortal) kill() {
	m.mu.Lock()
	m.dead = true
	sessions, follows := m.sessions, m.follows
	m.mu.Unlock()
	for _, cancel := range follows {
		cancel()
	}
	for _, s := range sessions {
		_ = s.Close(context.Background())
	}
}

func (m *mortal) alive() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return errDead
	}
	return nil
}

func (m *mortal) OpenSession(ctx context.Context, ttl time.Duration) (store.Session, error) {
	if err := m.alive(); err != nil {
		return nil, err
	}
	s, err := m.Store.OpenSession(ctx, ttl)
	if err == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.sessions = append(m.sessions, s)
	}
	return s, err
}

func (m *mortal) Append(ctx context.Context, id string, data []byte) (store.Position, error) {
	if err := m.alive(); err != nil {
		return 0, err
	}
	return m.Store.Append(ctx, id, data)
}

func (m *mortal) Follow(ctx context.Context, after store.Position) iter.Seq2[store.Batch, error] {
	ctx, cancel := context.WithCancel(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.follows = append(m.follows, cancel)
	return m.Store.Follow(ctx, after)
}

// history is what the log tells, also of entries that were dropped since.
type history struct {
	mu       sync.Mutex // guards what follows
	value    cluster.Value
	refused  int
	commands map[string]int
}

// follow counts the entries as they come.
func follow(t *testing.T, s store.Store) *history {
	h := &history{commands: map[string]int{}}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for batch := range s.Follow(ctx, 0) {
			if err := h.add(batch); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return h
}

func (h *history) add(batch store.Batch) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if batch.Checkpoint != nil {
		return fmt.Errorf("the log was cut to %d before it was read", batch.Checkpoint.Position)
	}
	for _, e := range batch.Entries {
		entry, err := cluster.Decode(int64(e.Position), e.Data)
		if err != nil {
			return err
		}
		var out cluster.Outcome
		h.value, out = cluster.Apply(h.value, entry)
		h.commands[entry.Command.Name()]++
		if out.Result == cluster.Refused {
			h.refused++
		}
	}
	return nil
}

// print tells what the joins took.
func (h *history) print(t *testing.T, size int) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	var kinds []string
	for name, n := range h.commands {
		kinds = append(kinds, fmt.Sprintf("%s %d", name, n))
	}
	slices.Sort(kinds)
	t.Logf("  %.1f entries per join: %s; %d prepares refused, %d joins aborted",
		float64(h.value.Entries())/float64(size), strings.Join(kinds, ", "), h.refused,
		h.commands[cluster.AbortJoin{}.Name()])
}

// counts are what etcd has done.
type counts struct{ writes, reads, sent, received, watches float64 }

// since tells what was done since earlier counts, for each of so many.
func (c counts) since(before counts, n float64) string {
	return fmt.Sprintf("%.2f writes, %.2f reads, %.0f bytes sent, %.0f received",
		(c.writes-before.writes)/n, (c.reads-before.reads)/n, (c.sent-before.sent)/n, (c.received-before.received)/n)
}

func count(t *testing.T) counts {
	t.Helper()
	c, err := readCounts()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// readCounts reads the counts of the store in this process.
func readCounts() (c counts, err error) {
	families, err := prometheus.DefaultGatherer.Gather()
	if err != nil {
		return c, err
	}
	wanted := map[string]*float64{
		"etcd_server_proposals_applied_total":           &c.writes,
		"etcd_mvcc_range_total":                         &c.reads,
		"etcd_network_client_grpc_sent_bytes_total":     &c.sent,
		"etcd_network_client_grpc_received_bytes_total": &c.received,
		"etcd_debugging_mvcc_watcher_total":             &c.watches,
	}
	for _, f := range families {
		if at := wanted[f.GetName()]; at != nil {
			m := f.GetMetric()[0]
			*at = m.GetCounter().GetValue() + m.GetGauge().GetValue()
			delete(wanted, f.GetName())
		}
	}
	for name := range wanted {
		err = errors.New("etcd has no metric " + name)
	}
	return c, err
}

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
