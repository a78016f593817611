//go:build unix

package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/proxytest"
	"github.com/firn-id/firn/internal/test/responsive"
	"github.com/firn-id/firn/store/quorum"
)

// keepers are machines that keep their store themselves, with a node on each.
type keepers struct {
	t      *testing.T
	ledger *ledger
	key    string    // the file
	args   []string  // of every node
	list   []*keeper // whom --quorum names
	asked  []*keeper // by callers
	took   map[string][]time.Duration
}

// keeper is one of them: its address, its directory, and the node that runs there.
type keeper struct {
	of        *keepers
	name      string
	address   string // for the other machines
	dir       string
	url       string
	admin     string // the URL of administrators
	transport *http.Transport
	launch    func(args ...string) (process, *lines)
	process          // the latest run
	log       *lines // its log

	mu    sync.Mutex // guards downs
	downs []down
}

// process is a *node or a *program.
type process interface {
	signal(s syscall.Signal)
	ended() int
	kill()
}

// down is a time in which callers of a node may notice that something is done to it.
type down struct{ from, to time.Time }

// newKeepers makes machines with addresses of their own on this one, and starts none of them.
func newKeepers(t *testing.T, machines int, args ...string) *keepers {
	t.Helper()
	q := noKeepers(t, args...)
	for range machines {
		q.list = append(q.list, q.local())
	}
	return q
}

// noKeepers is for a caller that adds machines.
func noKeepers(t *testing.T, args ...string) *keepers {
	q := &keepers{
		t: t, ledger: new(ledger), key: filepath.Join(t.TempDir(), "key"), args: args,
		took: map[string][]time.Duration{},
	}
	q.newKey(0)
	t.Cleanup(q.medians)
	return q
}

// newKey has them use a key that was made that long ago.
func (q *keepers) newKey(ago time.Duration) {
	q.t.Helper()
	binary := firn
	if ago != 0 {
		binary = firnSteppable
	}
	path, err := binary()
	if err != nil {
		q.t.Fatal(err)
	}
	clock := filepath.Join(q.t.TempDir(), "clock")
	err = os.WriteFile(clock, []byte((-ago).String()), 0o600)
	make := exec.Command(path, "quorum", "key")
	make.Env = append(os.Environ(), "FAKE_WALL_FILE="+clock)
	key, failed := make.Output()
	if err != nil || failed != nil {
		q.t.Fatal(err, failed)
	}
	if err := os.WriteFile(q.key, key, 0o600); err != nil {
		q.t.Fatal(err)
	}
}

// local makes a machine on this one.
func (q *keepers) local() *keeper {
	q.t.Helper()
	k := q.machine(proxytest.FixedAddress(q.t), proxytest.FixedAddress(q.t), proxytest.FixedAddress(q.t),
		new(net.Dialer).DialContext)
	k.launch = func(args ...string) (process, *lines) {
		n := start(q.t, firn, k.name, "", args...)
		return n, n.log
	}
	return k
}

// machine makes one that launch has yet to be set of. Its addresses are those for the other machines, for callers and
// for administrators, which dial reaches.
func (q *keepers) machine(address, callers, admin string,
	dial func(ctx context.Context, network, address string) (net.Conn, error),
) *keeper {
	k := &keeper{
		of: q, name: "the node at " + address, address: address, dir: filepath.Join(q.t.TempDir(), "data"),
		url: "http://" + callers, admin: "http://" + admin,
		transport: &http.Transport{DialContext: dial, DisableKeepAlives: true},
	}
	return k
}

// addresses are those of machines, as --quorum names them.
func addresses(machines []*keeper) string {
	var all []string
	for _, k := range machines {
		all = append(all, k.address)
	}
	return strings.Join(all, ",")
}

// start starts the node, and waits for nothing.
func (k *keeper) start() {
	k.of.t.Helper()
	k.startAs(append(k.of.quorum(), "--quorum-addr="+k.address)...)
}

// startAs starts the node with these flags, in place of those that name the quorum.
func (k *keeper) startAs(flags ...string) {
	k.of.t.Helper()
	flags = append(flags, "--http-addr="+strings.TrimPrefix(k.url, "http://"),
		"--admin-addr="+strings.TrimPrefix(k.admin, "http://"), "--data-dir="+k.dir)
	k.process, k.log = k.launch(append(flags, k.of.args...)...)
}

// quorum are the flags that name the quorum.
func (q *keepers) quorum() []string {
	return []string{"--quorum=" + addresses(q.list), "--quorum-key-file=" + q.key}
}

// client starts a node that is none of the machines, and waits for nothing.
func (q *keepers) client(flags ...string) *keeper {
	q.t.Helper()
	k := q.local()
	k.name = "the client at " + strings.TrimPrefix(k.url, "http://")
	k.startAs(append(append(q.quorum(), "--quorum-addr=none"), flags...)...)
	return k
}

// start starts the nodes of all machines, and waits until they are ready and the quorum is whole.
func (q *keepers) start() {
	q.t.Helper()
	for _, k := range q.list {
		k.start()
	}
	q.whole()
}

// get asks the node for a path at an URL.
func (k *keeper) get(url string) (int, string, error) {
	response, err := (&http.Client{Transport: k.transport, Timeout: 5 * time.Second}).Get(url)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

// isReady returns what is missing so that the node is ready.
func (k *keeper) isReady() error {
	status, body, err := k.get(k.url + "/readyz")
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("%s is not ready: %d %s", k.name, status, body)
	}
	return err
}

// ready waits until the node is ready. Callers may notice nothing from then on.
func (k *keeper) ready() {
	k.of.t.Helper()
	eventually(k.of.t, k.isReady)
	k.up()
}

// goesDown notes that something is done to the node, and up that it is over.
func (k *keeper) goesDown() { k.goesDownAt(time.Now()) }

func (k *keeper) goesDownAt(from time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.downs = append(k.downs, down{from: from})
}

func (k *keeper) up() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if last := len(k.downs) - 1; last >= 0 && k.downs[last].to.IsZero() {
		k.downs[last].to = time.Now()
	}
}

// mayFail reports whether the node was down during a call.
func (k *keeper) mayFail(c call) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.ContainsFunc(k.downs, func(d down) bool {
		return c.ended.After(d.from) && (d.to.IsZero() || c.began.Before(d.to))
	})
}

// crash kills the node.
func (k *keeper) crash() {
	k.of.t.Helper()
	k.goesDown()
	k.kill()
}

// crash kills nodes at once.
func crash(some ...*keeper) {
	for _, k := range some {
		k.goesDown()
		k.signal(syscall.SIGKILL)
	}
	for _, k := range some {
		k.ended()
	}
}

// stop ends the node as an operator does.
func (k *keeper) stop() {
	k.of.t.Helper()
	k.goesDown()
	k.signal(syscall.SIGTERM)
	if status := k.ended(); status != 0 {
		k.of.t.Errorf("%s ended with status %d", k.name, status)
	}
}

// status is what the node says of the quorum.
func (k *keeper) status() (quorum.Status, error) {
	var s quorum.Status
	client := &http.Client{Transport: k.transport, Timeout: 5 * time.Second}
	_, err := exchange(client, http.MethodGet, k.admin+"/api/v1/quorum", "", &s)
	return s, err
}

// isWhole returns what is missing so that these machines are the quorum, each with all that was written.
func (k *keeper) isWhole(machines []*keeper) error {
	s, err := k.status()
	if err != nil {
		return err
	}
	var voters []string
	leaders := 0
	for _, m := range s.Machines {
		if m.Err == "" && m.Role == quorum.Voter && m.Doing == "" && m.Behind == 0 {
			voters = append(voters, m.Address)
		}
		if m.Leader {
			leaders++
		}
	}
	want := strings.Split(addresses(machines), ",")
	slices.Sort(want)
	if !slices.Equal(voters, want) || leaders != 1 || !s.Majority || s.Waiting != "" {
		return fmt.Errorf("%s: the quorum is not whole, with the machines %v: %+v", k.name, want, s)
	}
	return nil
}

// whole waits until all nodes are ready, and the quorum is whole.
func (q *keepers) whole() {
	q.t.Helper()
	for _, k := range q.list {
		k.ready()
		eventually(q.t, func() error { return k.isWhole(q.list) })
	}
}

// leader waits until one leads, and returns it.
func (q *keepers) leader() (leads *keeper) {
	q.t.Helper()
	eventually(q.t, func() error {
		for _, k := range q.list {
			s, err := k.status()
			i := slices.IndexFunc(s.Machines, func(m quorum.Machine) bool { return m.Address == k.address && m.Leader })
			if err == nil && i >= 0 {
				leads = k
				return nil
			}
		}
		return fmt.Errorf("none of %s leads", addresses(q.list))
	})
	return leads
}

// others are the machines without some.
func (q *keepers) others(some ...*keeper) []*keeper {
	return slices.DeleteFunc(slices.Clone(q.list), func(k *keeper) bool { return slices.Contains(some, k) })
}

// extensions is how often the node has written a horizon.
func (k *keeper) extensions() (int, error) {
	const series = `firn_fence_extensions_total{result="done"} `
	_, text, err := k.get(k.url + "/metrics")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		if number, ok := strings.CutPrefix(line, series); ok {
			return strconv.Atoi(strings.TrimSpace(number))
		}
	}
	return 0, fmt.Errorf("%s has no metric %s", k.name, series)
}

// extendAgain waits until each of some nodes has written a horizon from now on.
func (q *keepers) extendAgain(some ...*keeper) {
	q.t.Helper()
	before := map[*keeper]int{}
	for _, k := range some {
		eventually(q.t, func() (err error) {
			before[k], err = k.extensions()
			return err
		})
	}
	eventually(q.t, func() error {
		for _, k := range some {
			if now, err := k.extensions(); err != nil || now <= before[k] {
				return fmt.Errorf("%s has not written a horizon again: %w", k.name, err)
			}
		}
		return nil
	})
}

// lasted notes how long something took that should take so long at most. Only three times that is a failure.
func (q *keepers) lasted(what string, begun time.Time, want time.Duration) {
	q.t.Helper()
	q.measured(what, begun, time.Since(begun), want)
}

// measured is lasted for what was measured some time after begun.
func (q *keepers) measured(what string, begun time.Time, took, want time.Duration) {
	q.t.Helper()
	q.took[what] = append(q.took[what], took)
	if took > 3*want {
		responsive.Errorf(q.t, begun, "%s: %v; want %v", what, took, want)
	}
}

// medians logs what lasted has noted.
func (q *keepers) medians() {
	for what, took := range q.took {
		slices.Sort(took)
		q.t.Logf("%s: median %v, longest %v, of %d", what, took[len(took)/2].Round(time.Millisecond),
			took[len(took)-1].Round(time.Millisecond), len(took))
	}
}

// callers take IDs at each node until finish, and ask the next node once more if that fails.
func (q *keepers) callers() *audience {
	var urls []string
	q.asked = slices.Clone(q.list)
	for _, k := range q.asked {
		urls = append(urls, k.url)
	}
	return newAudience(q.t, q.ledger, q.list[0].transport.DialContext, urls...)
}

// unnoticed ends callers, and demands that none was refused by a node that was not down then. It judges on a responsive
// machine alone.
func (q *keepers) unnoticed(c *audience) {
	q.t.Helper()
	s := c.finish()
	q.t.Logf("%d calls, %d asked twice, %d failed; the longest took %v; the longest time without an answer was %v",
		s.calls, s.again, len(s.failed), s.longest.Round(time.Millisecond), s.silence.Round(time.Millisecond))
	told := 0
	for _, made := range c.calls {
		first, second := q.asked[made.node], q.asked[(made.node+1)%len(q.asked)]
		if (made.first == nil || first.mayFail(made)) && (made.err == nil || second.mayFail(made)) {
			continue
		}
		if told++; told <= 10 {
			responsive.Errorf(q.t, made.began.Add(-mercy), "a call failed: at %s: %v; at %s: %v", first.name,
				made.first, second.name, made.err)
		}
	}
}

// firn runs a command, and returns what it prints.
func (q *keepers) firn(args ...string) (string, error) {
	q.t.Helper()
	path, err := firn()
	if err != nil {
		q.t.Fatal(err)
	}
	out, err := exec.Command(path, args...).CombinedOutput()
	return string(out), err
}

// firn runs a command that asks the node.
func (k *keeper) firn(args ...string) (string, error) {
	k.of.t.Helper()
	return k.of.firn(append(args, "--admin="+k.admin)...)
}

// refuses waits until the node is not ready, and tells callers why with all of these words.
func (k *keeper) refuses(words ...string) {
	k.of.t.Helper()
	eventually(k.of.t, func() error {
		status, body, err := k.get(k.url + "/readyz")
		if err != nil {
			return err
		}
		for _, word := range words {
			if status != http.StatusServiceUnavailable || !strings.Contains(body, word) {
				return fmt.Errorf("%s does not say %q: %d %s", k.name, word, status, body)
			}
		}
		return nil
	})
}

// waits waits until the node waits for its quorum, and says so with all of these words, to callers and in its status.
func (k *keeper) waits(words ...string) {
	k.of.t.Helper()
	k.refuses(words...)
	eventually(k.of.t, func() error {
		s, err := k.status()
		if err != nil {
			return err
		}
		for _, word := range words {
			if !strings.Contains(s.Waiting, word) {
				return fmt.Errorf("%s does not wait with the word %q: %q", k.name, word, s.Waiting)
			}
		}
		return nil
	})
}
