// Package demo runs a cluster of several nodes in one process, on a store in memory, for people to try: it takes IDs from them all
// the time, and can be told to kill a node, set its clock or take the store away. Everything that it prints goes to a writer. It
// knows no flags: they, and the commands that tell a demo what to do, are in cmd/firn.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/console"
	"github.com/firn-id/firn/internal/node"
	"github.com/firn-id/firn/internal/secretfile"
	"github.com/firn-id/firn/internal/server/auth"
)

// Where a demo serves by default, which is where commands ask by default.
const (
	DefaultHTTPAddr  = "127.0.0.1:8080"
	DefaultAdminAddr = "127.0.0.1:9080"
)

// Config says how a demo runs.
type Config struct {
	Nodes int   // 1 to 64
	Load  int64 // how many IDs to take a second, at most 1 000 000; 0 is none

	HTTPAddr  string // where node 1 listens, host:port; the others listen on the ports after it, port 0 is any that is free
	AdminAddr string // where the demo listens for administrators, on this machine only; the nodes do on the ports after it

	TTL    time.Duration // how long a silent node remains a member
	Window time.Duration // for how long IDs are given while the store is gone

	Self string    // how to call firn in a shell
	Out  io.Writer // is told what to try, and what happens
	Logs io.Writer // the nodes'; nil: nobody is told
}

const (
	mostNodes = 64
	mostLoad  = 1_000_000
)

// Validate returns a node.SettingError for a Config of which no demo can be made.
func (c Config) Validate() error {
	wrong := func(setting, format string, args ...any) error {
		return &node.SettingError{Setting: setting, Err: fmt.Errorf(format, args...)}
	}
	host, _, _ := net.SplitHostPort(c.AdminAddr)
	switch {
	case c.Nodes < 1 || c.Nodes > mostNodes:
		return wrong("nodes", "%d; want at most %d in one process", c.Nodes, mostNodes)
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

// portAfter is the address whose port is so much higher; port 0 stays any that is free.
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

// demo is a cluster to try things on.
type demo struct {
	config   Config
	began    time.Time
	out      *console.StatusLine
	store    *sharedStore
	nodes    []*host
	load     *background
	rates    rates
	commands sync.Mutex // held by the one that is done
	listener net.Listener
	front    *http.Server
	admin    string // the URL of administrators
	secret   *auth.Secret
	file     string // of the secret; empty: it could not be written
}

// Run runs a demo of a valid Config until ctx ends. A node.SettingError is returned when an address is taken, and an error when
// an ID came twice.
func Run(ctx context.Context, c Config) error {
	if c.Logs == nil {
		c.Logs = io.Discard
	}
	d := &demo{config: c, began: time.Now(), out: console.NewStatusLine(c.Out), store: newSharedStore(), secret: auth.NewSecret()}
	if err := d.open(); err != nil {
		d.close()
		return err
	}
	first, err := d.firstID(ctx)
	if err != nil {
		d.close()
		return interrupted(ctx, err)
	}
	took := time.Since(d.began)
	if err := d.awaitAll(ctx); err != nil {
		d.close()
		return interrupted(ctx, err)
	}
	if err := d.out.Print(d.intro(first, took)); err != nil {
		d.close()
		return err
	}
	d.load.start()
	d.follow(ctx)
	d.close()
	counts := d.load.counts()
	if err := d.out.Print(d.summary(counts)); err != nil {
		return err
	}
	if counts.Duplicates > 0 || counts.Disorder > 0 {
		return fmt.Errorf("%d IDs came twice, and %d were out of order: that must never be; please report it", counts.Duplicates, counts.Disorder)
	}
	return nil
}

// open listens everywhere and starts the nodes.
func (d *demo) open() error {
	if err := d.openFront(d.config.AdminAddr); err != nil {
		return err
	}
	for i := range d.config.Nodes {
		address, _ := portAfter(d.config.HTTPAddr, i) // they were checked
		admin, _ := portAfter(d.config.AdminAddr, i+1)
		n := &host{number: i + 1, store: d.store, config: node.Defaults()}
		n.config.HTTPAddr, n.config.AdminAddr, n.config.TTL, n.config.Window = address, admin, d.config.TTL, d.config.Window
		n.config.Wait, n.config.DrainDelay, n.config.ShutdownTimeout = true, 0, 2*time.Second
		n.config.Logger = slog.New(slog.NewTextHandler(prefixed{d.config.Logs, fmt.Sprintf("node %d: ", n.number)}, nil))
		n.config.Owner, n.config.Secret, n.config.Given = fmt.Sprintf("node %d", n.number), d.secret, d.given
		d.nodes = append(d.nodes, n)
	}
	for _, n := range d.nodes {
		if err := n.start(); err != nil {
			return err
		}
	}
	var err error
	d.load, err = newLoad(d.nodes, d.config.Load)
	if err == nil {
		d.keepSecret()
		d.serveFront()
	}
	return err
}

// firstID is the first that a node gives.
func (d *demo) firstID(ctx context.Context) (firn.ID, error) {
	err := d.await(ctx, func() bool {
		for _, n := range d.nodes {
			if l := n.running(); l != nil && l.ready() == nil {
				return true
			}
		}
		return false
	})
	var ids [1]firn.ID
	if err == nil {
		err = d.load.take(ctx, ids[:])
	}
	return ids[0], err
}

// awaitAll waits until all nodes are ready, so that what is printed then can be tried.
func (d *demo) awaitAll(ctx context.Context) error {
	return d.await(ctx, func() bool {
		for _, n := range d.nodes {
			if l := n.running(); l == nil || l.ready() != nil {
				return false
			}
		}
		return true
	})
}

// startWithin is how long a cluster may take to begin.
const startWithin = 30 * time.Second

// await waits for something that nobody tells of.
func (d *demo) await(ctx context.Context, is func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !is() {
		for _, n := range d.nodes {
			if n.running() == nil {
				return fmt.Errorf("node %d has ended: %w", n.number, n.process.err)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("the nodes are not ready after %v: %w", startWithin, ctx.Err())
		}
	}
	return nil
}

// close ends what there is. What hangs, or can't reach the store, is killed: to end it in order would take a while, for
// a store that ends too.
func (d *demo) close() {
	if d.front != nil {
		_ = d.front.Close() // it serves no more
	} else if d.listener != nil {
		_ = d.listener.Close()
	}
	if d.load != nil {
		d.load.stop()
	}
	var all sync.WaitGroup
	for _, n := range d.nodes {
		if l := n.running(); l != nil {
			all.Go(func() {
				if l.paused.Load() || d.store.isStopped() {
					l.kill()
				} else {
					l.stop(errors.New("the demo ends"))
				}
			})
		}
	}
	all.Wait()
	if d.file != "" {
		secretfile.Remove(d.file, d.secret.Token())
	}
}

// keepSecret puts the secret of the demo and its nodes into a file that only this user can read, with the addresses at which
// it may be shown now: where a node does not listen, because it is dead or is about to be, somebody else may.
func (d *demo) keepSecret(dies ...*host) {
	addresses := []string{d.listener.Addr().String()}
	for _, n := range d.nodes {
		if n.running() != nil && !slices.Contains(dies, n) {
			addresses = append(addresses, n.admin.Host)
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

// interrupted returns what ended ctx in the place of what failed because of it.
func interrupted(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}
