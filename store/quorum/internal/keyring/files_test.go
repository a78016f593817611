package keyring

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn/internal/test/certtest"
)

// ownFiles are the files of a machine with an authority of the user's own.
type ownFiles struct{ ca, cert, key string }

// write writes a certificate that an authority issues for localhost, and trust as the authority that it knows.
func (f ownFiles) write(t *testing.T, issuer, trust *certtest.Authority, until time.Time) {
	t.Helper()
	cert, key := issuer.Issue("ids-1", x509.ExtKeyUsageAny, until)
	for path, text := range map[string][]byte{f.ca: trust.PEM, f.cert: cert, f.key: key} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func theMachines() []string { return []string{"127.0.0.1", "ids-9"} }

func newFiles(t *testing.T, issuer, trust *certtest.Authority, until time.Time) (ownFiles, *Ring) {
	t.Helper()
	dir := t.TempDir()
	f := ownFiles{filepath.Join(dir, "ca.pem"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	f.write(t, issuer, trust, until)
	r, err := FromFiles(f.ca, f.cert, f.key, theMachines, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return f, r
}

// With an authority of the user's own, certificates are for hosts, and must be of that authority.
func TestOwnAuthority(t *testing.T) {
	mine, other := certtest.NewAuthority(t, "mine"), certtest.NewAuthority(t, "other")
	never := time.Time{}
	_, here := newFiles(t, mine, mine, never)
	_, stranger := newFiles(t, other, other, never)
	_, spy := newFiles(t, other, mine, never)
	_, expired := newFiles(t, mine, mine, time.Now().Add(-time.Minute))
	keys := ringOf(t, "a")
	for _, c := range []struct {
		name           string
		client, server *Ring
		address        string
		says, why      string // empty: success
	}{
		{"same", here, here, "localhost:7420", "", ""},
		{"same, by IP address", here, here, "127.0.0.1:7420", "", ""},
		{
			"another host", here, here, "ids-2:7420", "ids-2:7420 has a certificate for another host: ",
			"it refuses the certificate of this machine",
		},
		{
			"another authority", here, stranger, "localhost:7420",
			"localhost:7420 has a certificate of another authority than those in ",
			"it refuses the certificate of this machine",
		},
		{
			"a client of another authority", spy, here, "localhost:7420", "localhost:7420 refuses the certificate in ",
			"its certificate is of another authority",
		},
		{
			"an expired server", here, expired, "localhost:7420",
			"localhost:7420 has a certificate that is not valid: ",
			"it refuses the certificate of this machine",
		},
		{
			"an expired client", expired, here, "localhost:7420", "localhost:7420 refuses the certificate in ",
			"its certificate is not valid",
		},
		{
			"a key", keys, here, "localhost:7420", "localhost:7420 has another key than this machine",
			"it refuses the certificate of this machine",
		},
		{"the certificate of a key", here, keys, "localhost:7420", "localhost:7420 uses a key (" +
			keysOf("a").Fingerprints() + "), and this machine the certificate in ", "it has another key"},
	} {
		clientErr, serverErr := shake(t, c.client.Client(c.address), c.server.Server())
		if c.says == "" {
			if clientErr != nil || serverErr != nil {
				t.Errorf("%s: the client says %v, the server %v", c.name, clientErr, serverErr)
			}
			continue
		}
		if clientErr == nil || serverErr == nil {
			t.Errorf("%s: the client says %v, the server %v; want errors", c.name, clientErr, serverErr)
			continue
		}
		if got := c.client.Explain(clientErr, c.address).Error(); !strings.HasPrefix(got, c.says) {
			t.Errorf("%s: the client says %q of %v; want %q", c.name, got, clientErr, c.says)
		}
		if why, _ := c.server.Refusal(serverErr); why != c.why {
			t.Errorf("%s: the server says %q of %v; want %q", c.name, why, serverErr, c.why)
		}
	}
}

// A certificate says by the names in it whether its owner is a machine, a client or neither.
func TestNamesInCertificates(t *testing.T) {
	own := certtest.NewAuthority(t, "own")
	f, server := newFiles(t, own, own, time.Time{})
	for _, c := range []struct {
		names             []string
		admitted, machine bool
	}{
		{[]string{"ids-9"}, true, true},
		{[]string{"web", "IDS-9"}, true, true},
		{[]string{ClientName}, true, false},
		{[]string{"ids-9", ClientName}, true, true},
		{[]string{"web"}, false, false},
		{[]string{"ids-9.example.com", "quorum.firn.internal", "firn.internal"}, false, false},
		{nil, false, false},
	} {
		cert, key := own.IssueTo(c.names...)
		for path, text := range map[string][]byte{f.cert + ".c": cert, f.key + ".c": key} {
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		client, err := FromFiles(f.ca, f.cert+".c", f.key+".c", theMachines, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		config := server.Server()
		verify, machine := config.VerifyConnection, false
		config.VerifyConnection = func(s tls.ConnectionState) error {
			machine = server.IsMachine(s)
			return verify(s)
		}
		clientErr, serverErr := shake(t, client.Client("localhost:7420"), config)
		if (clientErr == nil && serverErr == nil) != c.admitted || machine != c.machine {
			t.Errorf("%q: the client says %v, the server %v, a machine: %v; want admitted: %v, a machine: %v", c.names,
				clientErr, serverErr, machine, c.admitted, c.machine)
		}
		if err := client.CheckMachine("ids-9:7420"); (err == nil) != c.machine {
			t.Errorf("%q as ids-9: %v", c.names, err)
		}
		if c.admitted {
			continue
		}
		if why, _ := server.Refusal(serverErr); why != "its certificate names no machine, and is not for clients" {
			t.Errorf("%q: the server says %q of %v", c.names, why, serverErr)
		}
		if got := client.Explain(clientErr, "localhost:7420").Error(); !strings.Contains(got,
			"that names a machine of its list, or client.quorum.firn.internal for a client") {
			t.Errorf("%q: the client says %q", c.names, got)
		}
	}
}

// Configurations that were made before the files changed use what the files have now, within a second.
func TestOwnFilesAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, after := certtest.NewAuthority(t, "before"), certtest.NewAuthority(t, "after")
		here, ring := newFiles(t, before, before, time.Time{})
		_, old := newFiles(t, before, before, time.Time{})
		_, changed := newFiles(t, after, after, time.Time{})
		client, server := ring.Client("localhost:7420"), ring.Server()
		check := func(what string, other *Ring, want bool) {
			t.Helper()
			if clientErr, serverErr := shake(t, client,
				other.Server()); (clientErr == nil && serverErr == nil) != want {
				t.Errorf("%s, as a client: %v, and the server says %v; want success: %v", what, clientErr,
					serverErr, want)
			}
			if clientErr, serverErr := shake(t, other.Client("localhost:7420"),
				server); (clientErr == nil && serverErr == nil) != want {
				t.Errorf("%s, as a server: %v, and the client says %v; want success: %v", what, serverErr,
					clientErr, want)
			}
		}
		check("before the change", old, true)
		check("before the change", changed, false)
		here.write(t, after, after, time.Time{})
		time.Sleep(time.Second)
		check("after the change", old, false)
		check("after the change", changed, true)
		if err := os.WriteFile(here.ca, []byte("nothing"), 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		check("with a wrong file", changed, true)
	})
}

// Files that can't be used are found when the process starts.
func TestWrongOwnFiles(t *testing.T) {
	a := certtest.NewAuthority(t, "mine")
	good, _ := newFiles(t, a, a, time.Time{})
	for _, c := range []struct{ ca, cert, key, want string }{
		{"none.pem", good.cert, good.key, "none.pem: no such file or directory"},
		{
			good.key, good.cert, good.key,
			good.key + ": no certificate; want a PEM file with lines that say BEGIN CERTIFICATE",
		},
		{good.ca, good.ca, good.key, good.ca + " and " + good.key + ": not a certificate and its key: "},
		{good.ca, good.cert, good.cert, good.cert + " and " + good.cert + ": not a certificate and its key: "},
	} {
		if _, err := FromFiles(c.ca, c.cert, c.key, theMachines, slog.New(slog.DiscardHandler)); err == nil ||
			!strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v; want %s", err, c.want)
		}
	}
}

// etcd gets the user's own files.
func TestOwnFilesAreNotCopied(t *testing.T) {
	a := certtest.NewAuthority(t, "mine")
	f, r := newFiles(t, a, a, time.Time{})
	dir := filepath.Join(t.TempDir(), "tls")
	ca, cert, key, name, err := r.WriteFiles(dir)
	if (ownFiles{ca, cert, key}) != f || name != "" || err != nil {
		t.Errorf("%s, %s, %s, %q, %v; want the files as they are, and no name", ca, cert, key, name, err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("a directory is made")
	}
}
