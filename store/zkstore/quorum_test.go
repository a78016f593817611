//go:build unix

package zkstore_test

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/proxytest"
	"github.com/firn-id/firn/internal/test/testenv"
	"github.com/firn-id/firn/internal/test/zktest"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/storetest"
	"github.com/firn-id/firn/store/zkstore"
)

func addresses(servers []*zktest.Server) (all []string) {
	for _, s := range servers {
		all = append(all, s.Address())
	}
	return all
}

// The contract over three servers, each client behind proxies of its own to two of them. Sessions are ended over the
// third: a server that gets a second connection of a session does not end the first one with the session.
func TestContractOfAQuorum(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	servers := zktest.StartQuorum(t, 3)
	cases := 0
	storetest.Run(t, func(*testing.T) storetest.Harness {
		cases++
		chroot := fmt.Sprintf("/contract/%d", cases)
		proxies := make(map[store.Store][]*proxytest.Proxy)
		var stopped *zktest.Server
		return storetest.Harness{
			Open: func(t *testing.T) store.Store {
				var mine []*proxytest.Proxy
				config := zkstore.Config{Chroot: chroot}
				for _, s := range servers[:2] {
					proxy := proxytest.New(t, s.Address())
					mine = append(mine, proxy)
					config.Servers = append(config.Servers, proxy.Address())
				}
				s := open(t, config)
				proxies[s] = mine
				return s
			},
			TTL:      2 * time.Second,
			Patience: 60 * time.Second,
			CutOff: func(client store.Store, cut bool) {
				for _, proxy := range proxies[client] {
					proxy.Cut(cut)
				}
			},
			Expire: func(t *testing.T, session store.Session) {
				t.Helper()
				if err := zkstore.Expire(t.Context(), servers[2].Address(), session); err != nil {
					t.Fatalf("ending the session: %v", err)
				}
			},
			Backup: func(t *testing.T) func(*testing.T) {
				restore := zktest.Backup(t, servers...)
				return func(t *testing.T) { restore(t) }
			},
			Stop: func(t *testing.T) {
				stopped = servers[zktest.Leader(t, servers)]
				stopped.Kill(t)
			},
			Start: func(t *testing.T) { stopped.Start(t) },
		}
	})
}

// Several clients count while leaders are killed, frozen and come back: each number that a client was told to have
// written is counted once, and what was in doubt at most once. A session whose server went goes on at another.
func TestLeadersComeAndGo(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	servers := zktest.StartQuorum(t, 3)
	const clients = 3
	var counting sync.WaitGroup
	stop := make(chan struct{})
	told, doubted := make([]int, clients), make([]int, clients)
	for i := range clients {
		s := open(t, zkstore.Config{Servers: addresses(servers), CallDeadline: 2 * time.Second})
		counting.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				kv, err := s.Get(t.Context(), "counter")
				if err != nil {
					continue
				}
				n, _ := strconv.Atoi(string(kv.Value))
				_, err = s.Commit(t.Context(),
					store.Txn{If: when("counter", kv.Version), Then: putting("counter", strconv.Itoa(n+1))})
				switch {
				case err == nil:
					told[i]++
				case errors.Is(err, store.ErrAmbiguous):
					doubted[i]++
				case !errors.Is(err, store.ErrConflict):
					t.Errorf("Commit: %v", err)
					return
				}
			}
		})
	}
	watcher := open(t, zkstore.Config{Servers: addresses(servers)})
	var session store.Session
	eventually(t, "OpenSession", func() (err error) {
		session, err = watcher.OpenSession(t.Context(), 40*time.Second)
		return err
	})
	commit(t, watcher, store.Txn{Then: []store.Op{store.PutEphemeral("mine", nil, session)}})
	value := func() (n int, err error) {
		kv, err := watcher.Get(t.Context(), "counter")
		if err == nil {
			n, err = strconv.Atoi("0" + string(kv.Value))
		}
		return n, err
	}
	goesOn := func(after string) {
		t.Helper()
		var before int
		eventually(t, "Get", func() (err error) { before, err = value(); return err })
		eventually(t, "counting goes on after "+after, func() error {
			now, err := value()
			if err == nil && now < before {
				t.Fatalf("the counter went from %d to %d", before, now)
			}
			if err == nil && now < before+10 {
				err = fmt.Errorf("the counter is at %d, and was at %d", now, before)
			}
			return err
		})
	}
	goesOn("the beginning")
	for range 2 {
		leader := servers[zktest.Leader(t, servers)]
		leader.Kill(t)
		goesOn("the leader was killed")
		leader.Start(t)
		goesOn("the leader came back")
		leader = servers[zktest.Leader(t, servers)]
		leader.Pause(t)
		goesOn("the leader was frozen")
		leader.Resume(t)
		goesOn("the leader woke up")
	}
	close(stop)
	counting.Wait()
	least, most := 0, 0
	for i := range clients {
		least += told[i]
		most += told[i] + doubted[i]
	}
	var got int
	eventually(t, "Get", func() (err error) { got, err = value(); return err })
	if got < least || got > most {
		t.Errorf("the counter is at %d; %d increments were confirmed, and %d more in doubt", got, least, most-least)
	}
	select {
	case <-session.Done():
		t.Error("the session is done")
	default:
	}
	if kv, err := watcher.Get(t.Context(), "mine"); err != nil || kv.Version == 0 {
		t.Errorf("the key of the session is %+v, %v", kv, err)
	}
	t.Logf("counted to %d, %d in doubt", got, most-least)
}

// An ensemble that was wiped or set back, and whose transactions have greater numbers all the same, since it has had
// more elections: clients are told, once, by Follow or else by Append.
func TestEnsembleThatLostData(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	servers := zktest.StartQuorum(t, 3)
	s, follows := open(t, zkstore.Config{Servers: addresses(servers)}),
		open(t, zkstore.Config{Servers: addresses(servers)})
	append1 := func(s store.Store, id string) error { _, err := s.Append(t.Context(), id, []byte("1")); return err }
	for name, lose := range map[string]func(){
		"wiped": func() { zktest.Wipe(t, servers...) },
		"set back": func() {
			eventually(t, "Append", func() error { return append1(s, "kept") })
			restore := zktest.Backup(t, servers...)
			eventually(t, "Append", func() error { return append1(s, "lost") })
			for range 3 { // elections: a new leader's transactions have greater numbers
				leader := servers[zktest.Leader(t, servers)]
				leader.Kill(t)
				zktest.Leader(t, servers)
				leader.Start(t)
			}
			eventually(t, "Append", func() error { return append1(follows, "lost-too") })
			restore(t)
		},
	} {
		eventually(t, "Append", func() error { return append1(s, "first-"+name[:3]) })
		ended := make(chan error, 1)
		begun := make(chan struct{})
		go func() {
			first := sync.OnceFunc(func() { close(begun) })
			for _, err := range follows.Follow(t.Context(), 0) {
				first()
				if err != nil {
					ended <- err
				}
			}
		}()
		<-begun
		lose()
		select {
		case err := <-ended:
			if !errors.Is(err, store.ErrRolledBack) {
				t.Errorf("%s: Follow ended with %v, want ErrRolledBack", name, err)
			}
		case <-time.After(patience):
			t.Errorf("%s: Follow goes on", name)
		}
		eventually(t, "the Append that is told", func() error {
			err := append1(s, "told-"+name[:3])
			if errors.Is(err, store.ErrRolledBack) {
				return nil
			}
			return fmt.Errorf("Append: %w; want ErrRolledBack", err)
		})
		for _, s := range []store.Store{s, follows} {
			if err := append1(s, "again-"+name[:3]); err != nil {
				t.Errorf("%s: Append after that: %v", name, err)
			}
		}
	}
}
