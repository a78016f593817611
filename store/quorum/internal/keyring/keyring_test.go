package keyring

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// keysOf returns keys that are the same for the same letters.
func keysOf(letters string) (keys Keys) {
	for _, l := range letters {
		k := Key{since: 1_800_000_000 + int64(l)}
		copy(k.secret[:], strings.Repeat(string(l), secretSize))
		keys = append(keys, k)
	}
	return keys
}

func ringOf(t testing.TB, letters string) *Ring {
	t.Helper()
	r, err := FromKeys(keysOf(letters))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// shake has a client and a server shake hands, and the client then read a byte.
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
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		s := tls.Server(c, server)
		err = s.Handshake()
		if err == nil {
			_, err = s.Write([]byte("!"))
		}
		served <- err
	}()
	c, clientErr := tls.DialWithDialer(&net.Dialer{Timeout: time.Minute}, "tcp", l.Addr().String(), client)
	if clientErr == nil {
		defer c.Close()
		_, clientErr = c.Read(make([]byte, 1))
	}
	return clientErr, <-served
}

// Two processes accept each other if, and only if, they share a key: through all steps of a change of keys.
func TestWhoSharesAKey(t *testing.T) {
	for _, c := range []struct {
		one, other string
		want       bool
	}{
		{"a", "a", true},
		{"a", "ab", true},
		{"ab", "ab", true},
		{"ab", "ba", true},
		{"b", "ab", true},
		{"a", "b", false},
		{"abcd", "defg", true},
		{"abcd", "efgh", false},
		{"ab", "c", false},
	} {
		one, other := ringOf(t, c.one), ringOf(t, c.other)
		for _, way := range [][2]*Ring{{one, other}, {other, one}} {
			clientErr, serverErr := shake(t, way[0].Client("ids-1:7420"), way[1].Server())
			if got := clientErr == nil && serverErr == nil; got != c.want || (clientErr == nil) != (serverErr == nil) {
				t.Errorf("%s and %s: the client says %v, the server %v; want success: %v", c.one, c.other, clientErr, serverErr, c.want)
			}
		}
	}
}

// No clock locks a machine out, however wrong it is.
func TestNoClockMatters(t *testing.T) {
	r := ringOf(t, "ab")
	for _, year := range []int{1970, 2026, 2094, 9999} {
		at := func() time.Time { return time.Date(year, 1, 2, 0, 0, 0, 0, time.UTC) }
		client, server := r.Client("ids-1:7420"), r.Server()
		for _, c := range []*tls.Config{client, server} {
			c.Time = at
			if err := errors2(shake(t, client, server)); err != nil {
				t.Errorf("with a clock in %d: %v", year, err)
			}
		}
	}
}

func errors2(a, b error) error {
	if a == nil && b == nil {
		return nil
	}
	return fmt.Errorf("the client says %w, the server %w", a, b)
}

// The authority's certificate is a function of the key alone.
func TestTheAuthorityIsTheSameEverywhere(t *testing.T) {
	k := keysOf("a")[0]
	one, err := k.certificate()
	if err != nil {
		t.Fatal(err)
	}
	other, err := k.certificate()
	if err != nil {
		t.Fatal(err)
	}
	later := k
	later.since++
	third, err := later.certificate()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(one.Raw, other.Raw) || bytes.Equal(one.Raw, third.Raw) {
		t.Errorf("the same: %v, with another time: %v; want it the same for the same key alone", bytes.Equal(one.Raw, other.Raw), bytes.Equal(one.Raw, third.Raw))
	}
	if one.NotBefore.Unix() != 0 || one.NotAfter.Year() != 9999 {
		t.Errorf("it is valid from %v to %v", one.NotBefore, one.NotAfter)
	}
	if !strings.Contains(one.Subject.CommonName, k.Fingerprint()) || len(k.Fingerprint()) != 8 {
		t.Errorf("it is called %q, and the key's fingerprint is %q", one.Subject.CommonName, k.Fingerprint())
	}
}

// Whoever shows nothing, or a certificate of a stranger, comes nowhere; and no session is resumed.
func TestServerRefuses(t *testing.T) {
	server := ringOf(t, "a").Server()
	if server.MinVersion != tls.VersionTLS13 || !server.SessionTicketsDisabled {
		t.Errorf("it takes version %x, and session tickets: %v", server.MinVersion, !server.SessionTicketsDisabled)
	}
	bare := ringOf(t, "a").Client("ids-1:7420")
	bare.GetClientCertificate = nil
	stranger := ringOf(t, "b").Client("ids-1:7420")
	stranger.RootCAs = ringOf(t, "a").roots() // it knows the certificate that the key makes, and not the key
	old := ringOf(t, "a").Client("ids-1:7420")
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	protocol := ringOf(t, "a").Client("ids-1:7420")
	protocol.NextProtos = []string{"smtp"}
	server.NextProtos = []string{"h2"}
	r := ringOf(t, "a")
	for _, c := range []struct {
		name       string
		client     *tls.Config
		why, keys  string
		clientSays string
	}{
		{"no certificate", bare, "it showed no certificate", "", "ids-1:7420 has another key than this machine"},
		{"another key", stranger, "it has another key", keysOf("b")[0].Fingerprint(), "ids-1:7420 has another key than this machine"},
		{"TLS 1.2", old, "it speaks an older version of TLS than 1.3", "", "ids-1:7420 speaks an older version of TLS"},
		{"another protocol", protocol, "it wants a protocol that is not spoken here", "", "ids-1:7420 speaks TLS, but not as a machine of a quorum does"},
	} {
		clientErr, serverErr := shake(t, c.client, server)
		if clientErr == nil || serverErr == nil {
			t.Errorf("%s: the client says %v, the server %v; want errors", c.name, clientErr, serverErr)
			continue
		}
		if why, keys := r.Refusal(serverErr); why != c.why || keys != c.keys {
			t.Errorf("%s: %q, %q of %v; want %q, %q", c.name, why, keys, serverErr, c.why, c.keys)
		}
		if got := r.Explain(clientErr, "ids-1:7420").Error(); !strings.HasPrefix(got, c.clientSays) {
			t.Errorf("%s: the client is told %q of %v; want %q", c.name, got, clientErr, c.clientSays)
		}
	}
}

// The client, too, checks whom it talks to.
func TestClientRefuses(t *testing.T) {
	client := ringOf(t, "a")
	thief := ringOf(t, "b").Server()
	thief.ClientCAs = client.roots()
	clientErr, _ := shake(t, client.Client("ids-1:7420"), thief)
	want := fmt.Sprintf("ids-1:7420 has another key (%s) than this machine (%s); give all machines the same --quorum-key-file", keysOf("b").Fingerprints(), keysOf("a").Fingerprints())
	if got := client.Explain(clientErr, "ids-1:7420"); got == nil || got.Error() != want {
		t.Errorf("%v; want %s", got, want)
	}
	var unknown x509.UnknownAuthorityError
	_ = unknown
}
