package pgstore_test

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/firn-id/firn/internal/test/dbtest"
	"github.com/firn-id/firn/internal/test/proxytest"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/pgstore"
	"github.com/firn-id/firn/store/storetest"
)

func TestMain(m *testing.M) {
	// These tests wait more than they compute: let more of them wait at once.
	flag.Parse()
	if runtime.GOMAXPROCS(0) < 4 {
		_ = flag.Set("test.parallel", "4")
	}
	code := m.Run()
	dbtest.RemoveTemplates()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func open(t *testing.T, config pgstore.Config) *pgstore.Store {
	t.Helper()
	s, err := pgstore.Open(config)
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
		server := dbtest.StartPostgres(t)
		proxies := make(map[store.Store]*proxytest.Proxy)
		return storetest.Harness{
			Open: func(t *testing.T) store.Store {
				proxy := proxytest.New(t, server.Address())
				s := open(t, pgstore.Config{URL: through(server, proxy)})
				proxies[s] = proxy
				return s
			},
			TTL:      2 * time.Second,
			Patience: 30 * time.Second,
			CutOff:   func(client store.Store, cut bool) { proxies[client].Cut(cut) },
			Disturb:  func(client store.Store, disturbed bool) { proxies[client].Disturb(disturbed) },
			Expire: func(t *testing.T, session store.Session) {
				server.SQL(t, fmt.Sprintf("DELETE FROM firn.sessions WHERE id = %d", pgstore.ID(session)))
			},
			Backup: func(t *testing.T) func(*testing.T) {
				restore := server.Backup(t)
				return func(t *testing.T) { restore(t) }
			},
			Stop:  func(t *testing.T) { server.Kill(t) },
			Start: func(t *testing.T) { server.Start(t) },
		}
	})
}

// through is the URL of a server behind a proxy.
func through(server *dbtest.PostgresServer, proxy *proxytest.Proxy) string {
	return strings.Replace(server.URL("postgres"), server.Address(), proxy.Address(), 1)
}
