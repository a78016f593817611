package main

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

	"github.com/rogpeppe/go-internal/testscript"
)

// certificates makes an authority, and certificates of it for a server at 127.0.0.1 and for a client: ca.pem,
// server.pem, server.key, client.pem and client.key.
func certificates(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 0 {
		ts.Fatalf("usage: certificates")
	}
	makeCertificates(ts)
}

// place is where certificates are made: a script's directory, or another.
type place interface {
	Check(error)
	MkAbs(file string) string
}

// folder is a place for a test without a script.
type folder struct {
	t   *testing.T
	dir string
}

func (f folder) MkAbs(file string) string { return filepath.Join(f.dir, file) }

func (f folder) Check(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func makeCertificates(ts place) {
	authority := &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	caKey := certificate(ts, "ca", authority, authority, nil)
	certificate(ts, "server", &x509.Certificate{
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, authority, caKey)
	certificate(ts, "client", &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, authority, caKey)
}

// certificate writes a certificate and its key, which it returns. Without a key of its parent it signs itself.
func certificate(ts place, name string, c, parent *x509.Certificate, by *ecdsa.PrivateKey) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	if by == nil {
		by = key
	}
	c.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62))
	ts.Check(err)
	c.Subject = pkix.Name{CommonName: name}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, by)
	ts.Check(err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(name+".pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs(name+".key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	return key
}
