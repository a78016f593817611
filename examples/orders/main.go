// Command orders is an example of an application that makes its own IDs: it joins the cluster as a
// member, and makes the IDs of two sequencers with different definitions, also while etcd restarts.
// With -postgres the cluster is kept in a database, beside the application's own table. See README.md.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/member"
	"github.com/firn-id/firn/sequencer"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/etcdstore"
	"github.com/firn-id/firn/store/pgstore"
)

func main() {
	etcd := flag.String("etcd", "127.0.0.1:2379", "the etcd `servers`, separated by commas")
	database := flag.String("postgres", "",
		"the `URL` of a PostgreSQL database, in the place of etcd; each ID is also a row there")
	window := flag.Duration("window", 0, "for how `long` IDs flow while etcd is gone (default 30s)")
	file := flag.String("ids", os.DevNull, "a `file` that every ID is added to")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	ids, err := os.OpenFile(*file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err == nil {
		err = run(ctx, strings.Split(*etcd, ","), *database, *window, ids)
	}
	if err != nil && ctx.Err() == nil { // a signal is not a failure
		fmt.Fprintln(os.Stderr, "orders:", err)
		os.Exit(1)
	}
}

// run takes orders and writes invoices until ctx ends.
func run(ctx context.Context, etcd []string, database string, window time.Duration, ids io.Writer) error {
	store, err := open(etcd, database)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()

	m, err := member.Join(ctx, store,
		member.Options{Owner: "the orders example", Window: window, Logger: slog.Default()})
	if err != nil {
		return err
	}
	defer m.Leave() // releases the node IDs, so that the next member gets them at once
	if database != "" {
		rows := &table{url: database}
		defer rows.close()
		ids = rows
	}

	orders := sequencer.Define(firn.Default)
	invoices := sequencer.Define(firn.JavaScript) // 53 bits, exact in JavaScript
	invoices.Nodes = 8                            // fewer nodes, more IDs for each

	ctx, cancel := context.WithCancel(ctx)
	var working sync.WaitGroup
	defer func() { cancel(); working.Wait() }() // before it leaves
	for name, d := range map[string]sequencer.Definition{"orders": orders, "invoices": invoices} {
		s, err := m.EnsureSequencer(ctx, name, d) // the first member creates it
		if err != nil {
			return err
		}
		working.Go(func() { watch(ctx, s) })
		working.Go(func() { work(ctx, s, ids) })
	}
	select {
	case <-ctx.Done(): // a signal
	case <-m.Done(): // it can't go on
	}
	return m.Err()
}

// open opens the store: in the database, if there is one.
func open(etcd []string, database string) (store.Store, error) {
	if database != "" {
		return pgstore.Open(pgstore.Config{URL: database, Logger: slog.Default()})
	}
	return etcdstore.Open(etcdstore.Config{Endpoints: etcd, Logger: slog.Default()})
}

// watch prints where the sequencer stands, whenever that changes.
func watch(ctx context.Context, s *member.Sequencer) {
	for state := range s.Changes(ctx) {
		fmt.Printf("%s: is now %v\n", s.Name(), state)
	}
}

// work makes an ID every ten milliseconds, and prints a line every second.
func work(ctx context.Context, s *member.Sequencer, ids io.Writer) {
	var last firn.ID
	var unwritten error // why the ID before was not written; nil: it was
	made, since := 0, time.Now()
	for next := time.Tick(10 * time.Millisecond); ; {
		if id, err := s.Next(ctx); err == nil {
			if _, unwritten = fmt.Fprintln(ids, s.Name(), id); unwritten == nil {
				last, made = id, made+1
			}
		} // otherwise it tries again, and report says why
		if passed := time.Since(since); passed >= time.Second {
			report(s, last, float64(made)/passed.Seconds(), unwritten)
			made, since = 0, time.Now()
		}
		select {
		case <-next:
		case <-ctx.Done():
			return
		}
	}
}

// report prints the state of a sequencer. A reason why it can't make IDs passes by itself.
func report(s *member.Sequencer, last firn.ID, rate float64, unwritten error) {
	if err := s.Ready(); err != nil {
		fmt.Printf("%s: no IDs at present: %v\n", s.Name(), err)
		return
	}
	if unwritten != nil {
		fmt.Printf("%s: IDs are not written: %v\n", s.Name(), unwritten)
		return
	}
	at, err := s.Layout().Time(last)
	if err != nil || last == 0 {
		return
	}
	node, _ := s.Layout().NodeID(last)
	fmt.Printf("%s: %.0f IDs/s, the last %v made at %s by node %d; %v\n",
		s.Name(), rate, last, at.Format(time.RFC3339Nano), node, s.State())
}
