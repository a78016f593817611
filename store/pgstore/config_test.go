package pgstore

import (
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/test/logtest"
)

// What pgx and its pool read from a URL is for nobody else, and a server would refuse it. The rest of the URL stays.
func TestSettingsOfPools(t *testing.T) {
	var log logtest.Journal
	s, err := Config{
		URL: "postgres://app@127.0.0.1/app?pool_max_conns=10&default_query_exec_mode=exec" +
			"&statement_timeout=5s&application_name=orders",

		Logger: log.Logger(),
	}.settings()
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.connection()
	if err != nil {
		t.Fatal(err)
	}
	if p := c.RuntimeParams; len(p) != 2 || p["statement_timeout"] != "5s" || p["application_name"] != "orders" {
		t.Errorf("the server gets %v", p)
	}
	for _, want := range []string{"setting=pool_max_conns value=10", "setting=default_query_exec_mode value=exec"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log is\n%s\nwant %s", log.String(), want)
		}
	}
}

// An address may leave out anything that PGHOST and the like have.
func TestAddressesFromTheEnvironment(t *testing.T) {
	t.Setenv("PGHOST", "db.example.org")
	t.Setenv("PGUSER", "app")
	for _, url := range []string{
		"postgres://", "postgres:///", "postgresql://?sslmode=disable", "postgres://app@",
		"postgres://db.example.org",
	} {
		s, err := Config{URL: url}.settings()
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		if c, err := s.connection(); err != nil || c.Host != "db.example.org" || c.User != "app" {
			t.Errorf("%s leads to %+v, %v", url, c, err)
		}
	}
}

// An address that can't be used is told of without the password in it.
func TestWrongAddresses(t *testing.T) {
	for url, want := range map[string]string{
		"mysql://app:secret@127.0.0.1/app": `the address of the database is not a URL like ` +
			`"postgres://user@host:5432/database"`,
		"postgres://app:secret@127.0.0.1/app?sslmode=perhaps": "the address of the database: failed to configure " +
			"TLS (sslmode is invalid)",
		"postgres://app:secret@127.0.0.1:port/app": `the address of the database is not a URL like ` +
			`"postgres://user@host:5432/database"`,
		"postgres://app:secret@127.0.0.1:99999/app":               "the address of the database: ",
		"postgres://app:secret@127.0.0.1/app?connect_timeout=few": "the address of the database: ",
	} {
		_, err := Open(Config{URL: url})
		if err == nil || !strings.HasPrefix(err.Error(), want) ||
			len(err.Error()) < len("the address of the database: .") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v; want %s", url, err, want)
		}
	}
}
