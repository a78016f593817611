package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
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
	"github.com/firn-id/firn/store/memstore"
)

// host is a machine of a demo: it runs one node, or could, and has a clock.
type host struct {
	demo    *demo
	number  int
	config  node.Config             // from the first process on with the addresses that it listens on
	url     string                  // where it serves everybody
	admin   *url.URL                // where it serves administrators
	offset  atomic.Int64            // how far its clock is ahead of the right time, in nanoseconds
	process atomic.Pointer[process] // the latest; nil before the first
}

// process is a node from its start to its end.
type process struct {
	host   *host
	node   *node.Node
	gate   sync.RWMutex // locked while it is paused
	clock  *firn.SteadyClock
	store  *memstore.Client
	former map[string]uint64 // how many IDs the processes before gave, by sequencer
	paused atomic.Bool
	end    context.CancelCauseFunc
	done   chan struct{} // closed when it has ended
	err    error         // why, once it has
}

var (
	errKilled = errors.New("killed by firn demo")
	errEnds   = errors.New("the demo ends")
)

// newHost returns a host of a number, from 1, on which nothing runs yet.
func (d *demo) newHost(number int) *host {
	h := &host{demo: d, number: number, config: node.Defaults()}
	c := &h.config
	c.HTTPAddr, _ = portAfter(d.config.HTTPAddr, number-1) // they were checked
	c.AdminAddr, _ = portAfter(d.config.AdminAddr, number)
	c.TTL, c.Window, c.Wait = d.config.TTL, d.config.Window, true
	c.DrainDelay, c.ShutdownTimeout = 0, 2*time.Second
	c.Owner, c.Secret, c.Given = fmt.Sprintf("node %d", number), d.secret, d.given
	c.Logger = slog.New(slog.NewTextHandler(prefixed{d.config.Logs, c.Owner + ": "}, nil))
	return h
}

// start begins a process. An error is returned when its addresses are taken.
func (h *host) start() (err error) {
	start := time.Now()
	p := &process{host: h, store: h.demo.store.Client(h.config.Owner), former: h.given(), done: make(chan struct{})}
	p.clock = firn.NewSteadyClockFrom(0, func() (wall, mono int64) { // this machine's, wrong by the offset at every moment
		now := time.Now()
		return now.UnixNano() + h.offset.Load(), int64(now.Sub(start))
	})
	p.reach()
	c := h.config
	c.Clock = p.clock
	c.Store = func() (node.Store, error) { return p.store, nil }
	c.Wrap = func(inner net.Listener) net.Listener { return gated{inner, &p.gate} }
	if p.node, err = node.New(c); err == nil {
		err = p.node.Listen()
	}
	if err != nil {
		_ = p.store.Close() // nothing was written
		return err
	}
	if h.url == "" {
		h.config.HTTPAddr, h.config.AdminAddr = p.node.Addr(node.Public), p.node.Addr(node.Admin)
		h.url = "http://" + node.Reachable(h.config.HTTPAddr)
		h.admin = &url.URL{Scheme: "http", Host: node.Reachable(h.config.AdminAddr)}
	}
	var ctx context.Context
	ctx, p.end = context.WithCancelCause(context.Background())
	go func() {
		defer close(p.done)
		p.err = p.node.Run(ctx)
	}()
	h.process.Store(p)
	return nil
}

// running returns the process that runs; nil when none does.
func (h *host) running() *process {
	p := h.process.Load()
	if p == nil {
		return nil
	}
	select {
	case <-p.done:
		return nil
	default:
		return p
	}
}

// given is how many IDs it has given since the demo began, by sequencer.
func (h *host) given() map[string]uint64 {
	p := h.process.Load()
	if p == nil {
		return nil
	}
	all := p.node.Given()
	for name, n := range p.former {
		all[name] += n
	}
	return all
}

// given is how many IDs each node has given since the demo began, for its page.
func (d *demo) given() (all []ui.NodeGiven) {
	for _, h := range d.hosts {
		all = append(all, ui.NodeGiven{Name: h.config.Owner, Given: h.given()})
	}
	return all
}

// kill ends a process as kill -9 does: nobody is answered any more, and the store hears nothing, so that nothing is given back.
// It returns when what is left of it in this process has ended.
func (p *process) kill() {
	p.store.CutOff(true)
	p.node.Stop()
	p.end(errKilled)
	_ = p.store.Close() // its sessions are left to expire, since it is cut off
	if p.paused.Load() {
		p.gate.Unlock() // what waits there finds its connection closed
	}
	<-p.done
}

// pause has the node hang, or go on. It tells whether that changed anything.
func (p *process) pause(paused bool) bool {
	if p.paused.Swap(paused) == paused {
		return false
	}
	if paused {
		p.gate.Lock()
	}
	p.reach()
	if !paused {
		p.gate.Unlock()
	}
	return true
}

// reach puts the store within the process's reach, or out of it.
func (p *process) reach() { p.store.CutOff(p.paused.Load() || p.host.demo.stopped.Load()) }

// nodeID is the node ID that it has in the default sequencer, for all that it knows.
func (p *process) nodeID() (int64, bool) {
	q, ok := p.node.Value().Sequencer(member.DefaultSequencer)
	if !ok {
		return 0, false
	}
	return q.Node(p.node.MemberID())
}

// gated is a listener behind a gate, which everything that comes to a node, and goes from it, has to pass. While the gate is
// locked the node seems to hang, as after kill -STOP: callers are connected, and hear nothing.
type gated struct {
	net.Listener
	gate *sync.RWMutex
}

func (l gated) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return gatedConn{c, l.gate}, nil
}

type gatedConn struct {
	net.Conn
	gate *sync.RWMutex
}

// pass waits until the gate is not locked.
func (c gatedConn) pass() {
	c.gate.RLock()
	defer c.gate.RUnlock()
}

// Read also waits after it has read: that may be what came after the gate was locked.
func (c gatedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.pass()
	return n, err
}

func (c gatedConn) Write(b []byte) (int, error) {
	c.pass()
	return c.Conn.Write(b)
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
