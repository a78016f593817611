//go:build linux

package scale

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/test/proxytest"
	"github.com/firn-id/firn/internal/test/testenv"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/quorum"
)

var (
	simulatedSizes  = flag.String("simulated", "50", "how many members TestSimulated has, one run for each number")
	simulatedWindow = flag.Duration("window", 3*time.Second, "the window of the members of TestSimulated")
)

// What one member of so many costs: all but one are simulated. At rest, and while one in a hundred leaves and another
// one joins, it is measured for two windows.
func TestSimulated(t *testing.T) {
	testenv.Slow(t)
	for text := range strings.SplitSeq(*simulatedSizes, ",") {
		size, err := strconv.Atoi(text)
		if err != nil || size < 8 || size > 16_000 {
			t.Fatalf("-simulated %q; want numbers of 8 to 16000", text)
		}
		t.Run(text, func(t *testing.T) { runSimulated(t, size, *simulatedWindow) })
	}
}

const (
	clientsOf = 500  // members that share a connection to the store
	atOnce    = 1000 // members that start at once: this machine runs the clients of all, too
)

func runSimulated(t *testing.T, size int, window time.Duration) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // as in TestScale
	w := told{Address: proxytest.FixedAddress(t), Dir: newDir(t), Window: window}
	if err := os.WriteFile(filepath.Join(w.Dir, "key"), []byte(quorum.NewKey()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := &report{t: t, size: size, window: window, store: spawn(t, "store", w)}
	var stores []store.Store
	for range size/clientsOf + 1 {
		s, err := w.connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		stores = append(stores, s)
	}
	create(t, stores[0])
	s := simulate(t, window, stores)

	s.await("the log is read", func(v cluster.Value) bool { return v.CountSequencers() == 1 && v.Size() == 0 })
	began, before, entries := time.Now(), r.measure(), s.entries()
	r.member = spawn(t, "member", w)
	for i := range size - 1 {
		if s.begin(nameOf(i)); i%atOnce == atOnce-1 {
			s.settled(1)
		}
	}
	s.settled(1)
	one := r.member.state("")
	for ; one.IDs == 0; one = r.member.state("") {
		time.Sleep(10 * time.Millisecond)
	}
	cold, used := time.Since(began), r.measure()
	_, peak := r.member.memory()
	r.row("cold start", "%v", round(cold))
	r.row("  CPU of the member", "%v", used.member-before.member)
	r.row("  memory of the member at most", "%.0f MiB", peak)
	r.row("  CPU of the store", "%v", used.store-before.store)
	r.row("  log entries per join", "%.1f", float64(s.entries()-entries)/float64(size))

	s.agree(r.member)
	one = r.member.state("")
	s.lateOnes()
	renewals := s.count()
	writes := r.phase("at rest", func() { time.Sleep(2 * window) }) // this is how long it is measured
	renewals, own := s.count()-renewals, r.member.state("").Renewals-one.Renewals
	// a checkpoint, a minute of the history, and renewals that are counted in one and not in the other
	if most := renewals + int(own) + size + 10; writes < float64(renewals-size) || writes > float64(most) {
		t.Errorf("%v transactions for %d renewals", writes, renewals)
	}
	r.row("  simulated renewals that were late", "%d of %d", s.lateOnes(), renewals)
	if most := uint64(time.Since(one.At)/every(window)) + 1; own == 0 || own > most {
		t.Errorf("the measured member has renewed %d times; want 1 to %d", own, most)
	}

	changes := max(1, size/100)
	r.phase("while 1 % leave and join", func() { s.churn(size, changes, 2*window) })
	s.settled(1)
	s.agree(r.member)

	one = r.member.state("")
	r.row("until a death is known, from the end of the session on", "")
	r.row("  of the member that it watches", "%v", round(s.kill(r.member, one.ID, true)))
	r.row("  of another", "%v", round(s.kill(r.member, one.ID, false)))
	s.settled(1)
	s.agree(r.member)
	r.print()
}

// create has a member create the sequencer, and leave: the cluster starts as one does after all have stopped.
func create(t *testing.T, s store.Store) {
	t.Helper()
	m, err := peer.Join(t.Context(), s, peer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Leave()
	if _, err := m.Create(t.Context(), sequencer, cluster.Define(layout())); err != nil {
		t.Fatal(err)
	}
}

// churn has so many leave, and others come, spread over a time.
func (s *simulation) churn(first, changes int, over time.Duration) {
	var all sync.WaitGroup
	defer all.Wait()
	began := time.Now()
	leaving := s.some(changes)
	for i, m := range leaving {
		time.Sleep(time.Until(began.Add(over * time.Duration(i) / time.Duration(changes))))
		all.Go(func() {
			if err := m.leave(s.life); err != nil {
				s.t.Errorf("%s leaves: %v", m.name, err)
			}
		})
		s.begin(nameOf(first + i))
	}
	time.Sleep(time.Until(began.Add(over)))
}

// kill ends a member, and returns how long it takes the measured one to know that. It fails unless who watched it has
// taken it out: the measured one, or another.
func (s *simulation) kill(member *process, id string, watched bool) time.Duration {
	s.t.Helper()
	s.mu.Lock()
	v := s.value
	dead, _ := v.Watched(id)
	if !watched {
		dead, _ = v.Watched(dead)
	}
	m, watcher := s.members[dead], id
	s.mu.Unlock()
	if !watched {
		watcher, _ = v.Watched(id)
	}
	began := time.Now()
	if err := m.die(s.life, watcher); err != nil {
		s.t.Fatal(err)
	}
	known := member.state(dead).At.Sub(began)
	s.await("a death is known", func(v cluster.Value) bool { return !v.IsMember(dead) })
	s.mu.Lock()
	defer s.mu.Unlock()
	if got, want := s.leaves[dead], (cluster.Leave{
		Member: dead, Why: cluster.CauseSessionEnded, By: watcher,
	}); got != want {
		s.t.Errorf("a member died, and %+v took it out; want %+v", got, want)
	}
	return known
}

// agree waits until the measured member has reached the value of the others, which must be the same.
func (s *simulation) agree(member *process) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		one := member.state("")
		s.mu.Lock()
		v := s.value
		s.mu.Unlock()
		if one.Position != v.Position() {
			continue
		}
		if want, err := hash(v); err != nil || one.Value != want {
			s.t.Errorf("the measured member has another value at %d, error %v", one.Position, err)
		}
		return
	}
	s.t.Error("the measured member does not follow the log")
}

// entries is how many entries the log has had.
func (s *simulation) entries() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.value.Entries()
}

// count is how many renewals were written.
func (s *simulation) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.renewals
}

// lateOnes is how many renewals came late by more than the time between two since it was last asked: with many, all is
// measured under less load than so many members are.
func (s *simulation) lateOnes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	late := s.late
	s.late = 0
	return late
}

// report is what is measured with so many members.
type report struct {
	t             *testing.T
	size          int
	window        time.Duration
	store, member *process
	rows          strings.Builder
}

// usage is what was used up to a time.
type usage struct {
	at            time.Time
	member, store time.Duration
	counts
}

func (r *report) measure() usage {
	r.t.Helper()
	u := usage{at: time.Now(), store: r.store.cpu(), counts: r.store.counts()}
	if r.member != nil {
		u.member = r.member.cpu()
	}
	return u
}

func (r *report) row(what, format string, args ...any) {
	fmt.Fprintf(&r.rows, "%s\t%s\n", what, fmt.Sprintf(format, args...))
}

// phase measures while something is done. It returns how many transactions the store has applied.
func (r *report) phase(what string, do func()) float64 {
	r.t.Helper()
	r.member.forgetPeak()
	before := r.measure()
	do()
	after := r.measure()
	took := after.at.Sub(before.at)
	seconds := took.Seconds()
	rss, peak := r.member.memory()
	writes := after.writes - before.writes
	r.row(what, "%v", round(took))
	r.row("  CPU of the member", "%.2f %% of a core", 100*(after.member-before.member).Seconds()/seconds)
	r.row("  memory of the member", "%.0f MiB, at most %.0f", rss, peak)
	r.row("  CPU of the store", "%.1f %% of a core", 100*(after.store-before.store).Seconds()/seconds)
	r.row("  transactions", "%.1f/s, %.2f per member and pulse", writes/seconds,
		writes/float64(r.size)/(took.Seconds()/every(r.window).Seconds()))
	r.row("  received by the store", "%.0f bytes/s", (after.received-before.received)/seconds)
	r.row("  sent by it", "%.0f bytes/s", (after.sent-before.sent)/seconds)
	return writes
}

func (r *report) print() {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, r.rows.String())
	_ = table.Flush()
	r.t.Logf("%d members, a window of %v\n%s", r.size, r.window, text.String())
}
