//go:build unix

package etcdstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/firn-id/firn/internal/test/certtest"
	"github.com/firn-id/firn/internal/test/etcdtest"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/etcdstore"
)

// The servers are known by their authority, and the client by its certificate.
func TestTLS(t *testing.T) {
	t.Parallel()
	certs := certtest.WriteFiles(t, t.TempDir())
	server := etcdtest.Start(t, etcdtest.Options{Certs: certs})
	config := etcdstore.Config{
		Endpoints: []string{server.Address()}, // https, because there are files
		CAFile:    certs.CA, CertFile: certs.ClientCert, KeyFile: certs.ClientKey,
	}
	works(t, open(t, config))

	for name, spoil := range map[string]func(*etcdstore.Config){
		"an unknown authority":         func(c *etcdstore.Config) { c.CAFile = certtest.WriteFiles(t, t.TempDir()).CA },
		"no certificate of the client": func(c *etcdstore.Config) { c.CertFile, c.KeyFile = "", "" },
	} {
		bad := config
		bad.CallDeadline = 300 * time.Millisecond
		spoil(&bad)
		if _, err := open(t, bad).Get(t.Context(), "key"); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("Get with %s = %v, want ErrUnavailable", name, err)
		}
	}
}

// With authentication the port still works, for a user who may use the prefix and nothing else; expired tokens
// are fetched again.
func TestAuth(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t, etcdtest.Options{Args: []string{"--bcrypt-cost=4", "--auth-token-ttl=1"}})
	enableAuth(t, server.Endpoint())
	config := etcdstore.Config{Endpoints: []string{server.Endpoint()}, Username: "firn", Password: "secret"}
	s := open(t, config)
	works(t, s)
	works(t, s)

	elsewhere := config
	elsewhere.Prefix = "/other"
	wrong := config
	wrong.Password = "wrong"
	nobody := config
	nobody.Username, nobody.Password = "", ""
	for name, config := range map[string]etcdstore.Config{
		"another prefix": elsewhere, "a wrong password": wrong, "no user": nobody,
	} {
		s := open(t, config)
		if _, err := s.Commit(t.Context(), putting("key")); !errors.Is(err, store.ErrRefused) {
			t.Errorf("Commit with %s = %v, want ErrRefused", name, err)
		}
		if _, err := s.Get(t.Context(), "key"); !errors.Is(err, store.ErrRefused) {
			t.Errorf("Get with %s = %v, want ErrRefused", name, err)
		}
	}
}

// enableAuth makes a user "firn" who may use "/firn/", does more, and turns authentication on.
func enableAuth(t *testing.T, endpoint string, more ...func() error) {
	t.Helper()
	admin := rawClient(t, endpoint)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	steps := []func() error{
		func() error { _, err := admin.UserAdd(ctx, "root", "root"); return err },
		func() error { _, err := admin.UserGrantRole(ctx, "root", "root"); return err },
		func() error { _, err := admin.RoleAdd(ctx, "firn"); return err },
		func() error {
			_, err := admin.RoleGrantPermission(ctx, "firn", "/firn/", clientv3.GetPrefixRangeEnd("/firn/"),
				clientv3.PermissionType(clientv3.PermReadWrite))
			return err
		},
		func() error { _, err := admin.UserAdd(ctx, "firn", "secret"); return err },
		func() error { _, err := admin.UserGrantRole(ctx, "firn", "firn"); return err },
	}
	steps = append(steps, more...)
	steps = append(steps, func() error { _, err := admin.AuthEnable(ctx); return err })
	for i, step := range steps {
		if err := step(); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
}
