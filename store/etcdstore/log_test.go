//go:build unix

package etcdstore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/firn-id/firn/internal/test/etcdtest"
	"github.com/firn-id/firn/internal/test/proxytest"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/etcdstore"
)

func mustAppend(t *testing.T, s store.Store, id string) store.Position {
	t.Helper()
	position, err := s.Append(t.Context(), id, []byte("data of "+id))
	if err != nil {
		t.Fatalf("Append(%s): %v", id, err)
	}
	return position
}

func mustCut(t *testing.T, s store.Store, at store.Position, value string) {
	t.Helper()
	err := s.Checkpoint(t.Context(), store.Checkpoint{Position: at, Value: []byte(value)})
	if err = errors.Join(err, s.Trim(t.Context())); err != nil {
		t.Fatalf("Checkpoint, Trim: %v", err)
	}
}

// followed is what a Follow has yielded: IDs, and "@position" for a checkpoint.
type followed struct {
	stop  context.CancelFunc
	ended chan struct{}

	mu      sync.Mutex // guards what follows
	got     []string
	err     error
	changed chan struct{} // closed when there is more
}

func follow(t *testing.T, s store.Store, after store.Position) *followed {
	ctx, stop := context.WithCancel(t.Context())
	f := &followed{stop: stop, ended: make(chan struct{}), changed: make(chan struct{})}
	go func() {
		defer close(f.ended)
		for batch, err := range s.Follow(ctx, after) {
			f.add(batch, err)
		}
	}()
	t.Cleanup(func() {
		stop()
		<-f.ended
	})
	return f
}

func (f *followed) add(batch store.Batch, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
	if batch.Checkpoint != nil {
		f.got = append(f.got, fmt.Sprintf("@%d", batch.Checkpoint.Position))
	}
	for _, e := range batch.Entries {
		f.got = append(f.got, e.ID)
	}
	close(f.changed)
	f.changed = make(chan struct{})
}

// until waits for the entry and returns all there is by then.
func (f *followed) until(t *testing.T, id string) []string {
	t.Helper()
	deadline := time.After(patience)
	for {
		f.mu.Lock()
		got, changed, err := slices.Clone(f.got), f.changed, f.err
		f.mu.Unlock()
		if slices.Contains(got, id) {
			return got
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("Follow has not yielded %s but %q, %v", id, got, err)
		}
	}
}

// metric reads one of the server's metrics, summed over those labels that match.
func metric(t *testing.T, server *etcdtest.Server, pattern string) int {
	t.Helper()
	resp, err := http.Get(server.Endpoint() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, found := range regexp.MustCompile(`(?m)^`+pattern+` (\S+)$`).FindAllSubmatch(all, -1) {
		value, err := strconv.ParseFloat(string(found[1]), 64)
		if err != nil {
			t.Fatal(err)
		}
		sum += value
	}
	return int(sum)
}

// The keys of the log are where the configuration says, and are what others can read.
func TestLogKeysInEtcd(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t, etcdtest.Options{})
	raw := rawClient(t, server.Endpoint())
	s := open(t, etcdstore.Config{Endpoints: []string{server.Endpoint()}, Prefix: "/p"})
	a, b := mustAppend(t, s, "a"), mustAppend(t, s, "b")
	if err := s.Checkpoint(t.Context(), store.Checkpoint{Position: a, Value: []byte("value")}); err != nil {
		t.Fatalf("Checkpoint: %v", err)
	}
	resp, err := raw.Get(t.Context(), "", clientv3.WithPrefix())
	if err != nil || len(resp.Kvs) != 5 {
		t.Fatalf("etcd has %v, %v", resp, err)
	}
	for i, want := range []string{
		fmt.Sprintf("/p/checkpoint/position=%019d", a), "/p/checkpoint/value=value", "/p/log-last=b",
		"/p/log/a=data of a", "/p/log/b=data of b",
	} {
		if kv := resp.Kvs[i]; string(kv.Key)+"="+string(kv.Value) != want || kv.Lease != 0 {
			t.Errorf("etcd has %v, want %s", kv, want)
		}
	}
	if at := resp.Kvs[4].CreateRevision; store.Position(at) != b || resp.Kvs[2].ModRevision != at {
		t.Errorf("b is at %d, and was created at %d, the last one at %d", b, at, resp.Kvs[2].ModRevision)
	}
	if resp.Kvs[0].ModRevision != resp.Kvs[1].ModRevision {
		t.Errorf("the checkpoint was written at two moments: %v", resp.Kvs[:2])
	}
}

// An append is one round trip, also after a checkpoint of one's own; another's
// costs one more, once. None carries the checkpoint's value, nor does a read that needs none.
func TestWhatTheLogCosts(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t, etcdtest.Options{})
	config := etcdstore.Config{Endpoints: []string{server.Endpoint()}}
	s, other := open(t, config), open(t, config)
	mustAppend(t, other, "theirs")
	last := mustAppend(t, s, "first")
	sent := func() int { return metric(t, server, `etcd_network_client_grpc_sent_bytes_total`) }
	calls := func() int {
		return metric(t, server, `grpc_server_handled_total{[^}]*grpc_service="etcdserverpb.KV"[^}]*}`)
	}

	const n = 10
	appends := func(who string) (took int) {
		before := calls()
		for i := range n {
			last = mustAppend(t, s, fmt.Sprintf("%s-%d", who, i))
		}
		return calls() - before
	}
	if took := appends("plain"); took != n {
		t.Errorf("%d appends took %d calls", n, took)
	}
	large := strings.Repeat("x", 500_000)
	mustCut(t, s, last, large)
	before := sent()
	if took := appends("cut"); took != n {
		t.Errorf("%d appends after an own checkpoint took %d calls", n, took)
	}
	mustCut(t, other, last, large)
	if took := appends("cut-by-other"); took != n+1 {
		t.Errorf("%d appends after another's checkpoint took %d calls, want one more", n, took)
	}
	f := follow(t, s, last)
	f.until(t, func() string { mustAppend(t, other, "followed"); return "followed" }())
	for range n {
		if _, err := s.Read(t.Context(), last); err != nil {
			t.Fatalf("Read: %v", err)
		}
	}
	if got := sent() - before; got > len(large)/2 {
		t.Errorf("the server sent %d bytes, and the checkpoint's value has %d", got, len(large))
	}
	before = sent()
	if _, err := s.Read(t.Context(), 0); err != nil {
		t.Fatalf("Read: %v", err)
	}
	if got := sent() - before; got < len(large) {
		t.Errorf("the server sent %d bytes, so that they tell nothing of a value of %d", got, len(large))
	}
}

// One watch serves any number of followers; without followers there is no watch.
func TestFollowersShareOneWatch(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t, etcdtest.Options{})
	s := open(t, etcdstore.Config{Endpoints: []string{server.Endpoint()}})
	watchers := func() int { return metric(t, server, `etcd_debugging_mvcc_watcher_total`) }
	first := mustAppend(t, s, "first")
	var all []*followed
	for range 200 {
		all = append(all, follow(t, s, first-1))
	}
	for _, f := range all {
		f.until(t, "first")
	}
	mustAppend(t, s, "second")
	for _, f := range all {
		if got := f.until(t, "second"); !slices.Equal(got, []string{"first", "second"}) {
			t.Errorf("Follow has yielded %q", got)
		}
	}
	if n := watchers(); n != 1 {
		t.Errorf("%d followers have %d watches", len(all), n)
	}
	for _, f := range all[1:] {
		f.stop()
		<-f.ended
	}
	mustAppend(t, s, "third")
	all[0].until(t, "third")
	if n := watchers(); n != 1 {
		t.Errorf("the last follower has %d watches", n)
	}
	all[0].stop()
	<-all[0].ended
	eventually(t, "the end of the watch", func() error {
		if n := watchers(); n != 0 {
			return fmt.Errorf("without followers there are %d watches", n)
		}
		return nil
	})
	follow(t, s, first).until(t, "third")
}

// Followers miss nothing, and see nothing twice, while the server is killed and
// started again; and an append goes on until it is answered.
func TestFollowAcrossKills(t *testing.T) {
	t.Parallel()
	const kills, each = 3, 20
	server := etcdtest.Start(t, etcdtest.Options{})
	config := etcdstore.Config{Endpoints: []string{server.Endpoint()}, CallDeadline: patience}
	s := open(t, config)
	followers := []*followed{follow(t, s, 0), follow(t, open(t, config), 0)}
	var appending sync.WaitGroup
	defer appending.Wait()
	appended := make(chan struct{}, kills*each)
	appending.Go(func() {
		for i := range kills * each {
			if _, err := s.Append(t.Context(), fmt.Sprint(i), nil); err != nil {
				t.Errorf("Append: %v", err)
			}
			appended <- struct{}{}
		}
	})
	for range kills {
		for range each / 2 {
			<-appended
		}
		server.Restart(t)
	}
	appending.Wait()
	batch, err := s.Read(t.Context(), 0)
	if err != nil || len(batch.Entries) != kills*each {
		t.Fatalf("the log has %d entries, want %d, %v", len(batch.Entries), kills*each, err)
	}
	for _, f := range followers {
		got := f.until(t, fmt.Sprint(kills*each-1))
		for i, e := range batch.Entries {
			if e.ID != fmt.Sprint(i) || len(got) != len(batch.Entries) || got[i] != e.ID {
				t.Fatalf("entry %d is %s, and Follow has yielded %q", i, e.ID, got)
			}
		}
	}
}

// A follower that was parted from the servers while the revision that it would go
// on from was compacted away misses nothing; it yields a checkpoint only where the log was cut.
func TestFollowAfterCompaction(t *testing.T) {
	t.Parallel()
	for _, cut := range []bool{false, true} {
		t.Run(fmt.Sprintf("cut=%v", cut), func(t *testing.T) {
			t.Parallel()
			server := etcdtest.Start(t, etcdtest.Options{})
			proxy := proxytest.New(t, server.Address())
			s := open(t, etcdstore.Config{Endpoints: []string{server.Endpoint()}})
			victim := open(t, etcdstore.Config{Endpoints: []string{proxy.Address()}, CallDeadline: time.Second})
			mustAppend(t, s, "before")
			one, two := follow(t, victim, 0), follow(t, victim, 0)
			one.until(t, "before")
			two.until(t, "before")
			mustAppend(t, s, "watched") // so that the watch has begun
			one.until(t, "watched")
			two.until(t, "watched")

			proxy.Drop()
			proxy.Cut(true)
			during := mustAppend(t, s, "during")
			want := []string{"before", "watched", "during", "later", "after"}
			if cut {
				mustCut(t, s, during, "")
				want[2] = fmt.Sprintf("@%d", during)
			}
			last := mustAppend(t, s, "later")
			raw := rawClient(t, server.Endpoint())
			if _, err := raw.Compact(t.Context(), int64(last), clientv3.WithCompactPhysical()); err != nil {
				t.Fatalf("Compact: %v", err)
			}
			proxy.Cut(false)
			one.until(t, "later")
			mustAppend(t, s, "after")
			for _, f := range []*followed{one, two, follow(t, victim, 0)} {
				got := f.until(t, "after")
				if f != one && f != two && cut {
					want = want[2:]
				}
				if !slices.Equal(got, want) {
					t.Errorf("Follow has yielded %q, want %q", got, want)
				}
			}
		})
	}
}

// A follower that takes its time, longer than what the others need is kept, reads
// what it has missed.
func TestSlowFollower(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t, etcdtest.Options{})
	s := open(t, etcdstore.Config{Endpoints: []string{server.Endpoint()}})
	fast := follow(t, s, 0)
	mustAppend(t, s, "first")
	fast.until(t, "first")
	const many = 200
	data := make([]byte, store.MaxEntry) // in all more than a tail keeps
	next := 0
	for batch, err := range s.Follow(t.Context(), 0) {
		if err != nil || batch.Checkpoint != nil {
			t.Fatalf("Follow yields %+v, %v", batch, err)
		}
		for _, e := range batch.Entries {
			if next > 0 && e.ID != fmt.Sprint(next) {
				t.Fatalf("%s comes as number %d", e.ID, next)
			}
			next++
		}
		if next == 1 {
			for i := range many {
				if _, err := s.Append(t.Context(), fmt.Sprint(i+1), data); err != nil {
					t.Fatalf("Append: %v", err)
				}
			}
			fast.until(t, fmt.Sprint(many))
		}
		if next == many+1 {
			break
		}
	}
}

// A frozen server answers nothing: what was sent may be applied when it goes on. An
// entry that was trimmed since is not added again.
func TestAppendToAPausedServer(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t, etcdtest.Options{})
	s := open(t, etcdstore.Config{Endpoints: []string{server.Endpoint()}, CallDeadline: 300 * time.Millisecond})
	patient := open(t, etcdstore.Config{Endpoints: []string{server.Endpoint()}})
	mustAppend(t, patient, "first")
	f := follow(t, patient, 0)
	f.until(t, "first")
	// s then knows where the log is, and sends its next append at once.
	eventually(t, "Append", func() error { _, err := s.Append(t.Context(), "second", nil); return err })
	for i := range 5 {
		id := fmt.Sprintf("doubt-%d", i)
		server.Pause(t)
		if _, err := s.Append(t.Context(), id, nil); !errors.Is(err, store.ErrAmbiguous) {
			t.Errorf("Append = %v, want ErrAmbiguous", err)
		}
		server.Resume(t)
		marker := fmt.Sprintf("marker-%d", i)
		trimmed := mustAppend(t, patient, marker)
		f.until(t, marker)
		mustCut(t, patient, trimmed, "")
		var at store.Position
		var err error
		for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
			if at, err = s.Append(t.Context(), id, nil); !errors.Is(err, context.DeadlineExceeded) {
				break
			}
		}
		// It may have got in between the marker and the checkpoint, and is there.
		if !errors.Is(err, store.ErrAmbiguous) && (err != nil || at <= trimmed) {
			t.Errorf("Append = %d, %v after a trim up to %d, want ErrAmbiguous", at, err, trimmed)
		}
	}
	mustAppend(t, patient, "last")
	got := f.until(t, "last")
	slices.Sort(got)
	if len(slices.Compact(slices.Clone(got))) != len(got) {
		t.Errorf("an entry was added twice: %q", got)
	}
}

// What another program wrote over the checkpoint's position is refused, also by followers of the log.
func TestDamagedCheckpoint(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t, etcdtest.Options{})
	raw := rawClient(t, server.Endpoint())
	s := open(t, etcdstore.Config{Endpoints: []string{server.Endpoint()}})
	s.Recheck(10 * time.Millisecond)
	first := mustAppend(t, s, "first")
	one, two := follow(t, s, 0), follow(t, s, 0)
	one.until(t, "first")
	two.until(t, "first")
	for _, damage := range []string{"here", "-000000000000000001", "7", ""} {
		if _, err := raw.Put(t.Context(), "/firn/checkpoint/position", damage); err != nil {
			t.Fatal(err)
		}
		_, readErr := s.Read(t.Context(), 0)
		_, appendErr := s.Append(t.Context(), "second", nil)
		for call, err := range map[string]error{
			"Read": readErr, "Append": appendErr, "Trim": s.Trim(t.Context()),
			"Checkpoint": s.Checkpoint(t.Context(), store.Checkpoint{Position: first}),
		} {
			if !errors.Is(err, store.ErrRefused) || !strings.Contains(err.Error(), "/firn/checkpoint/position") {
				t.Errorf("%s with %q: %v, want ErrRefused that names the key", call, damage, err)
			}
		}
	}
	for _, f := range []*followed{one, two} {
		select {
		case <-f.ended:
		case <-time.After(patience):
			t.Fatal("Follow goes on")
		}
		if !errors.Is(f.err, store.ErrRefused) {
			t.Errorf("Follow ended with %v, want ErrRefused", f.err)
		}
	}
	if _, err := raw.Delete(t.Context(), "/firn/checkpoint/position"); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, s, "third")
	follow(t, s, 0).until(t, "third")
}

// A long log comes in pieces to who follows it, before and after it was cut.
func TestALongLogComesInPieces(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t, etcdtest.Options{})
	s := open(t, etcdstore.Config{Endpoints: []string{server.Endpoint()}})
	s.Piece(10)
	var positions []store.Position
	for i := range 35 {
		positions = append(positions, mustAppend(t, s, fmt.Sprintf("e%02d", i)))
	}
	for _, checkpoint := range []int{-1, 3} {
		if checkpoint >= 0 { // the entries before it are still there
			at := store.Checkpoint{Position: positions[checkpoint], Value: []byte("value")}
			if err := s.Checkpoint(t.Context(), at); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		var ids []string
		pieces := 0
		for batch, err := range s.Follow(ctx, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if pieces++; len(batch.Entries) > 10 || (batch.Checkpoint != nil) != (checkpoint >= 0 && pieces == 1) {
				t.Errorf("piece %d: %d entries, checkpoint %v", pieces, len(batch.Entries), batch.Checkpoint)
			}
			for _, e := range batch.Entries {
				ids = append(ids, e.ID)
			}
			if !batch.More {
				break
			}
		}
		cancel()
		var want []string
		for i := checkpoint + 1; i < 35; i++ {
			want = append(want, fmt.Sprintf("e%02d", i))
		}
		if pieces != 4 || !slices.Equal(ids, want) {
			t.Errorf("checkpoint %d: %d pieces: %v", checkpoint, pieces, ids)
		}
	}
	f := follow(t, s, 0)
	mustAppend(t, s, "last")
	if got := f.until(t, "last"); len(got) != 33 || got[0] != fmt.Sprintf("@%d", positions[3]) {
		t.Errorf("followed: %v", got)
	}
}
