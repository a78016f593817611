//go:build unix

package etcdstore_test

import (
	"flag"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/firn-id/firn/internal/test/etcdtest"
	"github.com/firn-id/firn/internal/test/proxytest"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/etcdstore"
	"github.com/firn-id/firn/store/storetest"
)

func TestMain(m *testing.M) {
	// These tests wait more than they compute: let more of them wait at once.
	flag.Parse()
	if runtime.GOMAXPROCS(0) < 4 {
		_ = flag.Set("test.parallel", "4")
	}
	goleak.VerifyTestMain(m)
}

func open(t *testing.T, config etcdstore.Config) *etcdstore.Store {
	t.Helper()
	s, err := etcdstore.Open(config)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// A real server, each client behind a proxy of its own.
func TestContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		t.Parallel()
		server := etcdtest.Start(t, etcdtest.Options{})
		proxies := make(map[store.Store]*proxytest.Proxy)
		return storetest.Harness{
			Open: func(t *testing.T) store.Store {
				proxy := proxytest.New(t, server.Address())
				s := open(t, etcdstore.Config{Endpoints: []string{proxy.Address()}})
				proxies[s] = proxy
				return s
			},
			TTL:      time.Second,
			Patience: 30 * time.Second,
			CutOff:   func(client store.Store, cut bool) { proxies[client].Cut(cut) },
			Disturb:  func(client store.Store, disturbed bool) { proxies[client].Disturb(disturbed) },
			Expire:   expire,
			Backup:   server.Backup,
			Stop:     func(t *testing.T) { server.Kill(t) },
			Start:    func(t *testing.T) { server.Start(t) },
		}
	})
}

// expire revokes the lease of a session as a stranger would.
func expire(t *testing.T, session store.Session) {
	t.Helper()
	if err := etcdstore.Revoke(t.Context(), session); err != nil {
		t.Fatalf("revoking: %v", err)
	}
}
