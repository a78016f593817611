package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/service/stores"
	"github.com/firn-id/firn/internal/test/dbtest"
	"github.com/firn-id/firn/internal/test/etcdtest"
	"github.com/firn-id/firn/internal/test/proxytest"
	"github.com/firn-id/firn/internal/test/responsive"
	"github.com/firn-id/firn/internal/test/testenv"
	"github.com/firn-id/firn/internal/test/zktest"
	"github.com/firn-id/firn/store"
)

// server is a store's server that tests kill and freeze.
type server interface {
	Address() string
	Start(t testing.TB)
	Kill(t testing.TB)
	Pause(t testing.TB)
	Resume(t testing.TB)
}

// backend is a store with one server, which nodes reach through a proxy.
type backend struct {
	server
	proxy *proxytest.Proxy
	store string                                        // for --store
	back  func(t *testing.T) (restore func(*testing.T)) // makes a backup of the data
}

var backends = map[string]func(t *testing.T) *backend{
	"etcd": func(t *testing.T) *backend {
		s := etcdtest.Start(t, etcdtest.Options{})
		p := proxytest.New(t, s.Address())
		return &backend{s, p, "etcd://" + p.Address(), s.Backup}
	},
	"PostgreSQL": func(t *testing.T) *backend {
		s := dbtest.StartPostgres(t)
		p := proxytest.New(t, s.Address())
		return &backend{
			s, p, strings.Replace(s.URL("postgres"), s.Address(), p.Address(), 1),
			func(t *testing.T) func(*testing.T) {
				restore := s.Backup(t)
				return func(t *testing.T) { restore(t) }
			},
		}
	},
	"ZooKeeper": func(t *testing.T) *backend {
		s := zktest.Start(t)
		p := proxytest.New(t, s.Address())
		return &backend{s, p, "zookeeper://" + p.Address(), func(t *testing.T) func(*testing.T) {
			restore := zktest.Backup(t, s)
			return func(t *testing.T) { restore(t) }
		}}
	},
}

// scene is a cluster of two nodes on a store, with callers that know both and ask the other one when a call fails.
type scene struct {
	*backend
	t      *testing.T
	args   []string
	window time.Duration
	ledger *ledger
	nodes  []*node
	at     []string // where each of the nodes listens, so that callers find it again
	seen   *audience
	reset  atomic.Int64
}

// sceneTTL is the TTL of sessions in a scene.
const sceneTTL = 2 * time.Second

func newScene(t *testing.T, b *backend, window time.Duration) *scene {
	t.Helper()
	s := &scene{backend: b, t: t, window: window, ledger: new(ledger)}
	s.args = []string{
		"--store=" + b.store, "--ttl=" + sceneTTL.String(), "--window=" + window.String(), "--wait",
		"--admin-addr=127.0.0.1:0",
	}
	var urls []string
	for i := range 2 {
		s.at = append(s.at, proxytest.FixedAddress(t))
		s.nodes = append(s.nodes, nil)
		s.run(i)
		urls = append(urls, s.nodes[i].url)
	}
	for _, n := range s.nodes {
		n.ready(t, s.ledger)
	}
	s.seen = newAudience(t, s.ledger, nil, urls...)
	s.seen.served(5)
	return s
}

// run starts one of the nodes, where callers know it.
func (s *scene) run(i int) {
	s.t.Helper()
	s.nodes[i] = serveSteppable(s.t, fmt.Sprint("node ", i), append(s.args, "--http-addr="+s.at[i])...)
}

// extensions is how many horizons a node has written.
func (n *node) extensions() (int, error) {
	const series = `firn_fence_extensions_total{result="done"} `
	response, err := caller.Get(n.url + "/metrics")
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("%s: status %d: %w", n.name, response.StatusCode, err)
	}
	for line := range strings.Lines(string(text)) {
		if number, ok := strings.CutPrefix(line, series); ok {
			return strconv.Atoi(strings.TrimSpace(number))
		}
	}
	return 0, nil // it has no node ID
}

// extend waits until each node has written a horizon from now on.
func (s *scene) extend() {
	s.t.Helper()
	var before []int
	for _, n := range s.nodes {
		eventually(s.t, func() error {
			now, err := n.extensions()
			if err == nil {
				before = append(before, now)
			}
			return err
		})
	}
	for i, n := range s.nodes {
		eventually(s.t, func() error {
			if now, err := n.extensions(); err != nil || now <= before[i] {
				return fmt.Errorf("%s has not written a horizon again: %w\n%s", n.name, err, n.log)
			}
			return nil
		})
	}
}

// gone takes the store away for shorter than the window, or until both nodes refuse, and then gives it back.
func (s *scene) gone(long bool, away, back func()) {
	s.t.Helper()
	s.extend()
	from := time.Now()
	away()
	if long {
		for _, n := range s.nodes {
			n.unready(s.t, s.ledger)
		}
		if took := time.Since(from); took < s.window/3 {
			s.t.Errorf("the nodes refuse after %v; their horizons are further ahead", took)
		}
	} else {
		time.Sleep(s.window / 3)
	}
	back()
	for _, n := range s.nodes {
		n.ready(s.t, s.ledger)
	}
	s.extend()
}

// noticed waits until one of the nodes has found that the store has lost data, and has told the others.
func (s *scene) noticed(others ...*node) {
	s.t.Helper()
	eventually(s.t, func() error {
		for _, n := range append(others, s.nodes...) {
			for _, told := range []string{
				"wrote the time before which",
				"members make no IDs before one whose clock is believed",
			} {
				if said(n.log.String(), "the store has lost data; "+told) {
					return nil
				}
			}
		}
		return errors.New("no node has noticed that the store has lost data")
	})
}

// A fault happens to a scene. It is felt if callers may fail in spite of a second try.
type fault struct {
	name    string
	window  time.Duration
	felt    bool
	happens func(s *scene)
}

var faults = []fault{
	{"a node is killed 10 times", 6 * time.Second, false, func(s *scene) {
		for range 10 {
			s.seen.served(3)
			s.nodes[1].kill()
			s.run(1)
			s.nodes[1].ready(s.t, s.ledger)
		}
	}},
	{"a node is frozen, and another takes its node ID", 6 * time.Second, false, func(s *scene) {
		n := s.nodes[1]
		id := n.nodeID(s.t, s.ledger)
		n.signal(syscall.SIGSTOP)
		heir := serve(s.t, "heir", append(s.args, fmt.Sprint("--node=", id))...)
		heir.ready(s.t, s.ledger) // not before the TTL and the window of the frozen one have passed
		b := heir.load(s.t, s.ledger, 2)
		heir.taken(s.t, s.ledger, 300)
		n.signal(syscall.SIGCONT)
		heir.taken(s.t, s.ledger, 300)
		n.ready(s.t, s.ledger) // with another node ID
		if refused := b.finish(); len(refused) > 0 {
			s.t.Errorf("the heir refused: %v", refused)
		}
	}},
	{"the server is killed, for less than the window", 15 * time.Second, false, func(s *scene) {
		s.gone(false, func() { s.Kill(s.t) }, func() { s.Start(s.t) })
	}},
	{"the server is killed, for longer", 5 * time.Second, true, func(s *scene) {
		s.gone(true, func() { s.Kill(s.t) }, func() { s.Start(s.t) })
	}},
	{"the server is frozen, for less than the window", 15 * time.Second, false, func(s *scene) {
		s.gone(false, func() { s.Pause(s.t) }, func() { s.Resume(s.t) })
	}},
	{"the server is frozen, for longer", 5 * time.Second, true, func(s *scene) {
		s.gone(true, func() { s.Pause(s.t) }, func() { s.Resume(s.t) })
	}},
	{"the server is restarted 20 times", 15 * time.Second, false, func(s *scene) {
		for i := range 20 {
			s.Kill(s.t)
			s.Start(s.t)
			s.seen.served(2)
			if i%2 == 1 { // or else, on a slow machine, a window passes without a write
				s.extend()
			}
		}
	}},
	{"cut off one way and both, for less than the window", 15 * time.Second, false, func(s *scene) {
		for _, cut := range cuts {
			s.gone(false, func() { cut(s.proxy, true) }, func() { cut(s.proxy, false) })
		}
	}},
	{"cut off one way and both, for longer", 5 * time.Second, true, func(s *scene) {
		for _, cut := range cuts {
			s.gone(true, func() { cut(s.proxy, true) }, func() { cut(s.proxy, false) })
		}
	}},
	{"connections are reset in the middle of transactions", 15 * time.Second, false, func(s *scene) {
		s.proxy.Inspect(func(_ proxytest.Direction, data []byte) proxytest.Fate {
			if len(data) < 100 || rand.IntN(20) > 0 {
				return proxytest.Forward
			}
			s.reset.Add(1)
			return proxytest.ResetBefore + proxytest.Fate(rand.IntN(2))
		})
		s.seen.served(3)
		const enough, most = 5, 30
		for i := 0; i < 3 || s.reset.Load() < enough && i < most; i++ { // joining and claiming are transactions
			s.nodes[1].kill()
			s.run(1)
			s.nodes[1].ready(s.t, s.ledger)
		}
		s.proxy.Inspect(nil)
		s.extend()
		if n := s.reset.Load(); n < enough {
			s.t.Errorf("only %d connections were reset", n)
		}
	}},
	{"a node's clock is stepped", 12 * time.Second, false, func(s *scene) {
		for _, off := range []time.Duration{-time.Hour, 0, 5 * time.Second, 0} {
			s.nodes[1].step(off)
			s.seen.served(20)
			s.extend()
		}
	}},
	{"the data is set back to a backup", 5 * time.Second, true, func(s *scene) {
		restore := s.back(s.t)
		s.extend()
		third := serve(s.t, "after the backup", s.args...)
		third.ready(s.t, s.ledger)
		b := third.load(s.t, s.ledger, 2)
		third.taken(s.t, s.ledger, 300)
		restore(s.t)
		// what starts before, and claims what the store no longer knows of, may repeat IDs: docs/safety.md
		s.noticed(third)
		late := serve(s.t, "late", s.args...)
		for _, n := range append([]*node{late, third}, s.nodes...) {
			n.ready(s.t, s.ledger)
		}
		b.finish()
		s.extend()
	}},
}

// cuts are the ways to cut connections off.
var cuts = []func(*proxytest.Proxy, bool){
	func(p *proxytest.Proxy, cut bool) { p.CutOneWay(proxytest.ToServer, cut) },
	func(p *proxytest.Proxy, cut bool) { p.CutOneWay(proxytest.ToClient, cut) },
	(*proxytest.Proxy).Cut,
}

// nodeID is that of a node in the default sequencer.
func (n *node) nodeID(t *testing.T, l *ledger) int64 {
	t.Helper()
	var said struct{ Node int64 }
	eventually(t, func() error {
		id, err := take(caller, n.url+"/api/v1/id")
		if err != nil {
			return err
		}
		l.add([]int64{id})
		response, err := caller.Get(fmt.Sprint(n.url, "/api/v1/ids/", id))
		if err != nil {
			return err
		}
		defer response.Body.Close()
		return json.NewDecoder(response.Body).Decode(&said)
	})
	return said.Node
}

// Every fault of the store and of nodes, with every store whose server is a process of its own: no ID comes twice, and
// callers who ask once more notice nothing of what is shorter than the window. The table at the end says what they saw.
func TestFaultsOfStores(t *testing.T) {
	testenv.Slow(t)
	if _, err := firnSteppable(); err != nil { // building it takes minutes
		t.Fatal(err)
	}
	var mu sync.Mutex
	var table []string
	t.Cleanup(func() {
		slices.Sort(table)
		t.Logf("what callers saw:\n%s", strings.Join(table, "\n"))
	})
	t.Run("stores", func(t *testing.T) {
		for name, open := range backends {
			for _, f := range faults {
				t.Run(name+"/"+f.name, func(t *testing.T) {
					t.Parallel()
					begun := time.Now()
					s := newScene(t, open(t), f.window)
					f.happens(s)
					s.seen.served(5)
					saw := s.seen.finish()
					mu.Lock()
					table = append(table,
						fmt.Sprintf("%-52s %-11s %5d calls, %4d asked twice, %4d failed; longest call %v, longest "+
							"silence %v; %v in all", f.name, name, saw.calls,
							saw.again, len(saw.failed), saw.longest.Round(time.Millisecond),
							saw.silence.Round(time.Millisecond), time.Since(begun).Round(time.Second)))
					mu.Unlock()
					if len(saw.failed) > 0 && !f.felt {
						responsive.Errorf(t, saw.failed[0].began.Add(-mercy),
							"%d calls failed; the first: %v, and then %v", len(saw.failed), saw.failed[0].first,
							saw.failed[0].err)
					}
					for _, made := range saw.failed {
						if err := cmp.Or(unexpected(made.first), unexpected(made.err)); err != nil {
							t.Errorf("a call failed, and not with a refusal: %v", err)
							break
						}
					}
					s.ledger.unique(t, 50)
				})
			}
		}
	})
}

// unexpected is an error unless a call was refused by a node without IDs, or was not answered.
func unexpected(err error) error {
	if err == nil || strings.HasPrefix(err.Error(), "status 503") || errors.Is(err, syscall.ECONNREFUSED) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF) || strings.Contains(err.Error(), "Timeout") {
		return nil
	}
	return err
}

// A standby that was behind is promoted after the primary has died under load, and the node that joined meanwhile is in
// none of its tables. All nodes stay up, wait, and go on; no ID comes twice.
func TestAPromotedStandbyWasBehind(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	primary := dbtest.StartPostgres(t)
	standby := primary.Replica(t)
	url := fmt.Sprintf("postgres://postgres@%s,%s/postgres?sslmode=disable", primary.Address(), standby.Address())
	s := newScene(t, &backend{server: primary, store: url}, 5*time.Second)
	standby.Part(t)
	s.extend()
	joined := serve(t, "joined meanwhile", s.args...)
	joined.ready(t, s.ledger)
	b := joined.load(t, s.ledger, 2)
	joined.taken(t, s.ledger, 300)
	primary.Kill(t)
	standby.Promote(t)
	late := serve(t, "late", s.args...)
	for _, n := range append([]*node{joined}, s.nodes...) {
		n.unready(t, s.ledger)
	}
	for _, n := range append([]*node{late, joined}, s.nodes...) {
		n.ready(t, s.ledger)
	}
	s.extend()
	s.seen.served(5)
	b.finish()
	saw := s.seen.finish()
	t.Logf("%d calls, %d failed; longest silence %v", saw.calls, len(saw.failed), saw.silence.Round(time.Millisecond))
	s.ledger.unique(t, 500)
}

// The clock of a PostgreSQL, by which sessions end, is stepped: ahead, so that all of them end at once; and back, so
// that the session of a node that dies then would go on for as long. For an unmodified server, what the rows say is
// stepped.
func TestTheClockOfTheDatabaseIsStepped(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	database := dbtest.StartPostgres(t)
	s := newScene(t, &backend{server: database, store: database.URL("postgres")}, 12*time.Second)
	database.SQL(t, "UPDATE firn.sessions SET expires = expires - interval '1 hour'")
	s.seen.served(20)
	s.extend()
	database.SQL(t, "UPDATE firn.sessions SET expires = expires + interval '1 hour'")
	s.nodes[1].kill()
	eventually(t, func() error {
		if left := database.SQL(t, "SELECT count(*) FROM firn.sessions"); left != "1" {
			return fmt.Errorf("%s sessions are there; one of two nodes lives", left)
		}
		return nil
	})
	s.run(1)
	s.nodes[1].ready(t, s.ledger)
	s.extend()
	saw := s.seen.finish()
	t.Logf("%d calls, %d asked twice, %d failed; longest silence %v", saw.calls, saw.again, len(saw.failed),
		saw.silence.Round(time.Millisecond))
	if len(saw.failed) > 0 {
		responsive.Errorf(t, saw.failed[0].began.Add(-mercy), "%d calls failed; the first: %v, and then %v",
			len(saw.failed), saw.failed[0].first, saw.failed[0].err)
	}
	s.ledger.unique(t, 100)
}

// The disk of the store's server becomes full, for longer than the window, and has room again. What the server makes of
// that is its own affair: no ID comes twice, and all goes on once it runs.
func TestTheDiskOfTheStoreIsFull(t *testing.T) {
	testenv.Slow(t)
	if os.Getuid() != 0 {
		t.Skip("mounting a file system needs root")
	}
	dbtest.StartPostgres(t) // so that what others are copies of lies elsewhere
	for name, open := range backends {
		t.Run(name, func(t *testing.T) {
			disk, err := os.MkdirTemp("", "firn-full-") // which the server's user can reach
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Remove(disk) })
			if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=256m,mode=1777", "firn", disk).
				CombinedOutput(); err != nil {
				t.Skipf("no file system can be mounted: %v: %s", err, out)
			}
			t.Cleanup(func() { _ = exec.Command("umount", "-l", disk).Run() })
			usual := os.TempDir()
			t.Setenv("TMPDIR", disk) // the server's data lie there
			b := open(t)
			t.Setenv("TMPDIR", usual)
			const window = 5 * time.Second
			s := newScene(t, b, window)
			filler := filepath.Join(disk, "filler")
			_ = os.WriteFile(filler, make([]byte, 256<<20), 0o600) // as much of it as there is room for
			b.fill(t)
			time.Sleep(2 * window)
			if err := os.Remove(filler); err != nil {
				t.Fatal(err)
			}
			if conn, err := net.Dial("tcp", b.Address()); err == nil {
				_ = conn.Close()
				t.Log("the server stayed up")
			} else {
				t.Log("the server has ended; it is started again")
				b.Start(t)
			}
			for _, n := range s.nodes {
				n.ready(t, s.ledger)
			}
			s.extend()
			s.seen.served(5)
			saw := s.seen.finish()
			t.Logf("%d calls, %d failed; longest silence %v", saw.calls, len(saw.failed),
				saw.silence.Round(time.Millisecond))
			s.ledger.unique(t, 100)
		})
	}
}

// fill has the server write until it can't, or has written as much as the disk had room for.
func (b *backend) fill(t *testing.T) {
	t.Helper()
	at, err := stores.Parse(b.store)
	if err != nil {
		t.Fatal(err)
	}
	var c stores.Choice
	c.Use(at)
	client, err := c.Open(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for i := range 200 {
		value := make([]byte, 500<<10)
		for at := range value { // it can't be compressed
			value[at] = byte(rand.Uint32())
		}
		if _, err := client.Commit(ctx, store.Txn{Then: []store.Op{store.Put("large", value)}}); err != nil {
			t.Logf("the disk was full after %d writes of 500 KiB: %v", i, err)
			return
		}
	}
	t.Error("the disk does not become full")
}
