//go:build unix

package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	ids "github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/test/etcdtest"
	"github.com/firn-id/firn/internal/test/responsive"
	"github.com/firn-id/firn/internal/test/testenv"
)

// Durations as they are told of clocks that are off by so much, give or take what reading them takes.
const (
	anHour   = `(1h0m(\d+s)?|59m5\ds)`
	twoHours = `(2h0m(\d+s)?|1h59m5\ds)`
	twelve   = `1[123](\.\d)?s`
)

// rightAgain is how soon a node must be served whose clock was put right.
const rightAgain = 5 * time.Second

// clocked are nodes over one etcd whose clocks a test steps, with callers at each of them.
type clocked struct {
	t      *testing.T
	window time.Duration
	args   []string
	ledger *ledger
	nodes  []*node
	loads  map[*node]*load
	since  map[*node]time.Time // when its callers began
}

func newClocked(t *testing.T, window time.Duration, nodes int) *clocked {
	t.Helper()
	server := etcdtest.Start(t, etcdtest.Options{})
	c := &clocked{
		t: t, window: window, args: with(server, "--ttl=2s", "--window="+window.String()),
		ledger: new(ledger), loads: map[*node]*load{}, since: map[*node]time.Time{},
	}
	for range nodes {
		c.joins(c.start(0))
	}
	return c
}

// start starts a node whose clock is off, and waits for nothing.
func (c *clocked) start(off time.Duration, args ...string) *node {
	c.t.Helper()
	return startOff(c.t, firnSteppable, off, fmt.Sprintf("the node that begins at %v", off), "",
		append(c.args, args...)...)
}

// joins waits until a node is served, and has callers ask it from now on.
func (c *clocked) joins(n *node) {
	c.t.Helper()
	n.ready(c.t, c.ledger)
	c.nodes, c.loads[n], c.since[n] = append(c.nodes, n), n.load(c.t, c.ledger, 2), time.Now()
}

// leaves stops a node.
func (c *clocked) leaves(n *node) {
	c.t.Helper()
	c.unnoticed(n)
	c.nodes = slices.DeleteFunc(c.nodes, func(other *node) bool { return other == n })
	n.signal(syscall.SIGTERM)
	if status := n.ended(); status != 0 {
		c.t.Errorf("%s ended with status %d:\n%s", n.name, status, n.log)
	}
}

// step steps the clocks of all nodes.
func (c *clocked) step(off time.Duration) {
	c.t.Helper()
	for _, n := range c.nodes {
		n.step(off)
	}
}

// unnoticed ends the callers of nodes, and demands that none was refused.
func (c *clocked) unnoticed(nodes ...*node) {
	c.t.Helper()
	for _, n := range nodes {
		if refused := c.loads[n].finish(); len(refused) != 0 {
			responsive.Errorf(c.t, c.since[n].Add(-c.window), "%s refused: %v\n%s", n.name, refused, n.log)
		}
	}
}

// served has all callers served for so long.
func (c *clocked) served(lasts time.Duration) {
	c.t.Helper()
	for began := time.Now(); time.Since(began) < lasts; {
		for _, n := range c.nodes {
			n.taken(c.t, c.ledger, 10)
		}
	}
}

// latest takes an ID, and returns its time and its node ID.
func (n *node) latest(c *connection) (time.Time, int64, error) {
	if err := c.one(); err != nil {
		return time.Time{}, 0, err
	}
	at, err := ids.Default.Time(ids.ID(c.last))
	if err != nil {
		return time.Time{}, 0, err
	}
	id, err := ids.Default.NodeID(ids.ID(c.last))
	return at, id, err
}

// nodeIDs are those that the nodes use now.
func (c *clocked) nodeIDs() (all []int64) {
	c.t.Helper()
	for _, n := range c.nodes {
		_, id, err := n.latest(n.connect(c.t, c.ledger))
		if err != nil {
			c.t.Fatalf("%s: %v", n.name, err)
		}
		all = append(all, id)
	}
	return all
}

// follow waits until the time in the IDs of all nodes is that of clocks that are off by so much, and returns how long
// that takes.
func (c *clocked) follow(off time.Duration) time.Duration {
	c.t.Helper()
	began := time.Now()
	for _, n := range c.nodes {
		to := n.connect(c.t, c.ledger)
		eventually(c.t, func() error {
			at, _, err := n.latest(to)
			if apart := time.Until(at) - off; err == nil && apart.Abs() > time.Second {
				err = fmt.Errorf("%s: its IDs are %v from its clock", n.name, apart)
			}
			return err
		})
	}
	return time.Since(began)
}

// onlyAsks demands that nothing but questions about clocks is in the log after a position, and returns how many there
// are.
func (c *clocked) onlyAsks(after int64) (asks int) {
	c.t.Helper()
	log, err := c.nodes[0].firn("cluster", "log", "--admin="+c.nodes[0].admin, fmt.Sprint("--from=", after+1), "--json")
	if err != nil {
		c.t.Fatalf("%v: %s", err, log)
	}
	for line := range strings.Lines(log) {
		if asks++; !strings.Contains(line, "ask-clocks") {
			c.t.Errorf("while clocks stepped, this came into the log: %s", line)
		}
	}
	return asks
}

// undisturbed demands that clocks which stepped disturbed nobody: the nodes have the node IDs from before, nothing but
// questions is in the log after a position, and no caller was refused.
func (c *clocked) undisturbed(before []int64, after int64) {
	c.t.Helper()
	if now := c.nodeIDs(); !slices.Equal(now, before) {
		c.t.Errorf("the nodes had the node IDs %v, and now %v", before, now)
	}
	c.t.Logf("%d questions", c.onlyAsks(after))
	c.unnoticed(c.nodes...)
	c.ledger.unique(c.t, 1000)
}

// position is how far the first node has read the log.
func (c *clocked) position() int64 {
	c.t.Helper()
	v, err := c.nodes[0].view()
	if err != nil {
		c.t.Fatal(err)
	}
	return v.Position
}

// firn runs a command on the node's machine: with its clock.
func (n *node) firn(args ...string) (string, error) {
	n.t.Helper()
	path, err := firnSteppable()
	if err != nil {
		n.t.Fatal(err)
	}
	command := exec.Command(path, args...)
	command.Env = append(os.Environ(), "FAKE_WALL_FILE="+n.clockAt)
	out, err := command.CombinedOutput()
	return string(out), err
}

// told waits until the node is not ready for its clock, and says so with these words wherever somebody may look: at
// /readyz, with firn id, with firn cluster status, with firn doctor.
func (c *clocked) told(n *node, words string) {
	c.t.Helper()
	eventually(c.t, func() error {
		_, err := exchange(caller, http.MethodGet, n.url+"/readyz", "", nil)
		var no *refused
		if !errors.As(err, &no) || no.code != "clock" || !said(no.body, words) {
			return fmt.Errorf("%s is ready, or does not say %q: %w", n.name, words, err)
		}
		return nil
	})
	c.says(n, words, "id", "--server="+n.url)
	c.says(n, words[strings.LastIndex(words, ")")+1:], "cluster", "status", "--admin="+n.admin)
	c.says(n, words, append([]string{
		"doctor", "--http-addr=" + strings.TrimPrefix(n.url, "http://"),
		"--admin-addr=" + strings.TrimPrefix(n.admin, "http://"),
	}, c.args...)...)
}

// said reports whether a text says what a pattern matches.
func said(text, words string) bool { return regexp.MustCompile(words).MatchString(text) }

// says waits until a command says something on the node's machine.
func (c *clocked) says(n *node, words string, args ...string) {
	c.t.Helper()
	eventually(c.t, func() error {
		if out, _ := n.firn(args...); !said(out, words) {
			return fmt.Errorf("firn %s does not say %q at %s:\n%s", strings.Join(args, " "), words, n.name, out)
		}
		return nil
	})
}

// excluded demands that a node which does not wait ends with status 3, and says why.
func (c *clocked) excluded(off time.Duration, words string) {
	c.t.Helper()
	n := c.start(off)
	if status := n.ended(); status != 3 || !said(n.log.String(), words) {
		c.t.Errorf("%s ended with status %d, or does not say %q:\n%s", n.name, status, words, n.log)
	}
}

// putRight puts a node's clock right, and demands that it is served soon.
func (c *clocked) putRight(n *node) {
	c.t.Helper()
	began := time.Now()
	n.step(0)
	n.ready(c.t, c.ledger)
	took := time.Since(began)
	c.t.Logf("%s is served %v after its clock was put right", n.name, took.Round(time.Millisecond))
	if took > rightAgain {
		responsive.Errorf(c.t, began, "%s is served %v after its clock was put right; want %v", n.name,
			took, rightAgain)
	}
}

// All clocks step together: by a minute, as when a hypervisor corrects them, and by an hour. They agree, so nobody
// notices: no call fails, no node ID changes, nothing but questions is written. The nodes follow within a third of the
// window.
func TestAllClocksStepAhead(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	c := newClocked(t, 30*time.Second, 3)
	before, from := c.nodeIDs(), c.position()
	for _, off := range []time.Duration{time.Minute, time.Minute + time.Hour} {
		began := time.Now()
		c.step(off)
		took := c.follow(off)
		t.Logf("all clocks off by %v: followed after %v", off, took.Round(time.Millisecond))
		if took > c.window/3 {
			responsive.Errorf(t, began, "the nodes followed their clocks after %v; want %v", took, c.window/3)
		}
		c.served(time.Second)
	}
	c.undisturbed(before, from)
}

// Storms of small steps on all nodes, and a step back of all by an hour, disturb nobody: the time of a node never goes
// back.
func TestClocksStepAboutAndBack(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	c := newClocked(t, 6*time.Second, 3)
	before, from := c.nodeIDs(), c.position()
	for began := time.Now(); time.Since(began) < c.window; {
		for _, n := range c.nodes {
			n.step(time.Duration(rand.Int64N(int64(4*time.Second))) - 2*time.Second)
		}
		c.served(200 * time.Millisecond)
	}
	c.step(-time.Hour)
	c.served(c.window + c.window/3) // horizons move on
	c.undisturbed(before, from)
}

// A clock that three others contradict by more than 10 s keeps its node from being served, whichever way it is off, and
// says so; the three notice nothing. Once it is right the node is served within seconds.
func TestOneClockAgainstThree(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	c := newClocked(t, 6*time.Second, 3)
	c.excluded(-time.Hour, "this clock is "+anHour+" behind 3 of 3 others")
	c.excluded(12*time.Second, "this clock is "+twelve+" ahead of 3 of 3 others")
	c.excluded(-12*time.Second, "this clock is "+twelve+" behind 3 of 3 others")
	for _, off := range []time.Duration{9 * time.Second, -9 * time.Second} {
		n := c.start(off)
		c.joins(n)
		c.leaves(n)
	}

	late := c.start(-time.Hour, "--wait")
	c.told(late, "clock is "+anHour+" behind 3 of 3 others")
	c.putRight(late)
	c.joins(late)
	c.leaves(late)

	leaps := c.nodes[2]
	leaps.step(2 * time.Hour)
	c.told(leaps, "clock is "+twoHours+" ahead of 2 of 2 others") // once it has used up its window
	c.putRight(leaps)
	c.loads[leaps].finish()
	c.unnoticed(c.nodes[:2]...)
	c.ledger.unique(t, 1000)
}

// The clock of the first node is an hour late. Two with the right time join: against one alone the second is believed,
// and the third makes it a majority, so that the first is told.
func TestTheFirstClockIsLate(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	c := newClocked(t, 6*time.Second, 0)
	first := c.start(-time.Hour, "--wait")
	c.joins(first)
	c.joins(c.start(0))
	c.joins(c.start(0))
	c.told(first, "clock is "+anHour+" behind 2 of 2 others")
	c.loads[first].finish()
	c.putRight(first)
	c.unnoticed(c.nodes[1:]...)
	c.ledger.unique(t, 300)
}

// Two of four clocks step by an hour. Nobody knows who is right: all are served, and warn.
func TestTwoHalvesAnHourApart(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	c := newClocked(t, 6*time.Second, 4)
	before, from := c.nodeIDs(), c.position()
	for _, n := range c.nodes[:2] {
		n.step(time.Hour)
	}
	for _, n := range c.nodes {
		eventually(t, func() error {
			if !said(n.log.String(), "level=WARN .*1 of 3 others agree with this clock, and 2 do not") {
				return fmt.Errorf("%s does not warn:\n%s", n.name, n.log)
			}
			return nil
		})
	}
	c.served(2 * c.window) // horizons move on
	c.undisturbed(before, from)
}

// A node alone ran with a clock in 2094, and starts again with the right one. Its IDs are smaller than those before: it
// says so, or waits if it was told to.
func TestIDsAreAheadOfTheClock(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	const years = 68 * 365 * 24 * time.Hour
	c := newClocked(t, 6*time.Second, 0)
	future := c.start(years)
	c.joins(future)
	future.taken(t, c.ledger, 100)
	c.leaves(future)

	waits := c.start(0, "--if-ids-are-ahead=wait")
	if status := waits.ended(); status != 3 || !strings.Contains(waits.log.String(), "2094") {
		t.Errorf("%s ended with status %d:\n%s", waits.name, status, waits.log)
	}
	waits = c.start(0, "--if-ids-are-ahead=wait", "--wait")
	c.told(waits, "2094")
	waits.kill()

	goes := c.start(0)
	c.joins(goes)
	if log := goes.log.String(); !said(log, "level=WARN .*new IDs are unique, but smaller.*2094") {
		t.Errorf("%s does not warn of smaller IDs:\n%s", goes.name, log)
	}
	c.says(goes, "2094.*With --if-ids-are-ahead wait a node waits", "cluster", "status", "--admin="+goes.admin)
	goes.taken(t, c.ledger, 100)
	c.unnoticed(goes)
	c.ledger.unique(t, 200)
}
