package pgstore_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/test/certtest"
	"github.com/firn-id/firn/internal/test/dbtest"
	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/pgstore"
)

// Over TLS, where both sides show a certificate; and what is told when one of them is wrong.
func TestCertificates(t *testing.T) {
	t.Parallel()
	server := dbtest.StartPostgres(t)
	server.SQL(t, "CREATE ROLE client LOGIN; GRANT CREATE ON DATABASE postgres TO client")
	certs, strange := certtest.WriteFiles(t, t.TempDir()), certtest.WriteFiles(t, t.TempDir())
	server.RequireCertificates(t, certs.CA, certs.ServerCert, certs.ServerKey)
	url := "postgres://client@" + server.Address() + "/postgres"
	right := pgstore.Config{URL: url, CAFile: certs.CA, CertFile: certs.ClientCert, KeyFile: certs.ClientKey}
	works(t, open(t, right))

	for name, c := range map[string]struct {
		change func(*pgstore.Config)
		want   error
		text   string
	}{
		"no TLS": {func(c *pgstore.Config) {
			*c = pgstore.Config{URL: url + "?sslmode=disable"}
		}, store.ErrRefused, "no encryption"},
		"no certificate": {func(c *pgstore.Config) {
			c.CertFile, c.KeyFile = "", ""
		}, store.ErrRefused, "valid client certificate"},
		"another user's certificate": {func(c *pgstore.Config) {
			c.URL = strings.Replace(url, "client@", "postgres@", 1)
		}, store.ErrRefused, `user "postgres"`},
		"an unknown authority": {func(c *pgstore.Config) {
			c.CAFile = strange.CA
		}, store.ErrUnavailable, "unknown authority"},
		"a client's unknown authority": {func(c *pgstore.Config) {
			c.CertFile, c.KeyFile = strange.ClientCert, strange.ClientKey
		}, store.ErrUnavailable, "unknown certificate authority"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := right
			c.change(&config)
			s := open(t, config)
			// a server that closes a connection may cut its own alert off, see RFC 8446, section 6: the next try has it
			for {
				_, err := s.Get(t.Context(), "key")
				if !errors.Is(err, c.want) {
					t.Fatalf("Get: %v; want %v", err, c.want)
				}
				if strings.Contains(err.Error(), c.text) {
					return
				}
				if !strings.Contains(err.Error(), "connection reset") {
					t.Fatalf("Get: %v; want an error that says %q", err, c.text)
				}
			}
		})
	}
}
