//go:build unix

package zkstore_test

import (
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/firn-id/firn/internal/test/proxytest"
	"github.com/firn-id/firn/internal/test/zktest"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/storetest"
	"github.com/firn-id/firn/store/zkstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, config zkstore.Config) *zkstore.Store {
	t.Helper()
	s, err := zkstore.Open(config)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// A real server, each client behind a proxy of its own. All cases share the server, one after another: each has a
// chroot of its own.
func TestContract(t *testing.T) {
	t.Parallel()
	server := zktest.Start(t)
	cases := 0
	storetest.Run(t, func(*testing.T) storetest.Harness {
		cases++
		chroot := fmt.Sprintf("/contract/%d", cases)
		proxies := make(map[store.Store]*proxytest.Proxy)
		return storetest.Harness{
			Open: func(t *testing.T) store.Store {
				proxy := proxytest.New(t, server.Address())
				s := open(t, zkstore.Config{Servers: []string{proxy.Address()}, Chroot: chroot})
				proxies[s] = proxy
				return s
			},
			TTL:      time.Second,
			Patience: 30 * time.Second,
			CutOff:   func(client store.Store, cut bool) { proxies[client].Cut(cut) },
			Disturb:  func(client store.Store, disturbed bool) { proxies[client].Disturb(disturbed) },
			Expire: func(t *testing.T, session store.Session) {
				t.Helper()
				if err := zkstore.Expire(t.Context(), server.Address(), session); err != nil {
					t.Fatalf("ending the session: %v", err)
				}
			},
			Backup: func(t *testing.T) func(*testing.T) {
				restore := zktest.Backup(t, server)
				return func(t *testing.T) { restore(t) }
			},
			Stop:  func(t *testing.T) { server.Kill(t) },
			Start: func(t *testing.T) { server.Start(t) },
		}
	})
}
