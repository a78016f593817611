package conns

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/test/bufconn"

	"github.com/firn-id/firn/internal/test/certtest"
	"github.com/firn-id/firn/internal/test/logtest"
)

// secured is a server whose files the test changes. It answers each connection with "hello".
type secured struct {
	t      *testing.T
	log    logtest.Journal
	files  TLSFiles
	ca     *certtest.Authority // of the server
	config *tls.Config
}

// newSecured makes one with the certificate "first". Without CAs clients need no certificate.
func newSecured(t *testing.T, clientCAs []byte) *secured {
	t.Helper()
	directory := t.TempDir()
	s := &secured{t: t, ca: certtest.NewAuthority(t, "server CA")}
	s.files.Cert, s.files.Key = filepath.Join(directory, "tls.crt"), filepath.Join(directory, "tls.key")
	cert, key := s.ca.Issue("first", x509.ExtKeyUsageServerAuth, time.Time{})
	write(t, s.files.Cert, cert)
	write(t, s.files.Key, key)
	if clientCAs != nil {
		s.files.ClientCA = filepath.Join(directory, "ca.crt")
		write(t, s.files.ClientCA, clientCAs)
	}
	var err error
	if s.config, err = OpenTLS(s.files, s.log.Logger()); err != nil {
		t.Fatal(err)
	}
	return s
}

func write(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// becomes changes a file, and waits until it is read again.
func (s *secured) becomes(path string, data []byte) {
	s.t.Helper()
	write(s.t, path, data)
	time.Sleep(time.Second)
}

// client is how one calls the server.
func (s *secured) client(certs ...tls.Certificate) *tls.Config {
	return &tls.Config{RootCAs: s.ca.Pool(), ServerName: "localhost", Certificates: certs}
}

// dial connects a client over memory, so that it works in simulated time.
func (s *secured) dial(c *tls.Config) *tls.Conn {
	s.t.Helper()
	l := bufconn.Listen(64 << 10)
	go func() {
		raw, err := l.Accept()
		if err != nil {
			return // the client sees it, as it sees all that fails
		}
		defer raw.Close()
		there := tls.Server(raw, s.config)
		_, _ = io.WriteString(there, "hello")
		_ = there.CloseWrite()
		_, _ = io.Copy(io.Discard, raw) // until the client closes
	}()
	here, err := l.Dial()
	if err != nil {
		s.t.Fatal(err)
	}
	return tls.Client(here, c)
}

// call returns the name on the server's certificate, and whether a session was resumed.
func (s *secured) call(c *tls.Config) (name string, resumed bool, _ error) {
	conn := s.dial(c)
	defer conn.Close()
	if _, err := io.ReadAll(conn); err != nil {
		return "", false, err
	}
	state := conn.ConnectionState()
	return state.PeerCertificates[0].Subject.CommonName, state.DidResume, nil
}

func (s *secured) answers(c *tls.Config, want string) {
	s.t.Helper()
	if name, _, err := s.call(c); name != want {
		s.t.Errorf("the server is %q, %v; want %q", name, err, want)
	}
}

// refuses fails unless the server refuses a client, in these words.
func (s *secured) refuses(c *tls.Config, want string) {
	s.t.Helper()
	if name, resumed, err := s.call(c); !strings.Contains(text(err), want) || err == nil {
		s.t.Errorf("%q answers (resumed: %v), %v; want %s", name, resumed, err, want)
	}
}

func TestTLSFromVersion12(t *testing.T) {
	s := newSecured(t, nil)
	for version, may := range map[uint16]bool{tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		c := s.client()
		c.MinVersion, c.MaxVersion = tls.VersionTLS10, version
		if _, _, err := s.call(c); (err == nil) != may {
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}
	}
}

func TestCertificateIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSecured(t, nil)
		s.answers(s.client(), "first")
		cert, key := s.ca.Issue("second", x509.ExtKeyUsageServerAuth, time.Time{})

		// One file after the other: until they match, the old ones go on.
		write(t, s.files.Cert, cert)
		for _, logged := range [][]string{{"not the key of the certificate in " + s.files.Cert}, nil} {
			time.Sleep(time.Second)
			s.answers(s.client(), "first")
			s.log.Wants(t, logged...)
		}
		s.becomes(s.files.Key, key)
		s.answers(s.client(), "second")
		s.log.Wants(t, "the certificate and its key were read again")

		// What is no certificate changes nothing, and its key stands in no log.
		s.becomes(s.files.Cert, key)
		s.answers(s.client(), "second")
		lines := strings.Join(s.log.Take(), "\n")
		if !strings.Contains(lines, "no certificate") ||
			strings.Contains(lines, strings.Split(string(key), "\n")[1][:10]) {
			t.Errorf("logged: %s", lines)
		}
		if err := os.Remove(s.files.Key); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		s.answers(s.client(), "second")
		s.log.Wants(t, s.files.Key+": no such file")
	})
}

func TestOnlyClientsOfTheCAComeIn(t *testing.T) {
	clients, others := certtest.NewAuthority(t, "clients"), certtest.NewAuthority(t, "others")
	s := newSecured(t, clients.PEM)
	good := clients.Client(x509.ExtKeyUsageClientAuth, time.Time{})
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		call := func(certs ...tls.Certificate) *tls.Config {
			c := s.client(certs...)
			c.MinVersion, c.MaxVersion = version, version
			return c
		}
		s.answers(call(good), "first")
		none := "certificate required"
		if version == tls.VersionTLS12 {
			none = "handshake failure"
		}
		s.refuses(call(), none)
		s.refuses(call(others.Client(x509.ExtKeyUsageClientAuth, time.Time{})), "bad certificate")
		s.refuses(call(clients.Client(x509.ExtKeyUsageServerAuth, time.Time{})), "bad certificate")
		s.refuses(call(clients.Client(x509.ExtKeyUsageClientAuth, time.Now().Add(-time.Minute))), "bad certificate")
	}
}

// A client sends the certificates between its own and the CA.
func TestClientsOfACABelowTheCA(t *testing.T) {
	clients := certtest.NewAuthority(t, "clients")
	below := clients.Below("below")
	s := newSecured(t, clients.PEM)
	cert := below.Client(x509.ExtKeyUsageClientAuth, time.Time{})
	s.refuses(s.client(cert), "bad certificate")
	cert.Certificate = append(cert.Certificate, below.Cert.Raw)
	s.answers(s.client(cert), "first")
}

func TestClientCAsAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before, after := certtest.NewAuthority(t, "before"), certtest.NewAuthority(t, "after")
		s := newSecured(t, before.PEM)
		older := s.client(before.Client(x509.ExtKeyUsageClientAuth, time.Time{}))
		newer := s.client(after.Client(x509.ExtKeyUsageClientAuth, time.Time{}))
		s.answers(older, "first")
		s.refuses(newer, "bad certificate")

		s.becomes(s.files.ClientCA, append(append([]byte("# both\n"), before.PEM...), after.PEM...))
		s.answers(older, "first")
		s.answers(newer, "first")
		s.log.Wants(t, "the CAs of clients were read again")

		s.becomes(s.files.ClientCA, after.PEM)
		s.refuses(older, "bad certificate")
		s.answers(newer, "first")
		s.log.Wants(t, "the CAs of clients were read again")

		s.becomes(s.files.ClientCA, []byte("rubbish"))
		s.refuses(older, "bad certificate")
		s.answers(newer, "first")
		s.log.Wants(t, "no certificate; want a PEM file")
	})
}

// Who came in once can't come in again by the session, when its CA is no longer there.
func TestResumedSessionsAreCheckedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			before, after := certtest.NewAuthority(t, "before"), certtest.NewAuthority(t, "after")
			s := newSecured(t, before.PEM)
			c := s.client(before.Client(x509.ExtKeyUsageClientAuth, time.Time{}))
			c.MinVersion, c.MaxVersion = version, version
			c.ClientSessionCache = tls.NewLRUClientSessionCache(0)
			s.answers(c, "first")
			if name, resumed, err := s.call(c); !resumed {
				t.Fatalf("%s: the session of %q was not resumed: %v", tls.VersionName(version), name, err)
			}
			s.becomes(s.files.ClientCA, after.PEM)
			s.refuses(c, "bad certificate")
		}
	})
}

// The configuration is one that net/http makes HTTP/2 of, and others what they want.
func TestProtocolsAreTheServers(t *testing.T) {
	clients := certtest.NewAuthority(t, "clients")
	for _, cas := range [][]byte{nil, clients.PEM} {
		s := newSecured(t, cas)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{
			TLSConfig: s.config.Clone(), ReadHeaderTimeout: time.Minute,
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.WriteString(w, r.Proto)
			}),
		}
		go func() { _ = server.ServeTLS(NewLimiter(10, s.log.Logger()).Limit(l), "", "") }()
		t.Cleanup(func() { server.Close() })
		for _, h2 := range []bool{true, false} {
			transport := &http.Transport{TLSClientConfig: s.client(clients.Client(x509.ExtKeyUsageClientAuth,
				time.Time{})), ForceAttemptHTTP2: h2}
			t.Cleanup(transport.CloseIdleConnections)
			response, err := (&http.Client{Transport: transport}).Get("https://" + l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(response.Body)
			response.Body.Close()
			if want := map[bool]string{true: "HTTP/2.0", false: "HTTP/1.1"}[h2]; err != nil || string(body) != want {
				t.Errorf("%s, %v; want %s", body, err, want)
			}
		}
		asking := s.client(clients.Client(x509.ExtKeyUsageClientAuth, time.Time{}))
		asking.NextProtos = []string{"h2"}
		conn := s.dial(asking)
		if err := conn.Handshake(); err != nil {
			t.Fatal(err)
		}
		if got := conn.ConnectionState().NegotiatedProtocol; got != "" {
			t.Errorf("a listener without protocols speaks %q", got)
		}
		conn.Close()
	}
}

func TestFilesThatAreNoTLS(t *testing.T) {
	directory := t.TempDir()
	ca, in := certtest.NewAuthority(t, "server CA"), func(name string) string { return filepath.Join(directory, name) }
	cert, key := ca.Issue("server", x509.ExtKeyUsageServerAuth, time.Time{})
	_, otherKey := ca.Issue("other", x509.ExtKeyUsageServerAuth, time.Time{})
	for name, data := range map[string][]byte{
		"cert": cert, "key": key, "other.key": otherKey, "text": []byte("hello"), "ca": ca.PEM,
		"broken":  certtest.Encode("CERTIFICATE", []byte("hello")),
		"broken2": append(ca.PEM[:len(ca.PEM):len(ca.PEM)], certtest.Encode("CERTIFICATE", nil)...),
		"locked":  certtest.Encode("ENCRYPTED PRIVATE KEY", []byte("hello")),
	} {
		write(t, in(name), data)
	}
	const both = "TLS needs a file with a certificate and one with its key; set both"
	for _, tt := range []struct {
		files TLSFiles
		want  string // the beginning; empty: fine
	}{
		{TLSFiles{in("cert"), in("key"), ""}, ""},
		{TLSFiles{in("cert"), in("key"), in("ca")}, ""},
		{TLSFiles{}, both},
		{TLSFiles{Cert: in("cert")}, both},
		{TLSFiles{Key: in("key"), ClientCA: in("ca")}, both},
		{TLSFiles{in("none"), in("key"), ""}, in("none") + ": no such file or directory"},
		{TLSFiles{in("cert"), in("none"), ""}, in("none") + ": no such file or directory"},
		{TLSFiles{in("cert"), in("key"), in("none")}, in("none") + ": no such file or directory"},
		{TLSFiles{in("cert"), in("other.key"), ""}, in("other.key") + ": not the key of the certificate in " +
			in("cert") + ": tls: private key does not match public key; want a PEM file without a password"},
		{
			TLSFiles{in("cert"), in("text"), ""},
			in("text") + ": not the key of the certificate in " + in("cert") + ": tls: ",
		},
		{
			TLSFiles{in("cert"), in("locked"), ""},
			in("locked") + ": not the key of the certificate in " + in("cert") + ": tls: failed to parse private key",
		},
		{
			TLSFiles{in("text"), in("key"), ""},
			in("text") + ": no certificate; want a PEM file with lines that say BEGIN CERTIFICATE",
		},
		{TLSFiles{in("key"), in("cert"), ""}, in("key") + ": no certificate; "},
		{TLSFiles{in("broken"), in("key"), ""}, in("broken") + ": can't read certificate 1: x509: "},
		{TLSFiles{in("cert"), in("key"), in("key")}, in("key") + ": no certificate; "},
		{TLSFiles{in("cert"), in("key"), in("broken2")}, in("broken2") + ": can't read certificate 2: x509: "},
	} {
		var log logtest.Journal
		config, err := OpenTLS(tt.files, log.Logger())
		if !strings.HasPrefix(text(err), tt.want) || (err == nil) != (tt.want == "") ||
			(config == nil) != (err != nil) {
			t.Errorf("%+v: %v\nwant %s", tt.files, err, tt.want)
		}
		log.Wants(t)
	}
}

func TestAnExpiredCertificateIsLogged(t *testing.T) {
	s := newSecured(t, nil)
	s.log.Wants(t)
	cert, key := s.ca.Issue("old", x509.ExtKeyUsageServerAuth, time.Now().Add(-time.Minute))
	write(t, s.files.Cert, cert)
	write(t, s.files.Key, key)
	if _, err := OpenTLS(s.files, s.log.Logger()); err != nil {
		t.Error(err)
	}
	s.log.Wants(t, `level=WARN msg="the certificate has expired: clients will refuse it" file=`+s.files.Cert)
}

func TestNoCertificateIsNone(t *testing.T) {
	if err := checkClient(nil, x509.NewCertPool()); text(err) != "the client shows no certificate" {
		t.Error(err)
	}
}
