// Package demo runs a cluster of several nodes in one process, on a store in memory or on one that they keep
// themselves, for people to try: it takes IDs from them all the time, and on command kills a node, sets its clock or
// stops the store. It prints to a writer. It has no flags: they, and the commands for a running demo, are in cmd/firn.
package demo

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/internal/ops/console"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/admit/secretfile"
	"github.com/firn-id/firn/internal/service/node"
	"github.com/firn-id/firn/store/memstore"
)

// The default addresses of a demo, which commands ask by default.
const (
	DefaultHTTPAddr  = "127.0.0.1:8080"
	DefaultAdminAddr = "127.0.0.1:9080"
)

// Config configures a demo.
type Config struct {
	Nodes  int   // 1 to 64; with Quorum 1, 3 or 5
	Quorum bool  // the nodes keep the store themselves
	Load   int64 // IDs to take per second, 0 to 1 000 000

	HTTPAddr  string // where node 1 listens, host:port; the others on the ports after it; port 0: any free port
	AdminAddr string // where the demo listens for administrators, on this machine only; the nodes on the ports after it

	TTL    time.Duration // how long a silent node remains a member
	Window time.Duration // for how long nodes issue IDs without the store

	Version string // of the program

	Out  io.Writer // gets what to try, and what happens
	Logs io.Writer // gets the nodes' logs; nil: dropped
}

const (
	mostNodes    = 64
	mostMachines = 5 // of a quorum
	mostLoad     = 1_000_000
)

// Validate returns a node.SettingError for a Config that is not valid.
func (c Config) Validate() error {
	wrong := func(setting, format string, args ...any) error {
		return &node.SettingError{Setting: setting, Err: fmt.Errorf(format, args...)}
	}
	host, _, _ := net.SplitHostPort(c.AdminAddr)
	switch {
	case c.Nodes < 1 || c.Nodes > mostNodes:
		return wrong("nodes", "%d; want at most %d in one process", c.Nodes, mostNodes)
	case c.Quorum && (c.Nodes%2 == 0 || c.Nodes > mostMachines):
		return wrong("nodes", "%d, and with --quorum each of them keeps the data; want 1, 3 or %d",
			c.Nodes, mostMachines)
	case c.Load > mostLoad:
		return wrong("load", "%d IDs a second; want at most %d", c.Load, mostLoad)
	case !auth.Loopback(host):
		return wrong("admin-addr", "others can reach %s, and could kill nodes; want 127.0.0.1 or [::1]", c.AdminAddr)
	}
	if _, err := portAfter(c.HTTPAddr, c.Nodes); err != nil {
		return wrong("http-addr", "%w", err)
	}
	if _, err := portAfter(c.AdminAddr, c.Nodes); err != nil {
		return wrong("admin-addr", "%w", err)
	}
	return nil
}

// portAfter returns an address with its port raised; port 0 stays 0.
func portAfter(address string, more int) (string, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	port, err := strconv.Atoi(text)
	switch {
	case err != nil:
		return "", err
	case port == 0:
		return address, nil
	case port+more > 65535:
		return "", fmt.Errorf("there are no %d ports from %d on", more+1, port)
	}
	return net.JoinHostPort(host, strconv.Itoa(port+more)), nil
}

// demo is a running demo.
type demo struct {
	config   Config
	self     string // how to call this program in a shell
	began    time.Time
	out      *console.StatusLine
	store    *memstore.Service // unless the nodes keep it themselves
	stopped  atomic.Bool       // no node reaches the store
	quorum   *machines         // replaces the store; nil: the demo has none
	hosts    []*host
	load     *background
	measured atomic.Pointer[Status] // updated once a second, with rates; nil before the first
	commands sync.Mutex             // held by the running command
	listener net.Listener
	server   *http.Server
	admin    string // the URL of administrators
	secret   *auth.Secret
	file     string // of the secret; empty: writing it failed
}

// Run runs a demo of a valid Config until ctx ends. It returns a node.SettingError when an address is in use, and
// an error when an ID came twice.
func Run(ctx context.Context, c Config) error {
	if c.Logs == nil {
		c.Logs = io.Discard
	}
	d := &demo{
		config: c, self: self(), began: time.Now(), out: console.NewStatusLine(c.Out),
		store: memstore.NewService(), secret: auth.NewSecret(),
	}
	if err := d.begin(ctx); err != nil {
		d.close()
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return err
	}
	d.load.start(c.Load)
	d.follow(ctx)
	d.close()
	counts := d.load.counts()
	if err := d.out.Print(d.summary(counts)); err != nil {
		return err
	}
	if counts.Duplicates > 0 || counts.Disorder > 0 {
		return fmt.Errorf("%d IDs came twice, and %d were out of order: this must never happen; please report it",
			counts.Duplicates, counts.Disorder)
	}
	return nil
}

// begin listens on all addresses, starts the nodes, and prints what to try once they are ready.
func (d *demo) begin(ctx context.Context) error {
	if err := d.listen(); err != nil {
		return err
	}
	if d.config.Quorum {
		var err error
		if d.quorum, err = newMachines(d.config.Nodes); err != nil {
			return err
		}
	}
	for i := range d.config.Nodes {
		d.hosts = append(d.hosts, d.newHost(i+1))
	}
	var urls []string
	for _, h := range d.hosts {
		if err := h.start(); err != nil {
			return err
		}
		urls = append(urls, h.url)
	}
	var err error
	if d.load, err = newLoad(urls); err != nil {
		return err
	}
	d.keepSecret()
	d.commands.Lock() // of callers wait until all nodes are ready: none may end before
	defer d.commands.Unlock()
	d.serve()
	if err := d.await(ctx, 1); err != nil {
		return err
	}
	var first [1]firn.ID
	if err := d.load.take(ctx, first[:]); err != nil {
		return err
	}
	took := time.Since(d.began)
	if err := d.await(ctx, len(d.hosts)); err != nil {
		return err
	}
	for _, o := range others {
		if err := d.hosts[0].running().node.Create(ctx, o.name, o.definition); err != nil {
			return err
		}
	}
	return d.out.Print(d.intro(first[0], took))
}

// startWithin is how long the nodes may take to become ready.
const startWithin = 30 * time.Second

// await polls until so many nodes are ready.
func (d *demo) await(ctx context.Context, wanted int) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	for {
		ready := 0
		for _, h := range d.hosts {
			p := h.running()
			switch {
			case p == nil:
				return fmt.Errorf("node %d has ended: %w", h.number, h.process.Load().err)
			case p.node.Ready() == nil:
				ready++
			}
		}
		if ready >= wanted {
			return nil
		}
		if err := retry.Sleep(ctx, time.Millisecond); err != nil {
			return fmt.Errorf("the nodes are not ready after %v: %w", startWithin, err)
		}
	}
}

// close ends the demo. It kills nodes that hang, can't reach the store or keep it: stopping them would take a while,
// and the store ends too.
func (d *demo) close() {
	if d.server != nil {
		_ = d.server.Close() // it no longer serves
	}
	if d.listener != nil {
		_ = d.listener.Close() // the server may not have begun
	}
	d.commands.Lock()
	defer d.commands.Unlock()
	if d.load != nil {
		d.load.stop()
	}
	var all sync.WaitGroup
	for _, h := range d.hosts {
		if p := h.running(); p != nil {
			all.Go(func() {
				if d.quorum != nil {
					p.kill()
					return
				}
				if p.paused.Load() || d.stopped.Load() {
					p.kill()
				}
				p.end(errEnds)
				<-p.done
			})
		}
	}
	all.Wait()
	if d.quorum != nil {
		_ = os.RemoveAll(d.quorum.dir) // it is in the directory for temporary files
	}
	if d.file != "" {
		secretfile.Remove(d.file, d.secret.Token())
	}
}

// keepSecret writes the secret of the demo and its nodes to a file that only this user can read, with the
// addresses to which commands may send it now. Another process may listen where a node does not, because it is
// dead or is about to be.
func (d *demo) keepSecret(dies ...*host) {
	addresses := []string{d.listener.Addr().String()}
	for _, h := range d.hosts {
		if h.running() != nil && !slices.Contains(dies, h) {
			addresses = append(addresses, h.admin.Host)
		}
	}
	path, err := secretfile.RuntimePath(addresses[0])
	if err == nil {
		err = secretfile.Write(path, d.secret.Token(), addresses)
	}
	if d.secret.Kept(path, err); err == nil && d.file == "" {
		d.file = path
	}
}
