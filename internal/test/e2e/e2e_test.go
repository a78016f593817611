//go:build unix

package e2e

import (
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/etcdtest"
	"github.com/firn-id/firn/internal/test/responsive"
	"github.com/firn-id/firn/internal/test/testenv"
)

// short makes leases and windows end within seconds.
var short = []string{"--ttl=2s", "--window=5s"}

func with(server *etcdtest.Server, args ...string) []string {
	return append([]string{"--etcd=" + server.Address()}, args...)
}

// Three nodes give two million IDs, each of them once.
func TestTwoMillionIDsFromThreeNodes(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	server := etcdtest.Start(t, etcdtest.Options{})
	l := new(ledger)
	var all sync.WaitGroup
	for i := range 3 {
		n := serve(t, fmt.Sprint("node ", i), with(server)...)
		n.ready(t, l)
		for range 4 {
			c := n.connect(t, l)
			all.Go(func() {
				for range 170 {
					if err := c.many(1000); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		c := n.connect(t, l)
		all.Go(func() {
			for range 1000 {
				if err := c.one(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	l.unique(t, 2_000_000)
}

// A node that is killed and started again at once, ten times over, repeats nothing: neither when it may take any node
// ID nor when it must take the same one. Each gets in once the pulse of the one before has ended, and the same node
// ID is given to it then; what is left of the horizon it waits for.
func TestKilledTenTimes(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	for _, c := range []struct {
		name  string
		args  []string
		kills int
	}{
		{"any node ID", short, 10},
		{"the same node ID", append([]string{"--node=7", "--wait"}, short...), 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := etcdtest.Start(t, etcdtest.Options{})
			l := new(ledger)
			for i := range c.kills + 1 {
				n := serve(t, fmt.Sprint("run ", i), with(server, c.args...)...)
				n.ready(t, l)
				b := n.load(t, l, 3)
				n.taken(t, l, 300)
				n.kill()
				b.finish()
			}
			l.unique(t, 300*(c.kills+1))
		})
	}
}

// taken waits until so many more IDs were given.
func (n *node) taken(t *testing.T, l *ledger, more int) {
	t.Helper()
	size := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.ids)
	}
	from := size()
	for deadline := time.Now().Add(patience); size() < from+more; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s gives no IDs\n%s", n.name, n.log)
		}
	}
}

// A node frozen for longer than its lease and its window finds its only node ID taken when it wakes up under load: it
// gives no ID until it owns the node ID again.
func TestFrozenWhileAnotherTakesOver(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	server := etcdtest.Start(t, etcdtest.Options{})
	l := new(ledger)
	one := with(server, append([]string{"--layout=41/0/12", "--wait"}, short...)...)
	a := serve(t, "a", one...)
	a.ready(t, l)
	onA := a.load(t, l, 8)
	a.taken(t, l, 500)

	a.signal(syscall.SIGSTOP)
	b := serve(t, "b", one...)
	b.ready(t, l) // not before the lease and the window of a have ended
	held := time.Now()
	onB := b.load(t, l, 4)
	b.taken(t, l, 500)
	a.signal(syscall.SIGCONT)
	a.unready(t, l)
	b.taken(t, l, 500)
	a.unready(t, l)

	if refused := onB.finish(); len(refused) != 0 {
		responsive.Errorf(t, held, "b refused: %v", refused)
	}
	b.signal(syscall.SIGTERM)
	if status := b.ended(); status != 0 {
		t.Errorf("b ended with status %d:\n%s", status, b.log)
	}
	a.ready(t, l)
	refused := onA.finish()
	if refused[http.StatusServiceUnavailable] == 0 || len(refused) != 1 {
		t.Errorf("a refused: %v", refused)
	}
	l.unique(t, 1500)
}

// When etcd is gone for less than the window no caller notices, though the session ends meanwhile and the member joins
// again; when for longer, nodes refuse from the horizon on, and give IDs again, without a restart, when it is back.
func TestEtcdIsGone(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	const window = 12 * time.Second // etcd takes 5 s to stop while its log is followed
	server := etcdtest.Start(t, etcdtest.Options{})
	l := new(ledger)
	n := serve(t, "node", with(server, "--ttl=2s", "--window="+window.String())...)
	n.ready(t, l)

	b := n.load(t, l, 4)
	n.taken(t, l, 300)
	stopped := time.Now()
	server.Stop(t)
	n.taken(t, l, 300)
	for time.Since(stopped) < window/2 {
		n.taken(t, l, 10)
	}
	server.Start(t)
	for begun := time.Now(); time.Since(begun) < window; {
		n.taken(t, l, 10)
	}
	if refused := b.finish(); len(refused) != 0 {
		responsive.Errorf(t, stopped, "gone for less than the window, and requests failed: %v", refused)
	}

	b = n.load(t, l, 4)
	stopped = time.Now()
	server.Kill(t)
	n.unready(t, l)
	if time.Since(stopped) < window/2 {
		t.Errorf("it refuses after %v; the horizon is further ahead", time.Since(stopped))
	}
	b.mu.Lock()
	if late := b.lastOK.Sub(stopped); late > window+time.Second { // a last extension may have been on its way
		responsive.Errorf(t, stopped, "an ID came %v after etcd was killed; the horizon was at %v at most",
			late, window)
	}
	b.mu.Unlock()
	server.Start(t)
	n.ready(t, l)
	n.taken(t, l, 300)
	if refused := b.finish(); refused[http.StatusServiceUnavailable] == 0 || len(refused) != 1 {
		t.Errorf("refusals: %v", refused)
	}
	l.unique(t, 1000)
}

// The wall clock of one node among three is stepped. None of its IDs repeats or comes out of order; steps back and
// small ones ahead stall nothing; an hour ahead of the others it is not believed, and poisons nothing.
func TestTheWallClockOfANodeSteps(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	server, began := etcdtest.Start(t, etcdtest.Options{}), time.Now()
	l := new(ledger)
	args := with(server, "--ttl=2s", "--window=12s") // an extension every 4 s leaves 3 s after a step of 5 s
	var others []*load
	for i := range 2 {
		n := serve(t, fmt.Sprint("other ", i), append(args, fmt.Sprint("--node=", i))...)
		n.ready(t, l)
		others = append(others, n.load(t, l, 1))
	}
	n := serveSteppable(t, "stepped", append(args, "--node=7")...)
	n.ready(t, l)
	for _, off := range []time.Duration{-time.Hour, 0, -10 * time.Second, 0, 5 * time.Second, 0} {
		b, from := n.load(t, l, 2), time.Now().Add(-window)
		n.step(off)
		for begun := time.Now(); time.Since(begun) < 3*time.Second; {
			n.taken(t, l, 10)
		}
		if refused := b.finish(); len(refused) != 0 {
			responsive.Errorf(t, from, "off by %v, and requests failed: %v", off, refused)
		}
	}

	b := n.load(t, l, 2)
	n.step(time.Hour)
	n.unready(t, l) // it has used up its window
	for begun := time.Now(); time.Since(begun) < 4*time.Second; {
		n.unready(t, l)
	}
	b.mu.Lock()
	if again := time.Since(b.lastOK); again < 4*time.Second {
		t.Errorf("it gave an ID %v ago, while its clock is an hour ahead of the others", again)
	}
	b.mu.Unlock()
	n.step(0)
	n.ready(t, l)
	if refused := b.finish(); refused[http.StatusServiceUnavailable] == 0 || len(refused) != 1 {
		t.Errorf("off by an hour, and requests failed: %v", refused)
	}
	n.kill()
	next := serve(t, "next", append(args, "--node=7", "--wait")...)
	next.ready(t, l) // within its window, not in an hour
	for _, o := range others {
		if refused := o.finish(); len(refused) != 0 {
			responsive.Errorf(t, began, "the others refused: %v", refused)
		}
	}
	l.unique(t, 3000)
}

// With no node ID to be had, or a clock that is behind every floor, a node ends with status 3 and says how things
// stand.
func TestNoNodeIDAtTheStart(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	server := etcdtest.Start(t, etcdtest.Options{})
	l := new(ledger)
	a := serve(t, "a", with(server, "--layout=41/1/12")...)
	a.ready(t, l)
	b := serve(t, "b", with(server, "--layout=41/1/12")...)
	b.ready(t, l)
	c := serve(t, "c", with(server, "--layout=41/1/12")...)
	if status := c.ended(); status != 3 || !strings.Contains(c.log.String(), "all 2 of them, 0 to 1, are held") {
		t.Errorf("status %d:\n%s", status, c.log)
	}
	a.signal(syscall.SIGTERM)
	if status := a.ended(); status != 0 {
		t.Errorf("status %d after SIGTERM:\n%s", status, a.log)
	}

	path, err := firnSteppable()
	if err != nil {
		t.Fatal(err)
	}
	late := exec.Command(path,
		append([]string{"serve", "--http-addr=127.0.0.1:0"}, with(server, "--layout=41/1/12")...)...)
	behind := serveSteppable(t, "warm-up", with(server, "--layout=41/1/12")...)
	behind.ready(t, l)
	behind.signal(syscall.SIGTERM)
	behind.ended()
	behind.step(-time.Hour)
	late.Env = append(late.Environ(), "FAKE_WALL_FILE="+behind.clockAt)
	out, err := late.CombinedOutput()
	if code := late.ProcessState.ExitCode(); code != 3 || !strings.Contains(string(out), "behind") {
		t.Errorf("%v, status %d:\n%s", err, code, out)
	}
}
