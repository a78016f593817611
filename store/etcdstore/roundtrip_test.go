//go:build unix

package etcdstore_test

import (
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/certtest"
	"github.com/firn-id/firn/internal/test/etcdtest"
	"github.com/firn-id/firn/internal/test/proxytest"
	"github.com/firn-id/firn/internal/test/testenv"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/etcdstore"
)

// Where a round trip takes a second, and so a new connection with TLS takes three, a session is opened, used, kept for
// longer than its TTL, and closed.
func TestARoundTripOfASecond(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	for name, login := range map[string]bool{"without a user": false, "with a user": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := etcdtest.Options{Args: []string{"--bcrypt-cost=4"}}
			config := etcdstore.Config{}
			if login {
				config.Username, config.Password = "firn", "secret"
			} else {
				options.Certs = certtest.WriteFiles(t, t.TempDir())
				config.CAFile, config.CertFile, config.KeyFile = options.Certs.CA, options.Certs.ClientCert,
					options.Certs.ClientKey
			}
			server := etcdtest.Start(t, options)
			if login {
				enableAuth(t, server.Endpoint())
			}
			proxy := proxytest.New(t, server.Address())
			proxy.Delay(500 * time.Millisecond)
			config.Endpoints = []string{proxy.Address()}
			s := open(t, config)
			began := time.Now()
			session, err := s.OpenSession(t.Context(), 5*time.Second)
			if err != nil {
				t.Fatalf("OpenSession: %v", err)
			}
			t.Logf("a session after %v", time.Since(began))
			if _, err := s.Commit(t.Context(), putting("key", store.PutEphemeral("mine", nil, session))); err != nil {
				t.Errorf("Commit: %v", err)
			}
			select {
			case <-session.Done():
				t.Error("the session was lost")
			case <-time.After(session.TTL() * 3 / 2):
			}
			if err := session.Close(t.Context()); err != nil {
				t.Errorf("Close of the session: %v", err)
			}
			if _, err := s.OpenSession(t.Context(), 5*time.Second); err != nil {
				t.Errorf("OpenSession: %v", err)
			}
			if err := s.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
	}
}
