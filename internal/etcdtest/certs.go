//go:build unix

package etcdtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Certs are the PEM files of a certificate authority, and of a server at
// 127.0.0.1 and a client that it signed.
type Certs struct {
	CA                    string
	ServerCert, ServerKey string
	ClientCert, ClientKey string
}

// NewCerts makes an authority of its own, valid for an hour.
func NewCerts(t testing.TB) *Certs {
	t.Helper()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	c := &Certs{
		CA:         file("ca.pem"),
		ServerCert: file("server.pem"), ServerKey: file("server-key.pem"),
		ClientCert: file("client.pem"), ClientKey: file("client-key.pem"),
	}
	ca := template(1, "etcdtest CA")
	ca.IsCA, ca.BasicConstraintsValid = true, true
	ca.KeyUsage = x509.KeyUsageCertSign
	caKey := newKey(t)
	sign(t, c.CA, ca, ca, caKey, caKey)

	server := template(2, "etcdtest server")
	server.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	server.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	serverKey := newKey(t)
	sign(t, c.ServerCert, server, ca, serverKey, caKey)
	writeKey(t, c.ServerKey, serverKey)

	client := template(3, "etcdtest client")
	client.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	clientKey := newKey(t)
	sign(t, c.ClientCert, client, ca, clientKey, caKey)
	writeKey(t, c.ClientKey, clientKey)
	return c
}

func template(serial int64, name string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    now.Add(-time.Minute),
		NotAfter:     now.Add(time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("etcdtest: %v", err)
	}
	return key
}

// sign writes the certificate of key, signed by the authority.
func sign(t testing.TB, path string, cert, ca *x509.Certificate, key, caKey *ecdsa.PrivateKey) {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, cert, ca, key.Public(), caKey)
	if err != nil {
		t.Fatalf("etcdtest: %v", err)
	}
	writePEM(t, path, "CERTIFICATE", der)
}

func writeKey(t testing.TB, path string, key *ecdsa.PrivateKey) {
	t.Helper()
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatalf("etcdtest: %v", err)
	}
	writePEM(t, path, "EC PRIVATE KEY", der)
}

func writePEM(t testing.TB, path, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatalf("etcdtest: %v", err)
	}
}
