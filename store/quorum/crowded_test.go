//go:build unix

package quorum

import (
	"context"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/testenv"
	"github.com/firn-id/firn/store/quorum/internal/port"
)

// As many clients as there is room for leave the places of machines free. One more is told why it can't connect, and
// gets a place when one is free.
func TestMoreClientsThanAMachineTakes(t *testing.T) {
	testenv.Slow(t)
	const files = 2*port.MaxClients + 200 // both ends of each connection are in this process
	var limit syscall.Rlimit              // Go has raised the soft limit to the hard one
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < files {
		t.Skipf("this process may have %d files open, %v; want %d: raise the hard limit, as with ulimit -Hn",
			limit.Cur, err, files)
	}
	w := newWorld(t, 1)
	q := w.start(w.machines[0])
	s := w.open(q)
	client := w.startWith(w.config(NoMachine))
	var all sync.WaitGroup
	held := make(chan func() error, port.MaxClients)
	for range 8 {
		all.Go(func() {
			for range port.MaxClients / 8 {
				c, err := client.ring.Dial(t.Context(), w.machines[0], port.Clients)
				if err != nil {
					t.Error(err)
					return
				}
				held <- c.Close
			}
		})
	}
	all.Wait()
	defer func() {
		for range len(held) {
			_ = (<-held)()
		}
	}()
	one := w.open(client)
	const want = "refuses the connection: it has the connections of 1024 clients, which is the limit"
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := one.Get(ctx, "key"); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("one more client: %v; want %q", err, want)
	}
	if _, err := s.Commit(t.Context(), put("key", "value")); err != nil {
		t.Errorf("the machine itself: %v", err)
	}
	another, err := q.connect()
	if err != nil {
		t.Fatal(err)
	}
	defer another.Close()
	w.until("the machine connects to itself again", func() bool {
		_, err := another.Get(t.Context(), "key")
		return err == nil
	})
	_ = (<-held)()
	w.until("the client gets the free place", func() bool {
		_, err := one.Get(t.Context(), "key")
		return err == nil
	})
}
