package keyring

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
)

const patience = 30 * time.Second

func ringOf(t testing.TB, letters string) *Ring {
	t.Helper()
	r, err := FromKeys(keysOf(letters))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// shake has a client and a server shake hands. Then the client reads what the server writes: until it does, it does not
// know whether the server has accepted it.
func shake(t testing.TB, client, server *tls.Config) (clientErr, serverErr error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	served := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			served <- err
			return
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(patience))
		s := tls.Server(c, server)
		err = s.Handshake()
		if err == nil {
			_, err = s.Write([]byte("!"))
		}
		served <- err
	}()
	c, clientErr := tls.DialWithDialer(&net.Dialer{Timeout: patience}, "tcp", l.Addr().String(), client)
	if clientErr == nil {
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(patience))
		_, clientErr = c.Read(make([]byte, 1))
	}
	return clientErr, <-served
}

// mixes are pairs of files that two machines may have, and whether the machines accept each other.
var mixes = []struct {
	one, other string
	want       bool
}{
	{"a", "a", true}, // the steps of a change of keys
	{"a", "ab", true},
	{"ab", "ab", true},
	{"ab", "b", true},
	{"b", "b", true},
	{"a", "b", false}, // not a step of it
	{"ab", "ba", true},
	{"abcd", "defg", true},
	{"abcd", "efgh", false},
	{"ab", "c", false},
}

// Two processes accept each other if, and only if, they share a key.
func TestWhoSharesAKey(t *testing.T) {
	for _, m := range mixes {
		for _, names := range [][2]string{{m.one, m.other}, {m.other, m.one}} {
			clientErr, serverErr := shake(t, ringOf(t, names[0]).Client("ids-1:7420"), ringOf(t, names[1]).Server())
			if (clientErr == nil) != m.want || (serverErr == nil) != m.want {
				t.Errorf("keys %s call %s: the client says %v, the server %v; want success: %v", names[0], names[1],
					clientErr, serverErr, m.want)
			}
		}
	}
}

// The same holds for etcd's own connections, which use the files.
func TestWhoSharesAKeyByFiles(t *testing.T) {
	info := func(letters string) transport.TLSInfo {
		t.Helper()
		ca, cert, key, name, err := ringOf(t, letters).WriteFiles(filepath.Join(t.TempDir(), "tls"))
		if err != nil {
			t.Fatal(err)
		}
		return transport.TLSInfo{
			TrustedCAFile: ca, CertFile: cert, KeyFile: key, ServerName: name,
			ClientCertAuth: true, MinVersion: tls.VersionTLS13,
		}
	}
	check := func(what string, client, server *tls.Config, want bool) {
		t.Helper()
		if clientErr, serverErr := shake(t, client, server); (clientErr == nil) != want || (serverErr == nil) != want {
			t.Errorf("%s: the client says %v, the server %v; want success: %v", what, clientErr, serverErr, want)
		}
	}
	for _, m := range mixes {
		for _, names := range [][2]string{{m.one, m.other}, {m.other, m.one}} {
			client, err := info(names[0]).ClientConfig()
			if err != nil {
				t.Fatal(err)
			}
			server, err := info(names[1]).ServerConfig()
			if err != nil {
				t.Fatal(err)
			}
			check(names[0]+" calls "+names[1]+", both from files", client, server, m.want)
			check(names[0]+" from files calls "+names[1], client, ringOf(t, names[1]).Server(), m.want)
			check(names[0]+" calls "+names[1]+" from files", ringOf(t, names[0]).Client("ids-1:7420"), server, m.want)
		}
	}
}

// The files are for this process alone, and a process that starts again replaces them.
func TestWriteFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data", "tls")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		ca, cert, key, _, err := ringOf(t, "ab").WriteFiles(dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tls.LoadX509KeyPair(cert, key); err != nil {
			t.Error(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 3 {
			t.Errorf("there are %v, %v; want three files", entries, err)
		}
		for path, want := range map[string]os.FileMode{dir: 0o700, ca: 0o600, cert: 0o600, key: 0o600} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: %v, %v; want mode %04o", path, info, err, want)
			}
		}
	}
	if _, _, _, _, err := ringOf(t, "a").WriteFiles(filepath.Join(dir, "ca.pem")); err == nil {
		t.Error("there is no error for a file in the place of the directory")
	}
}

// No clock locks a machine out, however wrong it is.
func TestNoClockMatters(t *testing.T) {
	r := ringOf(t, "ab")
	for _, one := range []int{1970, 2026, 2094, 9999} {
		for _, other := range []int{1970, 9999} {
			client, server := r.Client("ids-1:7420"), r.Server()
			client.Time = func() time.Time { return time.Date(one, 1, 2, 0, 0, 0, 0, time.UTC) }
			server.Time = func() time.Time { return time.Date(other, 1, 2, 0, 0, 0, 0, time.UTC) }
			if clientErr, serverErr := shake(t, client, server); clientErr != nil || serverErr != nil {
				t.Errorf("clocks in %d and %d: the client says %v, the server %v", one, other, clientErr, serverErr)
			}
		}
	}
}

// The authority's certificate is a function of the key alone, and says which key it is of.
func TestTheAuthorityIsTheSameEverywhere(t *testing.T) {
	k := keysOf("a")[0]
	older := k
	older.since--
	var made [][]byte
	for _, k := range []Key{k, k, older} {
		c, clients, err := k.authorities()
		if err != nil {
			t.Fatal(err)
		}
		if c.NotBefore.Unix() != 0 || c.NotAfter.Unix() != lastSecond ||
			c.Subject.CommonName != "firn quorum key "+k.Fingerprint() {
			t.Errorf("%q is valid from %v to %v", c.Subject.CommonName, c.NotBefore, c.NotAfter)
		}
		if clients.Subject.CommonName != "firn quorum key "+k.Fingerprint()+" for clients" {
			t.Errorf("the authority of its clients is %q", clients.Subject.CommonName)
		}
		made = append(made, c.Raw)
	}
	if !bytes.Equal(made[0], made[1]) {
		t.Error("one key makes two certificates")
	}
	if bytes.Equal(made[0], made[2]) {
		t.Error("machines accept each other that do not agree on when the key was made")
	}
}

// A session of a client whose key was taken away must not be resumed.
func TestNoSessionIsResumed(t *testing.T) {
	client, server := ringOf(t, "a").Client("ids-1:7420"), ringOf(t, "a").Server()
	client.ClientSessionCache = tls.NewLRUClientSessionCache(8)
	resumed := false
	client.VerifyConnection = func(s tls.ConnectionState) error {
		resumed = resumed || s.DidResume
		return nil
	}
	for range 3 {
		if clientErr, serverErr := shake(t, client, server); clientErr != nil || serverErr != nil {
			t.Fatal(clientErr, serverErr)
		}
	}
	if resumed {
		t.Error("a session was resumed")
	}
}

// A client with a key that follows from one of a machine's is admitted, and is no machine; nobody takes it for a
// server.
func TestClientsKeys(t *testing.T) {
	ofClients := func(letters string) *Ring {
		r, err := FromKeys(keysOf(letters).ForClients())
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, c := range []struct {
		name              string
		client, server    *Ring
		admitted, machine bool
	}{
		{"a machine", ringOf(t, "a"), ringOf(t, "a"), true, true},
		{"a machine with one of two keys", ringOf(t, "b"), ringOf(t, "ab"), true, true},
		{"a client", ofClients("a"), ringOf(t, "a"), true, false},
		{"a client, while the key is changed", ofClients("a"), ringOf(t, "ab"), true, false},
		{"a client with both keys", ofClients("ab"), ringOf(t, "b"), true, false},
		{"a client of another quorum", ofClients("a"), ringOf(t, "b"), false, false},
		{"a client calls a client", ofClients("a"), ofClients("a"), false, false},
		{"a machine calls a client", ringOf(t, "a"), ofClients("a"), false, false},
	} {
		server := c.server.Server()
		machine := false
		server.VerifyConnection = func(s tls.ConnectionState) error {
			machine = c.server.IsMachine(s)
			return nil
		}
		clientErr, serverErr := shake(t, c.client.Client("ids-1:7420"), server)
		if (clientErr == nil && serverErr == nil) != c.admitted || c.admitted && machine != c.machine {
			t.Errorf("%s: the client says %v, the server %v, a machine: %v; want admitted: %v, a machine: %v", c.name,
				clientErr, serverErr, machine, c.admitted, c.machine)
		}
	}
	refused := ofClients("a").CheckMachine("ids-1:7420")
	if refused == nil || !strings.HasPrefix(refused.Error(),
		"ids-1:7420 is a machine of the quorum, and the key of this process is for clients") {
		t.Errorf("as a machine: %v; want an error", refused)
	}
	if err := ringOf(t, "a").CheckMachine("ids-1:7420"); err != nil {
		t.Error(err)
	}
}

func TestFromKeysWithoutKeys(t *testing.T) {
	for _, letters := range []string{"", "abcde"} {
		if _, err := FromKeys(keysOf(letters)); err == nil || !strings.HasSuffix(err.Error(), "keys; want 1 to 4") {
			t.Errorf("%d keys: %v; want an error", len(letters), err)
		}
	}
}

// Whoever shows nothing, or a certificate of a stranger, is refused; both sides are told why.
func TestServerRefuses(t *testing.T) {
	ring := ringOf(t, "a")
	config := func(change func(*tls.Config)) *tls.Config {
		c := ring.Client("ids-1:7420")
		change(c)
		return c
	}
	another := keysOf("b").Fingerprints()
	for _, c := range []struct {
		name      string
		client    *tls.Config
		why, key  string
		explained string
	}{
		{
			"no certificate", config(func(c *tls.Config) { c.GetClientCertificate = nil }),
			"it showed no certificate", "", "ids-1:7420 has another key than this machine",
		},
		{
			"another key, and the certificate of the right one's authority", config(func(c *tls.Config) {
				c.GetClientCertificate = ringOf(t, "b").Client("").GetClientCertificate
			}),
			"it has another key", another, "ids-1:7420 has another key than this machine",
		},
		{
			"another key", ringOf(t, "b").Client("ids-1:7420"),
			"it has another key", "",
			"ids-1:7420 has another key (" + keysOf("a").Fingerprints() + ") than this machine",
		},
		{
			"TLS 1.2", config(func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS12, tls.VersionTLS12 }),
			"it speaks an older version of TLS than 1.3", "", "ids-1:7420 speaks an older version of TLS",
		},
		{
			"another protocol", config(func(c *tls.Config) { c.NextProtos = []string{"smtp"} }),
			"it wants a protocol that is not spoken here", "",
			"ids-1:7420 speaks TLS, but not as a machine of a quorum does",
		},
	} {
		server := ring.Server()
		server.NextProtos = []string{"h2"}
		clientErr, serverErr := shake(t, c.client, server)
		if clientErr == nil || serverErr == nil {
			t.Errorf("%s: the client says %v, the server %v; want errors", c.name, clientErr, serverErr)
			continue
		}
		if why, key := ring.Refusal(serverErr); why != c.why || key != c.key {
			t.Errorf("%s: the server says %q, %q of %v; want %q, %q", c.name, why, key, serverErr, c.why, c.key)
		}
		if got := ringOf(t, "b").Explain(clientErr, "ids-1:7420").Error(); !strings.HasPrefix(got, c.explained) {
			t.Errorf("%s: the client says %q of %v; want %q", c.name, got, clientErr, c.explained)
		}
	}
}

// A client checks whom it talks to as well: a server that accepts everybody learns nothing.
func TestClientRefuses(t *testing.T) {
	client, thief := ringOf(t, "a"), ringOf(t, "b").Server()
	thief.ClientAuth = tls.NoClientCert
	clientErr, _ := shake(t, client.Client("ids-1:7420"), thief)
	want := fmt.Sprintf("ids-1:7420 has another key (%s) than this machine (%s); give all machines the same "+
		"--quorum-key-file",
		keysOf("b").Fingerprints(), keysOf("a").Fingerprints())
	if got := client.Explain(clientErr, "ids-1:7420"); got == nil || got.Error() != want {
		t.Errorf("%v; want %s", got, want)
	}
}
