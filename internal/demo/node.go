package demo

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

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/node"
	"github.com/firn-id/firn/internal/server/ui"
	"github.com/firn-id/firn/member"
)

// host is a host in a demo where a node runs, or could.
type host struct {
	number int
	store  *sharedStore
	config node.Config  // its addresses are those of the first process from then on
	url    string       // where it serves everybody
	admin  *url.URL     // where it serves administrators
	offset atomic.Int64 // how far its clock is ahead of the right time, in nanoseconds

	mu      sync.Mutex        // guards what follows
	process *process          // the latest; nil before the first
	former  map[string]uint64 // how many IDs the processes before gave, by sequencer
}

// process is a node from its start to its end.
type process struct {
	node  *node.Node
	gate  *gate
	clock *firn.SteadyClock
	store *client
	end   context.CancelCauseFunc
	done  chan struct{} // closed when it has ended
	err   error         // why, once it has

	paused atomic.Bool
}

var errKilled = errors.New("killed by firn demo")

// start begins a process. An error is returned when its addresses are taken.
func (d *host) start() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := &process{gate: &gate{}, clock: d.clock(), store: d.store.open(d.config.Owner), done: make(chan struct{})}
	c := d.config
	c.Clock = l.clock
	c.Store = func() (node.Store, error) { return l.store, nil }
	c.Wrap = func(inner net.Listener) net.Listener { return gated{inner, l.gate} }
	var err error
	if l.node, err = node.New(c); err == nil {
		err = l.node.Listen()
	}
	if err != nil {
		_ = l.store.Close() // nothing was written
		return err
	}
	d.keepAddresses(l.node)
	ctx, end := context.WithCancelCause(context.Background())
	l.end = end
	go func() {
		defer close(l.done)
		l.err = l.node.Run(ctx)
	}()
	d.former, d.process = d.givenLocked(), l
	return nil
}

// given is how many IDs it has given since the demo began, by sequencer, over all of its processes.
func (d *host) given() map[string]uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.givenLocked()
}

func (d *host) givenLocked() map[string]uint64 {
	all := maps.Clone(d.former)
	if d.process == nil {
		return all
	}
	for name, n := range d.process.node.Given() {
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
func (d *host) ids() (n int64) {
	for _, given := range d.given() {
		n += int64(given)
	}
	return n
}

// clock is this machine's, wrong by the offset at every moment.
func (d *host) clock() *firn.SteadyClock {
	start := time.Now()
	return firn.NewSteadyClockFrom(0, func() (wall, mono int64) {
		now := time.Now()
		return now.UnixNano() + d.offset.Load(), int64(now.Sub(start))
	})
}

// keepAddresses has every process listen where the first one did.
func (d *host) keepAddresses(n *node.Node) {
	d.config.HTTPAddr, d.config.AdminAddr = n.Addr(node.Public), n.Addr(node.Admin)
	d.url = "http://" + node.Reachable(d.config.HTTPAddr)
	d.admin = &url.URL{Scheme: "http", Host: node.Reachable(d.config.AdminAddr)}
}

// running is the process that goes on; nil when there is none.
func (d *host) running() *process {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.process == nil {
		return nil
	}
	select {
	case <-d.process.done:
		return nil
	default:
		return d.process
	}
}

// kill ends a process as kill -9 does: nobody is answered any more, and the store hears nothing, so that nothing is given back.
// It returns when what is left of it in this process has ended.
func (l *process) kill() {
	l.store.setCut(true)
	l.node.Stop()
	l.end(errKilled)
	_ = l.store.Close() // its sessions are left to expire, since it is cut off
	l.gate.open()       // what waits there finds its connection closed
	<-l.done
}

// stop ends a process in order.
func (l *process) stop(why error) {
	l.end(why)
	<-l.done
}

// pause has the node hang, or go on. It tells whether that changed anything.
func (l *process) pause(paused bool) bool {
	if l.paused.Swap(paused) == paused {
		return false
	}
	if paused {
		l.gate.shut()
		l.store.setCut(true)
	} else {
		l.store.setCut(false)
		l.gate.open()
	}
	return true
}

// ready returns nil when it gives IDs.
func (l *process) ready() error { return l.node.Ready() }

// nodeID is the node ID that it has in the default sequencer, for all that it knows.
func (l *process) nodeID() (int64, bool) {
	q, ok := l.node.Value().Sequencer(member.DefaultSequencer)
	if !ok {
		return 0, false
	}
	return q.Node(l.node.MemberID())
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
