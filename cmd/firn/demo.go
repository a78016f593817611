package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/console"
	"github.com/firn-id/firn/internal/secretfile"
	"github.com/firn-id/firn/internal/server/auth"
)

const demoHelp = `Demo runs a cluster of several nodes in this process, on a store in memory that ends
with it, and takes IDs from them all the time. It prints what to try in another
terminal: kill a node, set its clock, take the store away, and see what becomes of
callers, members and IDs. There is a dashboard, too. Nothing is left behind.

Each node is what firn serve runs, with a clock of its own that can be set. Only the
times are shorter than usual, so that one need not wait for what happens.

The load goes to all nodes by the client that docs/client.md describes. It compares
every ID with the million before it, or more. It counts IDs that had come before,
IDs that were not above one that the same node ID had given before they were asked
for, and calls that got none within 2s.

Node 1 serves at --http-addr, and the others at the ports after it. At --admin-addr
the demo itself serves administrators and the dashboard: a node answers that runs.
The nodes' own are at the ports after it.

SIGINT (Ctrl-C) ends it, and prints the counts. The exit status is 1 if an ID came
twice.`

const demoExamples = `  firn demo
  firn demo --nodes 5 --load 10000
  firn demo kill 2
  firn demo step-clock 1 -1h
  firn demo status --json`

// Where a demo serves by default, which is where commands ask by default.
const (
	demoHTTPAddr  = "127.0.0.1:8080"
	demoAdminAddr = "127.0.0.1:9080"
	defaultServer = "http://" + demoHTTPAddr
	defaultAdmin  = "http://" + demoAdminAddr
)

// demoOptions are the flags of firn demo.
type demoOptions struct {
	nodes, load         int64
	httpAddr, adminAddr string
	ttl, window         time.Duration
	logs                bool
}

const (
	mostDemoNodes = 64
	mostDemoLoad  = 1_000_000
)

func (p *program) demoCommand() *cobra.Command {
	var o demoOptions
	c := &cobra.Command{
		Use:     "demo",
		Short:   "Try a cluster: kill nodes, set clocks, take the store away",
		Long:    demoHelp,
		Example: demoExamples,
		Args:    noArguments,
	}
	flags := c.Flags()
	addNumber(flags, &o.nodes, "nodes", "3", 1, "how many nodes")
	addNumber(flags, &o.load, "load", "200", 0, "how many IDs to take a second; 0 is none")
	add(flags, &o.httpAddr, "http-addr", "address", demoHTTPAddr, "where node 1 listens; port 0 takes any that are free", parseAddress)
	add(flags, &o.adminAddr, "admin-addr", "address", demoAdminAddr, "where to listen for administrators, on this machine only", parseAddress)
	addDuration(flags, &o.ttl, "ttl", "3s", time.Second, "how long a silent node remains a member")
	addDuration(flags, &o.window, "window", "10s", 100*time.Millisecond, "for how long IDs are given while the store is gone")
	addBool(flags, &o.logs, "logs", "print the nodes' logs, to standard error")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := o.check(); err != nil {
			return err
		}
		return p.demo(untilSignal(c.Context()), o)
	}
	c.AddCommand(p.demoCommands()...)
	return c
}

// check checks the flags that depend on each other, or have a limit.
func (o *demoOptions) check() error {
	host, _, _ := net.SplitHostPort(o.adminAddr)
	switch {
	case o.nodes > mostDemoNodes:
		return usagef("--nodes: %d; want at most %d in one process", o.nodes, mostDemoNodes)
	case o.load > mostDemoLoad:
		return usagef("--load: %d IDs a second; want at most %d", o.load, mostDemoLoad)
	case !auth.Loopback(host):
		return usagef("--admin-addr: others can reach %s, and could kill nodes; want 127.0.0.1 or [::1]", o.adminAddr)
	}
	for flag, address := range map[string]string{"http-addr": o.httpAddr, "admin-addr": o.adminAddr} {
		if _, err := portAfter(address, int(o.nodes)); err != nil {
			return usagef("--%s: %w", flag, err)
		}
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
	options  demoOptions
	self     string // how to call this program
	began    time.Time
	out      *console.StatusLine
	logs     io.Writer
	store    *demoStore
	nodes    []*demoNode
	load     *demoLoad
	rates    demoRates
	commands sync.Mutex // held by the one that is done
	listener net.Listener
	front    *http.Server
	admin    string // the URL of administrators
	secret   *auth.Secret
	file     string // of the secret; empty: it could not be written
}

// demo runs until ctx ends.
func (p *program) demo(ctx context.Context, o demoOptions) error {
	d := &demo{options: o, self: p.self(), began: time.Now(), out: console.NewStatusLine(p.stdout), logs: io.Discard, store: newDemoStore(), secret: auth.NewSecret()}
	if o.logs {
		d.logs = p.stderr
	}
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
	if err := d.openFront(d.options.adminAddr); err != nil {
		return err
	}
	for i := range int(d.options.nodes) {
		address, _ := portAfter(d.options.httpAddr, i) // they were checked
		admin, _ := portAfter(d.options.adminAddr, i+1)
		n := &demoNode{number: i + 1, store: d.store, logs: d.logs, all: d.given, secret: d.secret, flags: map[string]string{
			"http-addr": address, "admin-addr": admin, "ttl": d.options.ttl.String(), "window": d.options.window.String(),
			"wait": "true", "drain-delay": "0s", "shutdown-timeout": "2s", "log-level": "info",
		}}
		d.nodes = append(d.nodes, n)
	}
	for _, n := range d.nodes {
		if err := n.start(); err != nil {
			return err
		}
	}
	var err error
	d.load, err = newDemoLoad(d.nodes, d.options.load)
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
				return fmt.Errorf("node %d has ended: %w", n.number, n.life.err)
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
func (d *demo) keepSecret(dies ...*demoNode) {
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

func newStdLog(w io.Writer) *log.Logger { return log.New(w, "demo: ", 0) }
