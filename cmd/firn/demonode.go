package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/server/auth"
	"github.com/firn-id/firn/internal/server/ui"
	"github.com/firn-id/firn/member"
)

// demoNode is a place in a demo where a node runs, or could.
type demoNode struct {
	number int
	store  *demoStore
	flags  map[string]string // of firn serve; its addresses are those of the first life from then on
	logs   io.Writer
	secret *auth.Secret          // of the demo
	all    func() []ui.NodeGiven // how many IDs each node of the demo has given
	url    string                // where it serves everybody
	admin  *url.URL              // where it serves administrators
	offset atomic.Int64          // how far its clock is ahead of the right time, in nanoseconds

	mu     sync.Mutex        // guards what follows
	life   *demoLife         // the latest; nil before the first
	former map[string]uint64 // how many IDs the lives before gave, by sequencer
}

// demoLife is a node from its start to its end.
type demoLife struct {
	node   *node
	fronts *fronts
	store  *demoClient
	end    context.CancelCauseFunc
	done   chan struct{} // closed when it has ended
	err    error         // why, once it has

	paused atomic.Bool
}

var errKilled = errors.New("killed by firn demo")

// start begins a life. An error is returned when its addresses are taken.
func (d *demoNode) start() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, err := d.settings()
	if err != nil {
		return err
	}
	n, err := newNode(s, prefixed{d.logs, fmt.Sprintf("node %d: ", d.number)})
	if err != nil {
		return err
	}
	n.owner, n.gate, n.clock, n.given = fmt.Sprintf("node %d", d.number), &gate{}, d.clock(), d.all
	n.secret, n.told = d.secret, true
	l := &demoLife{node: n, store: d.store.open(n.owner), done: make(chan struct{})}
	n.open = func() (closingStore, error) { return l.store, nil }
	if l.fronts, err = n.listen(); err != nil {
		_ = l.store.Close() // nothing was written
		return err
	}
	d.keepAddresses(l.fronts)
	ctx, end := context.WithCancelCause(context.Background())
	l.end = end
	go func() {
		defer close(l.done)
		l.err = n.live(ctx, l.fronts)
	}()
	d.former, d.life = d.givenLocked(), l
	return nil
}

// given is how many IDs it has given since the demo began, by sequencer, over all of its lives.
func (d *demoNode) given() map[string]uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.givenLocked()
}

func (d *demoNode) givenLocked() map[string]uint64 {
	all := maps.Clone(d.former)
	if d.life == nil {
		return all
	}
	for name, n := range d.life.node.service.Given() {
		if all == nil {
			all = map[string]uint64{}
		}
		all[name] += n
	}
	return all
}

// given is how many IDs each node has given since the demo began, for its page.
func (d *demo) given() (all []ui.NodeGiven) {
	for _, n := range d.nodes {
		all = append(all, ui.NodeGiven{Name: fmt.Sprintf("node %d", n.number), Given: n.given()})
	}
	return all
}

// ids is how many IDs it has given in all.
func (d *demoNode) ids() (n int64) {
	for _, given := range d.given() {
		n += int64(given)
	}
	return n
}

// settings are those of firn serve with the node's flags.
func (d *demoNode) settings() (settings, error) {
	var o serveOptions
	c := &cobra.Command{}
	flags := c.Flags()
	o.add(c, flags)
	for name, text := range d.flags {
		if err := flags.Set(name, text); err != nil {
			return settings{}, flagError(c, err)
		}
	}
	return o.settings(flags, sources{})
}

// clock is this machine's, wrong by the offset at every moment.
func (d *demoNode) clock() *firn.SteadyClock {
	start := time.Now()
	return firn.NewSteadyClockFrom(0, func() (wall, mono int64) {
		now := time.Now()
		return now.UnixNano() + d.offset.Load(), int64(now.Sub(start))
	})
}

// keepAddresses has every life listen where the first one did.
func (d *demoNode) keepAddresses(f *fronts) {
	address := map[string]string{}
	for _, one := range f.all {
		address[one.name] = one.listener.Addr().String()
	}
	d.flags["http-addr"], d.flags["admin-addr"] = address["addr"], address["admin_addr"]
	d.url = "http://" + reachable(address["addr"])
	d.admin = &url.URL{Scheme: "http", Host: reachable(address["admin_addr"])}
}

// reachable is an address to connect to for one to listen on.
func reachable(address string) string {
	host, port, _ := net.SplitHostPort(address)
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// running is the life that goes on; nil when there is none.
func (d *demoNode) running() *demoLife {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.life == nil {
		return nil
	}
	select {
	case <-d.life.done:
		return nil
	default:
		return d.life
	}
}

// kill ends a life as kill -9 does: nobody is answered any more, and the store hears nothing, so that nothing is given back.
// It returns when what is left of it in this process has ended.
func (l *demoLife) kill() {
	l.store.setCut(true)
	l.fronts.stop(l.node, 0)
	l.end(errKilled)
	_ = l.store.Close() // its sessions are left to expire, since it is cut off
	l.node.gate.open()  // what waits there finds its connection closed
	<-l.done
}

// stop ends a life in order.
func (l *demoLife) stop(why error) {
	l.end(why)
	<-l.done
}

// pause has the node hang, or go on. It tells whether that changed anything.
func (l *demoLife) pause(paused bool) bool {
	if l.paused.Swap(paused) == paused {
		return false
	}
	if paused {
		l.node.gate.shut()
		l.store.setCut(true)
	} else {
		l.store.setCut(false)
		l.node.gate.open()
	}
	return true
}

// ready returns nil when it gives IDs.
func (l *demoLife) ready() error { return l.node.service.Ready() }

// nodeID is the node ID that it has in the default sequencer, for all that it knows.
func (l *demoLife) nodeID() (int64, bool) {
	q, ok := l.node.member.Value().Sequencer(member.DefaultSequencer)
	if !ok {
		return 0, false
	}
	return q.Node(l.node.member.ID())
}

// prefixed writes lines with something in front.
type prefixed struct {
	w      io.Writer
	prefix string
}

func (p prefixed) Write(line []byte) (int, error) {
	_, err := io.WriteString(p.w, p.prefix+strings.TrimSuffix(string(line), "\n")+"\n")
	return len(line), err
}
