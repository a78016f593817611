// Package certtest makes certificates for the tests of any package. It is not for
// production code.
package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// T is what a test is to this package: a testing.TB or a testscript.TestScript.
type T interface {
	Fatalf(format string, args ...any)
}

// Authority is a certificate authority. Its methods end the test when they fail.
type Authority struct {
	Cert *x509.Certificate
	PEM  []byte // of Cert

	t   T
	key *ecdsa.PrivateKey
}

// NewAuthority makes an authority that signs itself, valid for an hour.
func NewAuthority(t T, name string) *Authority { return (&Authority{t: t}).Below(name) }

// Below makes an authority whose certificate a signs.
func (a *Authority) Below(name string) *Authority {
	below := &Authority{t: a.t}
	below.Cert, below.key = a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	below.PEM = Encode("CERTIFICATE", below.Cert.Raw)
	return below
}

// Issue makes a certificate for localhost and 127.0.0.1, and its key, both in PEM. A zero
// until stands for an hour from now.
func (a *Authority) Issue(name string, usage x509.ExtKeyUsage, until time.Time) (cert, key []byte) {
	return a.issue(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotAfter: until, ExtKeyUsage: []x509.ExtKeyUsage{usage},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	})
}

// IssueTo makes a certificate for servers and clients with these names, which are no addresses, and its key, both in
// PEM, for an hour.
func (a *Authority) IssueTo(names ...string) (cert, key []byte) {
	return a.issue(&x509.Certificate{DNSNames: names, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
}

func (a *Authority) issue(c *x509.Certificate) (cert, key []byte) {
	c.KeyUsage = x509.KeyUsageDigitalSignature
	c, k := a.sign(c)
	der, err := x509.MarshalPKCS8PrivateKey(k)
	a.check(err)
	return Encode("CERTIFICATE", c.Raw), Encode("PRIVATE KEY", der)
}

// Client makes a certificate that a client can show.
func (a *Authority) Client(usage x509.ExtKeyUsage, until time.Time) tls.Certificate {
	cert, err := tls.X509KeyPair(a.Issue("client", usage, until))
	a.check(err)
	return cert
}

// Pool holds the authority's certificate.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.Cert)
	return pool
}

// sign makes a certificate, valid from an hour ago. An authority without a certificate lets
// it sign itself.
func (a *Authority) sign(c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	a.check(err)
	c.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62))
	a.check(err)
	c.NotBefore = time.Now().Add(-time.Hour)
	if c.NotAfter.IsZero() {
		c.NotAfter = time.Now().Add(time.Hour)
	}
	parent, signer := a.Cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	a.check(err)
	cert, err := x509.ParseCertificate(der)
	a.check(err)
	return cert, key
}

func (a *Authority) check(err error) {
	if err != nil {
		a.t.Fatalf("certtest: %v", err)
	}
}

// Encode is PEM.
func Encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// Files are the paths of an authority's certificate, and of the certificates and keys that
// it made for a server and a client, in PEM.
type Files struct {
	CA                    string
	ServerCert, ServerKey string
	ClientCert, ClientKey string
}

// WriteFiles makes an authority of its own and writes ca.pem, server.pem, server.key,
// client.pem and client.key into the directory.
func WriteFiles(t T, dir string) *Files {
	a := NewAuthority(t, "test CA")
	write := func(name string, data []byte) string {
		path := filepath.Join(dir, name)
		a.check(os.WriteFile(path, data, 0o600))
		return path
	}
	serverCert, serverKey := a.Issue("server", x509.ExtKeyUsageServerAuth, time.Time{})
	clientCert, clientKey := a.Issue("client", x509.ExtKeyUsageClientAuth, time.Time{})
	return &Files{
		CA:         write("ca.pem", a.PEM),
		ServerCert: write("server.pem", serverCert), ServerKey: write("server.key", serverKey),
		ClientCert: write("client.pem", clientCert), ClientKey: write("client.key", clientKey),
	}
}
