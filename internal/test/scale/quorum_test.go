//go:build unix

package scale

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/proxytest"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/quorum"
)

var (
	onQuorum = flag.Bool("quorum", false, "measure over a quorum of three machines in this process, in place of one")
	apart    = flag.Bool("apart", false,
		"each member has its own client of a quorum of one machine, as members on machines of their own do")
)

// openStores returns clients of the store to be measured, for so many members: one of a quorum of one, one at each
// machine of a quorum, or one for each member.
func openStores(t *testing.T, members int) (all []store.Store) {
	switch {
	case *apart:
		q := newQuorum(t, 1)
		for range members {
			all = append(all, q.open()...)
		}
		return all
	case *onQuorum:
		return newQuorum(t, 3).open()
	}
	q, err := quorum.One(quorum.Config{Dir: newDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(q.Close)
	if err := q.Start(); err != nil {
		t.Fatal(err)
	}
	s, err := q.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return []store.Store{s}
}

func newDir(t *testing.T) string {
	dir, err := os.MkdirTemp("", "firn-scale-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// machines are those of a quorum, all in this process.
type machines struct {
	t         *testing.T
	dir       string
	addresses []string
	live      map[string]*quorum.Quorum
}

// newQuorum starts a quorum of so many machines on loopback addresses.
func newQuorum(t *testing.T, size int) *machines {
	q := &machines{t: t, dir: newDir(t), live: map[string]*quorum.Quorum{}}
	if err := os.WriteFile(q.key(), []byte(quorum.NewKey()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range size {
		q.addresses = append(q.addresses, proxytest.FixedAddress(t))
	}
	for _, address := range q.addresses {
		q.start(address)
	}
	t.Cleanup(func() {
		var all sync.WaitGroup
		for _, machine := range q.live {
			all.Go(machine.Close)
		}
		all.Wait()
	})
	return q
}

func (q *machines) key() string { return filepath.Join(q.dir, "key") }

// data is the data directory of a machine.
func (q *machines) data(address string) string {
	return filepath.Join(q.dir, fmt.Sprint("machine", slices.Index(q.addresses, address)))
}

func (q *machines) start(address string) {
	q.t.Helper()
	machine, err := quorum.New(quorum.Config{
		Machines: slices.Clone(q.addresses), Self: address, KeyFile: q.key(),
		Dir: q.data(address),
	})
	if err == nil {
		err = machine.Start()
	}
	if err != nil {
		q.t.Fatal(err)
	}
	q.live[address] = machine
}

func (q *machines) stop(address string) {
	q.live[address].Close()
	delete(q.live, address)
}

// open returns a client at each machine that runs, once it can be used.
func (q *machines) open() (all []store.Store) {
	q.t.Helper()
	for _, address := range q.addresses {
		if machine := q.live[address]; machine != nil {
			all = append(all, q.openAt(machine))
		}
	}
	return all
}

func (q *machines) openAt(machine *quorum.Quorum) store.Store {
	q.t.Helper()
	ctx, cancel := context.WithTimeout(q.t.Context(), patience)
	defer cancel()
	for {
		s, err := machine.Open(ctx)
		if err == nil {
			q.t.Cleanup(func() { _ = s.Close() })
			return s
		}
		if !errors.Is(err, store.ErrUnavailable) || ctx.Err() != nil {
			q.t.Fatal(err)
		}
	}
}

// caughtUp waits until all machines run, and none is behind.
func (q *machines) caughtUp() {
	q.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		status := q.live[q.addresses[0]].Status(q.t.Context())
		behind := slices.ContainsFunc(status.Machines, func(m quorum.Machine) bool {
			return m.Err != "" || m.Doing != "" || m.Role != quorum.Voter || m.Behind > 100
		})
		if !behind && len(status.Machines) == len(q.addresses) {
			return
		}
		if time.Now().After(deadline) {
			q.t.Fatalf("not all have caught up: %+v", status)
		}
	}
}
