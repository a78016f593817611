// Package clienttls reads the files that a client of a store needs for TLS.
package clienttls

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"

	"github.com/firn-id/firn/internal/base/files"
)

// Config returns what a client needs. caFile holds the PEM certificates of the authorities that may have signed the
// server's; empty: those that the system trusts. certFile and keyFile hold the client's own certificate and its key;
// both or neither. They are read again for each connection, so that they can be replaced at any time. An error is
// returned when a file can't be used.
func Config(caFile, certFile, keyFile string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile != "" {
		pem, err := files.ReadOnce(caFile)
		if err != nil {
			return nil, fmt.Errorf("the CA file can't be read: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("the CA file %q holds no certificate; want PEM", caFile)
		}
	}
	if (certFile == "") != (keyFile == "") {
		return nil, fmt.Errorf("the certificate file is %q and the key file is %q; give both or neither",
			certFile, keyFile)
	}
	if certFile != "" {
		load := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			cert, err := files.LoadPair(certFile, keyFile)
			return &cert, err
		}
		if _, err := load(nil); err != nil {
			return nil, fmt.Errorf("the certificate file %q and the key file %q are no pair: %w",
				certFile, keyFile, err)
		}
		config.GetClientCertificate = load
	}
	return config, nil
}
