//go:build unix

package e2e

import (
	"fmt"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/core/fence"
	"github.com/firn-id/firn/internal/test/etcdtest"
	"github.com/firn-id/firn/internal/test/testenv"
	"github.com/firn-id/firn/store/etcdstore"
)

// stop freezes the process, and returns when each of its threads stands still.
func (n *node) stop() {
	n.t.Helper()
	n.signal(syscall.SIGSTOP)
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(n.cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || !status.Stopped() {
			n.t.Fatalf("%s has not stopped: %v, %v", n.name, err, status)
		}
		return
	}
}

// freeze freezes the node, and returns up to when it may use its node ID of a sequencer, as it has written down.
// Whether it still holds that does not matter.
func (n *node) freeze(name string, s *etcdstore.Store) time.Time {
	n.t.Helper()
	v, err := n.view()
	if err != nil {
		n.t.Fatal(err)
	}
	q, err := n.sequencer(name)
	if err != nil {
		n.t.Fatal(err)
	}
	n.stop()
	owners, err := fence.Owners(n.t.Context(), s, "sequencers/"+name+"/workers/")
	if err != nil {
		n.t.Fatal(err)
	}
	for _, o := range owners {
		if q.Nodes[o.Node] == v.Member {
			return o.Horizon
		}
	}
	n.t.Fatalf("%s, %s, has no node ID: %v", n.name, v.Member, q.Nodes)
	return time.Time{}
}

// pressure is load on a sequencer that has its ups and downs.
type pressure struct {
	t    *testing.T
	u    *ups
	end  chan struct{}
	done sync.WaitGroup
}

func (p *pressure) on(n *node) {
	c := n.connectTo(p.t, p.u.name, &p.u.ledger)
	p.done.Go(func() {
		for {
			select {
			case <-p.end:
				return
			case <-time.After(2 * time.Millisecond):
			}
			steps, floor := p.u.asks()
			err := c.one()
			switch codeOf(err) {
			case "unknown_sequencer", "not_ready", "waiting":
				continue
			}
			if err == nil {
				err = p.u.gave(c, steps, floor)
			}
			if err != nil {
				p.t.Errorf("%s: %v", n.name, err)
				return
			}
		}
	})
}

// A sequencer is destroyed while eight nodes make its IDs, one of which is frozen and can't be told. Who destroys it is
// told when no ID can be made any more, or until when; not before the horizon of the frozen one. From then on nobody
// makes any, nor does the frozen one when it goes on. Those of the next of that name exceed them, alike or different.
func TestDestroyedEverywhere(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	for _, c := range []struct {
		window time.Duration
		status int
		next   []string // what is created under the name, one after the other
	}{
		{
			window, http.StatusOK,
			[]string{`"nodes":128`, `"nodes":16`, `"nodes":512,"allocation":{"kind":"percent","percent":50}`},
		},
		{15 * time.Second, http.StatusAccepted, []string{`"nodes":128`}}, // beyond what the call waits for
	} {
		t.Run(fmt.Sprint("a window of ", c.window), func(t *testing.T) {
			t.Parallel()
			server := etcdtest.Start(t, etcdtest.Options{})
			s := logOf(t, server)
			nodes := fleet(t, 8, with(server, "--ttl="+ttl.String(), "--window="+c.window.String())...)
			p := &pressure{t: t, u: &ups{name: "orders"}, end: make(chan struct{})}
			end := sync.OnceFunc(func() {
				close(p.end)
				p.done.Wait()
			})
			defer func() {
				for _, n := range nodes {
					_ = n.cmd.Process.Signal(syscall.SIGCONT) // for those who wait for its answer
				}
				end()
			}()
			nodes[0].mustCreate(p.u.name, `"nodes":128`)
			for _, n := range nodes {
				n.mustAttach(p.u.name)
				p.on(n)
			}
			for i, fields := range c.next {
				for _, n := range nodes {
					n.taken(t, &p.u.ledger, 20)
				}
				frozen, other := nodes[i], nodes[7-i]
				horizon := frozen.freeze(p.u.name, s)
				begun := time.Now()
				status, d, err := other.destroy(p.u.name)
				took := time.Since(begun)
				if status != c.status || err != nil || !d.Destroyed {
					t.Fatalf("destroying it: %d, %+v, %v after %v", status, d, err, took)
				}
				t.Logf("the answer %d came after %v, the horizon of the frozen one was at %v", status,
					took.Round(time.Millisecond), horizon.Sub(begun).Round(time.Millisecond))
				quiet := time.Now()
				if status == http.StatusAccepted {
					if d.Until == nil {
						t.Fatalf("it does not say until when: %+v", d)
					}
					quiet = *d.Until
					<-time.After(time.Until(quiet))
				}
				if quiet.Before(horizon) {
					t.Errorf("it is to be quiet %v before the horizon of the frozen one", horizon.Sub(quiet))
				}
				p.u.gone()
				frozen.signal(syscall.SIGCONT)
				for _, n := range nodes {
					eventually(t, func() error {
						err := n.connectTo(t, p.u.name, &p.u.ledger).one()
						if codeOf(err) == "unknown_sequencer" {
							return nil
						}
						if err == nil {
							t.Errorf("%s gives an ID", n.name)
						}
						return fmt.Errorf("%s still knows it: %w", n.name, err)
					})
				}
				p.u.coming()
				other.mustCreate(p.u.name, fields)
				for _, n := range nodes {
					n.mustAttach(p.u.name)
				}
			}
			for _, n := range nodes {
				n.taken(t, &p.u.ledger, 20)
			}
			end()
			becomeOneRing(t, ttl+slack, nodes)
			sameValue(t, nodes)
			p.u.ledger.unique(t, 200)
		})
	}
}
