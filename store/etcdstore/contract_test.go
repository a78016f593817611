//go:build unix

package etcdstore_test

import (
	"flag"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/firn-id/firn/internal/etcdtest"
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

func embed(t *testing.T, config etcdstore.EmbedConfig) *etcdstore.Embedded {
	t.Helper()
	e, err := etcdstore.Embed(config)
	if err != nil {
		t.Fatalf("Embed: %v", err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// A real server, each client behind a proxy of its own.
func TestContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		t.Parallel()
		server := etcdtest.Start(t, etcdtest.Options{})
		proxies := make(map[store.Store]*etcdtest.Proxy)
		return storetest.Harness{
			Open: func(t *testing.T) store.Store {
				proxy := etcdtest.NewProxy(t, server.Address())
				s := open(t, etcdstore.Config{Endpoints: []string{proxy.Address()}})
				proxies[s] = proxy
				return s
			},
			TTL:      time.Second,
			Patience: 30 * time.Second,
			CutOff:   func(client store.Store, cut bool) { proxies[client].Cut(cut) },
			Expire:   expire,
			Backup:   server.Backup,
			Stop:     func(t *testing.T) { server.Kill(t) },
			Start:    func(t *testing.T) { server.Start(t) },
		}
	})
}

// The embedded server. One that is stopped is closed here, and killed in TestKilled.
func TestContractEmbedded(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		t.Parallel()
		config := etcdstore.EmbedConfig{Dir: filepath.Join(t.TempDir(), "data")}
		server := embed(t, config)
		return storetest.Harness{
			Open: func(t *testing.T) store.Store {
				return open(t, etcdstore.Config{Endpoints: []string{server.Endpoint()}})
			},
			TTL:      time.Second,
			Patience: 30 * time.Second,
			Expire:   expire,
			Stop:     func(*testing.T) { _ = server.Close() },
			Start:    func(t *testing.T) { server = embed(t, config) },
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
