package e2e

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/responsive"
	"github.com/firn-id/firn/internal/testenv"
)

// wired are keepers on machines of a network of their own.
type wired struct {
	*keepers
	lan *lan
	at  map[*keeper]*machine
}

// newWired makes three machines on a network of their own, and starts none.
func newWired(t *testing.T, args ...string) *wired {
	t.Helper()
	path, err := firn()
	if err != nil {
		t.Fatal(err)
	}
	w := &wired{keepers: noKeepers(t, args...), lan: newLAN(t), at: map[*keeper]*machine{}}
	for i := range 3 {
		m := w.lan.plug(fmt.Sprint("ids", i+1), fmt.Sprint("10.78.0.", 11+i))
		k := w.machine(m.address+":7420", m.address+":8080", "127.0.0.1:9080", m.dial)
		k.launch = func(args ...string) (process, *lines) {
			p := m.run(path, append([]string{"serve"}, args...)...)
			return p, p.log
		}
		w.list, w.at[k] = append(w.list, k), m
	}
	return w
}

// callers take IDs at each node, from the machine on which it is, and ask the next node once more if that fails.
func (w *wired) callers() *audience {
	var urls []string
	for _, k := range w.list {
		urls = append(urls, k.url)
	}
	return newAudience(w.t, w.ledger, w.dial, urls...)
}

// dial opens a connection to a node from the machine on which it is.
func (w *wired) dial(ctx context.Context, network, address string) (net.Conn, error) {
	for k, m := range w.at {
		if strings.TrimPrefix(k.url, "http://") == address {
			return m.dial(ctx, network, address)
		}
	}
	return nil, fmt.Errorf("no node is at %s", address)
}

// mute has what the machine sends to another one get lost; hear ends that.
func (m *machine) mute(other *machine) {
	m.t.Helper()
	m.lan.ip("-n", m.namespace, "neighbor", "replace", other.address, "lladdr", "02:00:00:00:00:00", "dev", "eth0", "nud", "permanent")
}

func (m *machine) hear(other *machine) {
	m.t.Helper()
	m.lan.ip("-n", m.namespace, "neighbor", "delete", other.address, "dev", "eth0")
}

// Each link between two machines is cut, in one direction and in both. No caller notices: a majority reaches every node.
func TestEachLinkOfAQuorumIsCut(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	w := newWired(t, soonWindow)
	w.start()
	c := w.callers()
	cut := func(what string, links ...[2]*keeper) {
		c.served(10)
		for _, l := range links {
			w.at[l[0]].mute(w.at[l[1]])
		}
		begun := time.Now()
		for range 2 { // the first may be on its way
			w.extendAgain(w.list...)
		}
		t.Logf("%s: two horizons of each node were written in %v", what, time.Since(begun).Round(time.Millisecond))
		for _, l := range links {
			w.at[l[0]].hear(w.at[l[1]])
		}
		w.whole()
	}
	for i, a := range w.list {
		for _, b := range w.list[i+1:] {
			cut(fmt.Sprintf("what %s sends to %s is lost", a.address, b.address), [2]*keeper{a, b})
			cut(fmt.Sprintf("what %s sends to %s is lost", b.address, a.address), [2]*keeper{b, a})
			cut(fmt.Sprintf("all between %s and %s is lost", a.address, b.address), [2]*keeper{a, b}, [2]*keeper{b, a})
		}
	}
	w.unnoticed(c)
	w.ledger.unique(t, 1000)
}

// Each machine is cut off from the others. Its node gives IDs up to its horizon, and then refuses, until the machine is back:
// then it gives IDs again by itself. At the other nodes no call fails.
func TestEachMachineOfAQuorumIsCutOff(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	w := newWired(t, soonWindow)
	w.start()
	c := w.callers()
	for i, k := range w.list {
		c.served(10)
		cut := time.Now()
		k.goesDown()
		w.at[k].cut()
		eventually(t, func() error {
			if c.refusedAt(i, cut).IsZero() {
				return fmt.Errorf("%s still gives IDs", k.name)
			}
			return nil
		})
		w.extendAgain(w.others(k)...)
		if took := c.refusedAt(i, cut).Sub(cut); took < soon/2 {
			t.Errorf("%s refuses %v after it was cut off; its horizon was further ahead", k.name, took)
		} else if took > soon+2*time.Second {
			responsive.Errorf(t, cut, "%s refuses %v after it was cut off; its horizon was %v ahead at most", k.name, took, soon)
		}
		w.at[k].mend()
		begun := time.Now()
		k.ready()
		w.lasted("a machine that was cut off is ready again", begun, 5*time.Second)
		w.whole()
	}
	for _, made := range c.all503() {
		t.Errorf("a call failed in another way than with 503: %v", made)
	}
	w.unnoticed(c)
	w.ledger.unique(t, 1000)
}

// refusedAt is when the first call began that failed at a node, of those after a moment; zero: none did.
func (c *audience) refusedAt(node int, after time.Time) (at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, made := range c.calls {
		if made.node == node && made.first != nil && made.began.After(after) && (at.IsZero() || made.began.Before(at)) {
			at = made.began
		}
	}
	return at
}

// all503 are the first tries that failed otherwise.
func (c *audience) all503() (otherwise []error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, made := range c.calls {
		if made.first != nil && !strings.HasPrefix(made.first.Error(), "status 503: ") {
			otherwise = append(otherwise, made.first)
		}
	}
	return otherwise
}
