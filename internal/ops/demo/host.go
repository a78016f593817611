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
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/node"
	"github.com/firn-id/firn/internal/service/ui"
	"github.com/firn-id/firn/store/memstore"
)

// host is a machine of a demo: it has a clock, and runs at most one node.
type host struct {
	demo    *demo
	number  int
	config  node.Config             // with the addresses it listens on, from the first process on
	url     string                  // URL for callers
	admin   *url.URL                // URL for administrators
	offset  atomic.Int64            // how far its clock is ahead of the right time, in nanoseconds
	process atomic.Pointer[process] // the latest; nil before the first
}

// process is one run of a node.
type process struct {
	host   *host
	node   *node.Node
	gate   sync.RWMutex // locked while the node is paused
	clock  *firn.SteadyClock
	store  *memstore.Client  // nil: the node is a machine of a quorum
	former map[string]uint64 // how many IDs earlier processes issued, by sequencer
	paused atomic.Bool
	killed atomic.Bool // it was a machine of a quorum
	end    context.CancelCauseFunc
	done   chan struct{} // closed when the process has ended
	err    error         // its error; set before done is closed
}

var (
	errKilled = errors.New("killed by firn demo")
	errEnds   = errors.New("the demo ends")
)

// newHost returns a host, numbered from 1, without a process.
func (d *demo) newHost(number int) *host {
	h := &host{demo: d, number: number, config: node.Defaults()}
	c := &h.config
	c.HTTPAddr, _ = portAfter(d.config.HTTPAddr, number-1) // Validate checked them
	c.AdminAddr, _ = portAfter(d.config.AdminAddr, number)
	c.TTL, c.Window, c.Wait = d.config.TTL, d.config.Window, true
	c.DrainDelay, c.ShutdownTimeout = 0, 2*time.Second
	c.Name, c.Secret, c.Given, c.Build.Version = fmt.Sprintf("node-%d", number), d.secret, d.given, d.config.Version
	if d.quorum != nil {
		d.quorum.configure(c, number)
	}
	c.Logger = slog.New(slog.NewTextHandler(prefixed{d.config.Logs, c.Name + ": "}, nil))
	return h
}

// start starts a process. It returns an error when an address is in use.
func (h *host) start() (err error) {
	start := time.Now()
	p := &process{host: h, former: h.given(), done: make(chan struct{})}
	p.clock = firn.NewSteadyClockFrom(0, func() (wall, mono int64) { // this machine's clock plus the offset
		now := time.Now()
		return now.UnixNano() + h.offset.Load(), int64(now.Sub(start))
	})
	c := h.config
	c.Clock = p.clock
	if h.demo.quorum == nil {
		p.store = h.demo.store.Client(h.config.Name)
		p.reach()
		c.Store = func() (node.Store, error) { return p.store, nil }
	}
	c.Wrap = func(inner net.Listener) net.Listener { return gated{inner, &p.gate} }
	if p.node, err = node.New(c); err == nil {
		err = p.node.Listen()
	}
	if err != nil {
		if p.store != nil {
			_ = p.store.Close() // it has no sessions yet
		}
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

// running returns the running process; nil: none.
func (h *host) running() *process {
	p := h.process.Load()
	if p == nil || p.killed.Load() {
		return nil
	}
	select {
	case <-p.done:
		return nil
	default:
		return p
	}
}

// given returns how many IDs the host has issued since the demo began, by sequencer.
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

// given returns how many IDs each node has issued since the demo began, for the cluster's page.
func (d *demo) given() (all []ui.NodeGiven) {
	for _, h := range d.hosts {
		all = append(all, ui.NodeGiven{Name: h.config.Name, Given: h.given()})
	}
	return all
}

// kill ends a process as kill -9 does: it answers no caller, and writes nothing to the store, so that it releases
// nothing. It returns when its addresses are free, and its data is.
func (p *process) kill() {
	if p.store == nil { // it gives up what it holds, and tries a while longer to leave the cluster
		p.killed.Store(true)
		p.end(errKilled)
		p.node.Kill()
		return
	}
	p.store.CutOff(true)
	p.node.Stop()
	p.end(errKilled)
	_ = p.store.Close() // its sessions expire by themselves, since it is cut off
	if p.paused.Load() {
		p.gate.Unlock() // waiting reads and writes find their connection closed
	}
	<-p.done
}

// pause makes the node hang, or go on. It reports whether that changed anything.
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

// reach connects the process to the store, or disconnects it.
func (p *process) reach() { p.store.CutOff(p.paused.Load() || p.host.demo.stopped.Load()) }

// nodeID returns the process's node ID in the default sequencer, as far as it knows.
func (p *process) nodeID() (int64, bool) {
	q, ok := p.node.Value().Sequencer(peer.DefaultSequencer)
	if !ok {
		return 0, false
	}
	return q.Node(p.node.MemberID())
}

// gated is a listener whose reads and writes pass a gate. While the gate is locked the node seems to hang, as
// after kill -STOP: callers connect, and get no answer.
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

// pass waits until the gate is open.
func (c gatedConn) pass() {
	c.gate.RLock()
	defer c.gate.RUnlock()
}

// Read also waits after it has read: the data may have come after the gate was locked.
func (c gatedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.pass()
	return n, err
}

func (c gatedConn) Write(b []byte) (int, error) {
	c.pass()
	return c.Conn.Write(b)
}

// prefixed writes lines with a prefix.
type prefixed struct {
	w      io.Writer
	prefix string
}

func (p prefixed) Write(line []byte) (int, error) {
	_, err := io.WriteString(p.w, p.prefix+strings.TrimSuffix(string(line), "\n")+"\n")
	return len(line), err
}
