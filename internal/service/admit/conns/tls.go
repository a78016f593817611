package conns

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/firn-id/firn/internal/base/files"
)

// TLSFiles are the PEM files that a listener needs for TLS.
type TLSFiles struct {
	Cert string // the server's certificate, and those between it and its CA
	Key  string // of Cert, without a password

	// ClientCA has the CAs of clients: every client must show a certificate for clients that one of them has signed.
	// Empty: clients need none.
	ClientCA string
}

// OpenTLS returns a configuration for servers of TLS 1.2 or newer. An error is returned when a file can't be read or
// has no certificate, or when the key does not belong to the certificate. A certificate that has expired is logged.
//
// The files are read again within a second of use after they have changed. If they are then wrong, that is logged, and
// the last good ones stay in use: so certificate and key may be replaced one after the other. New connections use the
// new files, also those that resume a session; open ones stay.
//
// The caller may set NextProtos, as net/http does. Servers that differ in it need a Clone each.
func OpenTLS(f TLSFiles, log *slog.Logger) (*tls.Config, error) {
	if f.Cert == "" || f.Key == "" {
		return nil, errors.New("TLS needs a file with a certificate and one with its key; set both")
	}
	pair, err := files.Open("certificate and its key", log,
		func(contents [][]byte, _ *tls.Certificate) (*tls.Certificate, error) {
			return parsePair(f, contents[0], contents[1], log)
		}, f.Cert, f.Key)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return pair.Get(), nil },
	}
	if f.ClientCA == "" {
		return config, nil
	}
	cas, err := files.Open("CAs of clients", log, func(contents [][]byte, _ *x509.CertPool) (*x509.CertPool, error) {
		return parseCAs(f.ClientCA, contents[0])
	}, f.ClientCA)
	if err != nil {
		return nil, err
	}
	// GetConfigForClient could return the latest CAs too, but it would lose a NextProtos that is set later.
	// VerifyConnection is called for resumed sessions as well.
	config.ClientAuth = tls.RequireAnyClientCert
	config.VerifyConnection = func(s tls.ConnectionState) error { return checkClient(s.PeerCertificates, cas.Get()) }
	return config, nil
}

// checkClient returns an error unless the first certificate is one for clients, signed by these CAs.
func checkClient(shown []*x509.Certificate, cas *x509.CertPool) error {
	if len(shown) == 0 {
		return errors.New("the client shows no certificate")
	}
	between := x509.NewCertPool()
	for _, c := range shown[1:] {
		between.AddCert(c)
	}
	_, err := shown[0].Verify(x509.VerifyOptions{
		Roots: cas, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return fmt.Errorf("the client's certificate: %w", err)
	}
	return nil
}

func parsePair(f TLSFiles, cert, key []byte, log *slog.Logger) (*tls.Certificate, error) {
	if _, err := parseCertificates(f.Cert, cert); err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("%s: not the key of the certificate in %s: %w; want a PEM file without a password",
			f.Key, f.Cert, err)
	}
	if time.Now().After(pair.Leaf.NotAfter) {
		log.Warn("the certificate has expired: clients will refuse it", "file", f.Cert, "not_after", pair.Leaf.NotAfter)
	}
	return &pair, nil
}

func parseCAs(path string, data []byte) (*x509.CertPool, error) {
	all, err := parseCertificates(path, data)
	pool := x509.NewCertPool()
	for _, c := range all {
		pool.AddCert(c)
	}
	return pool, err
}

// parseCertificates reads the certificates in a PEM file, which may hold other things too.
func parseCertificates(path string, data []byte) (all []*x509.Certificate, _ error) {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s: can't read certificate %d: %w", path, len(all)+1, err)
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no certificate; want a PEM file with lines that say BEGIN CERTIFICATE", path)
	}
	return all, nil
}
