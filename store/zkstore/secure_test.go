//go:build unix

package zkstore_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/certtest"
	"github.com/firn-id/firn/internal/test/proxytest"
	"github.com/firn-id/firn/internal/test/zktest"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/zkstore"
)

// works uses all of the port once.
func works(t *testing.T, s store.Store) {
	t.Helper()
	session, err := s.OpenSession(t.Context(), 30*time.Second)
	if err != nil {
		t.Fatalf("OpenSession: %v", err)
	}
	commit(t, s, store.Txn{Then: append(putting("key", "1"), store.PutEphemeral("mine", nil, session))})
	gone, err := s.Gone(t.Context(), "mine")
	if err != nil {
		t.Fatalf("Gone: %v", err)
	}
	position, err := s.Append(t.Context(), "entry", []byte("1"))
	if err != nil {
		t.Fatalf("Append: %v", err)
	}
	if err := s.Checkpoint(t.Context(),
		store.Checkpoint{Position: position, Value: make([]byte, store.MaxCheckpoint)}); err != nil {
		t.Fatalf("Checkpoint: %v", err)
	}
	if err := s.Trim(t.Context()); err != nil {
		t.Fatalf("Trim: %v", err)
	}
	if err := session.Close(t.Context()); err != nil {
		t.Fatalf("Close: %v", err)
	}
	select {
	case <-gone:
	case <-time.After(patience):
		t.Fatal("Gone did not fire")
	}
}

// secretFile writes a file as an editor does, with a newline at its end.
func secretFile(t *testing.T, secret string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(name, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// Nodes that a user made are of use to no other, nor to nobody.
func TestUser(t *testing.T) {
	t.Parallel()
	jaas := secretFile(t,
		`Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_firn="secret" user_other="pass"; };`)
	server := zktest.Start(t, "-Djava.security.auth.login.config="+jaas,
		"-Dzookeeper.authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider")
	config := zkstore.Config{
		Servers: []string{server.Address()}, Username: "firn",
		PasswordFile: secretFile(t, "secret"),
	}
	s := open(t, config)
	works(t, s)
	if reports, err := s.Examine(t.Context()); err != nil || reports[0].Err != nil {
		t.Errorf("Examine = %+v, %v", reports, err)
	}

	other, wrong, nobody := config, config, config
	other.Username, other.PasswordFile = "other", secretFile(t, "pass")
	wrong.PasswordFile = secretFile(t, "wrong")
	nobody.Username, nobody.PasswordFile = "", ""
	for name, config := range map[string]zkstore.Config{
		"another user": other, "a wrong password": wrong,
		"nobody": nobody,
	} {
		s := open(t, config)
		_, get := s.Get(t.Context(), "key")
		_, put := s.Commit(t.Context(), store.Txn{Then: putting("key", "2")})
		_, session := s.OpenSession(t.Context(), time.Second)
		_, appended := s.Append(t.Context(), "id", nil)
		_, examined := s.Examine(t.Context())
		for call, err := range map[string]error{
			"Get": get, "OpenSession": session, "Append": appended,
			"Examine": examined,
		} {
			if !errors.Is(err, store.ErrRefused) {
				t.Errorf("%s by %s = %v, want ErrRefused", call, name, err)
			}
		}
		if !errors.Is(put, store.ErrRefused) {
			t.Errorf("Commit by %s = %v, want ErrRefused", name, put)
		}
	}
	wantValue(t, s, "key", "1")
}

// secureProxy is what the server's own TLS would be: it demands certificates, and forwards what is inside.
func secureProxy(t *testing.T, server string, certs *certtest.Files) string {
	t.Helper()
	cert, err := tls.LoadX509KeyPair(certs.ServerCert, certs.ServerKey)
	if err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(certs.CA)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{cert}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
	})
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer client.Close()
				conn, err := net.Dial("tcp", server)
				if err != nil {
					return
				}
				defer conn.Close()
				running.Go(func() {
					_, _ = io.Copy(conn, client)
					conn.Close()
				})
				_, _ = io.Copy(client, conn)
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		running.Wait()
	})
	return listener.Addr().String()
}

// Servers are known by their authority, and the client by its certificate.
func TestTLS(t *testing.T) {
	t.Parallel()
	certs := certtest.WriteFiles(t, t.TempDir())
	config := zkstore.Config{
		Servers: []string{secureProxy(t, zktest.Start(t).Address(), certs)},
		CAFile:  certs.CA, CertFile: certs.ClientCert, KeyFile: certs.ClientKey,
	}
	works(t, open(t, config))
	for name, spoil := range map[string]func(*zkstore.Config){
		"an unknown authority":         func(c *zkstore.Config) { c.CAFile = certtest.WriteFiles(t, t.TempDir()).CA },
		"no certificate of the client": func(c *zkstore.Config) { c.CertFile, c.KeyFile = "", "" },
		"no TLS":                       func(c *zkstore.Config) { c.CAFile, c.CertFile, c.KeyFile = "", "", "" },
	} {
		bad := config
		bad.CallDeadline = 300 * time.Millisecond
		spoil(&bad)
		if _, err := open(t, bad).Get(t.Context(), "key"); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("Get with %s = %v, want ErrUnavailable", name, err)
		}
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	certs := certtest.WriteFiles(t, t.TempDir())
	one := []string{"host"}
	for _, c := range []struct {
		config zkstore.Config
		want   string
	}{
		{zkstore.Config{}, "no servers"},
		{zkstore.Config{Servers: []string{"host:1", ""}}, `"" has no host`},
		{zkstore.Config{Servers: []string{":2181"}}, "has no host"},
		{zkstore.Config{Servers: []string{"host:"}}, "has no port"},
		{zkstore.Config{Servers: []string{"host/firn"}}, "more than a host and a port"},
		{zkstore.Config{Servers: one, Chroot: "firn"}, `the node is "firn"`},
		{zkstore.Config{Servers: one, Chroot: "/"}, `the node is "/"`},
		{zkstore.Config{Servers: one, Chroot: "/firn/"}, `the node is "/firn/"`},
		{zkstore.Config{Servers: one, Chroot: "/zookeeper/firn"}, "ZooKeeper's own"},
		{zkstore.Config{Servers: one, CallDeadline: -1}, "call deadline"},
		{zkstore.Config{Servers: one, Username: "firn"}, "both or neither"},
		{zkstore.Config{Servers: one, Username: "firn", PasswordFile: "/nowhere"}, "/nowhere"},
		{zkstore.Config{Servers: one, Username: "firn", PasswordFile: secretFile(t, "")}, "is empty"},
		{zkstore.Config{Servers: one, CAFile: "/nowhere"}, "/nowhere"},
		{zkstore.Config{Servers: one, CAFile: certs.ClientKey}, "no certificate"},
		{zkstore.Config{Servers: one, CertFile: certs.ClientCert}, "both or neither"},
		{zkstore.Config{Servers: one, CertFile: certs.ClientCert, KeyFile: certs.ServerKey}, "no pair"},
	} {
		s, err := zkstore.Open(c.config)
		if err == nil {
			_ = s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Open(%+v) = %v, want an error with %q", c.config, err, c.want)
		}
	}
	for server, want := range map[string]string{
		"host": "host:2181", "host:1": "host:1", "::1": "[::1]:2181", "[::1]": "[::1]:2181", "[::1]:7": "[::1]:7",
	} {
		if got, err := zkstore.Address(server, false); err != nil || got != want {
			t.Errorf("the address of %q is %q, %v; want %q", server, got, err, want)
		}
	}
	if got, err := zkstore.Address("host", true); err != nil || got != "host:2281" {
		t.Errorf("with TLS the address of a host is %q, %v", got, err)
	}
}

// A session that is idle, and one whose connection is reset again and again, live on.
func TestSessionGoesOn(t *testing.T) {
	t.Parallel()
	proxy := proxytest.New(t, zktest.Start(t).Address())
	s := open(t, zkstore.Config{Servers: []string{proxy.Address()}})
	session, err := s.OpenSession(t.Context(), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	txn := store.Txn{Then: []store.Op{store.PutEphemeral("key", nil, session)}}
	commit(t, s, txn)
	gone, err := s.Gone(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		proxy.Reset()
		eventually(t, "Commit", func() error { _, err := s.Commit(t.Context(), txn); return err })
	}
	select {
	case <-session.Done():
		t.Error("the session is done")
	case <-gone:
		t.Error("the key is gone")
	default:
	}
}
