// Package keyring makes the certificates by which the machines of a quorum and their clients know each other: from keys
// that they share, or from files of an authority of the user's own. All connections are mutual TLS 1.3.
//
// Each key is a certificate authority. A process makes an intermediate authority, has every key's authority sign it,
// and shows a certificate of the intermediate together with all those signatures. It accepts the authorities of all its
// keys. So two processes accept each other if, and only if, they share a key, and a key is changed in two rounds of
// restarts: first everybody gets the new key beside the old one, and then the old one goes.
//
// From each key follows that of a second authority, which signs for clients: who has its key only is admitted, but is
// no machine. With files, the names in a certificate say what its owner is.
//
// Certificates made from keys are valid from 1970 to 9999: no clock can lock a machine out.
package keyring

import (
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/firn-id/firn/internal/base/files"
	"github.com/firn-id/firn/internal/base/fresh"
)

// The names in certificates that are no hosts.
const (
	// ServerName is what certificates made from keys are for: every machine has the same, as whoever has a key is
	// trusted.
	ServerName = "quorum.firn.internal"

	// ClientName is in the certificate of a client, where an authority of one's own is used. That of a machine has the
	// host of its address.
	ClientName = "client.quorum.firn.internal"
)

const lastSecond = 253402300799 // the year 9999 ends: in certificates, there is no later time

var (
	notBefore = time.Unix(0, 0).UTC()
	notAfter  = time.Unix(lastSecond, 0).UTC()
)

// Ring makes configurations of TLS. Make it with FromKeys or FromFiles. It is safe for concurrent use.
type Ring struct {
	keys        Keys  // none: it is from files
	files       paths // zero: it is from keys
	certificate func() *tls.Certificate
	roots       func() *x509.CertPool // of machines
	rootsPEM    []byte                // of keys, as what follows
	machines    []*x509.Certificate   // as in roots
	admitted    *x509.CertPool        // of machines and clients
	hosts       func() []string       // of files: those of the machines
}

type paths struct{ ca, cert, key string }

// FromKeys makes a certificate for this process from 1 to MaxKeys keys.
func FromKeys(keys Keys) (*Ring, error) {
	if len(keys) == 0 || len(keys) > MaxKeys {
		return nil, fmt.Errorf("%d keys; want 1 to %d", len(keys), MaxKeys)
	}
	made, err := issue(keys)
	if err != nil {
		return nil, fmt.Errorf("making a certificate from the key: %w", err)
	}
	return made, nil
}

func issue(keys Keys) (*Ring, error) {
	between, betweenKey, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	intermediate := template("firn quorum process", randomSerial())
	intermediate.IsCA, intermediate.MaxPathLenZero, intermediate.KeyUsage = true, true, x509.KeyUsageCertSign
	leaf := template("firn quorum", randomSerial())
	leaf.KeyUsage = x509.KeyUsageDigitalSignature
	leaf.ExtKeyUsage, leaf.DNSNames = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, []string{ClientName}
	if !keys.IsClient() {
		leaf.ExtKeyUsage, leaf.DNSNames = append(leaf.ExtKeyUsage, x509.ExtKeyUsageServerAuth), []string{ServerName}
	}

	// The intermediate's private key is forgotten when this returns: it signs nothing else.
	der, err := x509.CreateCertificate(rand.Reader, leaf, intermediate, public, betweenKey)
	if err != nil {
		return nil, err
	}
	shown := &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: private}
	r := &Ring{keys: keys, admitted: x509.NewCertPool(), certificate: func() *tls.Certificate { return shown }}
	roots := x509.NewCertPool()
	r.roots = func() *x509.CertPool { return roots }
	for _, k := range keys {
		machines, clients, err := k.authorities()
		if err != nil {
			return nil, err
		}
		roots.AddCert(machines)
		r.admitted.AddCert(machines)
		r.admitted.AddCert(clients)
		r.machines = append(r.machines, machines)
		r.rootsPEM = append(r.rootsPEM, encode("CERTIFICATE", machines.Raw)...)
		authority := machines
		if k.IsClient() {
			authority = clients
		}
		signed, err := x509.CreateCertificate(rand.Reader, intermediate, authority, between, k.signer())
		if err != nil {
			return nil, err
		}
		shown.Certificate = append(shown.Certificate, signed)
	}
	return r, nil
}

// authorities returns the certificates of the key's authorities. They are the same whenever and wherever they are made
// from the machines' key. A client makes that of the machines without its private key: nobody looks who has signed it.
func (k Key) authorities() (machines, clients *x509.Certificate, err error) {
	c := k.ForClients()
	name := authorityName + k.Fingerprint()
	if clients, err = authority(name+clientsName, c, c.signer().Public(), c.signer()); err != nil {
		return nil, nil, err
	}
	machines, err = authority(name, k, k.public(), k.signer())
	return machines, clients, err
}

func authority(name string, k Key, public crypto.PublicKey, signer crypto.Signer) (*x509.Certificate, error) {
	c := template(name, new(big.Int).SetBytes(k.derive("serial number", 15)))
	c.IsCA, c.MaxPathLen, c.KeyUsage = true, 1, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(nil, c, c, public, signer) // signing with ed25519 takes no random bytes
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// authorityName comes before the fingerprint of a key in the name of its authority.
const authorityName = "firn quorum key "

// clientsName comes after it in that of the authority of its clients.
const clientsName = " for clients"

func template(name string, serial *big.Int) *x509.Certificate {
	return &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, SerialNumber: serial,
		NotBefore: notBefore, NotAfter: notAfter, BasicConstraintsValid: true,
	}
}

func randomSerial() *big.Int {
	b := fresh.Bytes()
	return new(big.Int).SetBytes(b[:15])
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// FromFiles uses the PEM files of an authority of the user's own: with the certificates of that authority; with this
// machine's certificate, which is for clients and for servers at the host of the machine's address, followed by those
// between it and the authority; and with its private key. Errors are those of reading them. A certificate of a client
// names ClientName instead of a host. A server takes for machines those that name one of the hosts of now.
//
// The files are read again within a second of a handshake after they have changed. If they are then wrong, that is
// logged, and the last good ones stay in use.
func FromFiles(ca, cert, key string, hosts func() []string, log *slog.Logger) (*Ring, error) {
	pair, err := files.Open("quorum's certificate and its key", log,
		func(contents [][]byte, _ *tls.Certificate) (*tls.Certificate, error) {
			pair, err := tls.X509KeyPair(contents[0], contents[1])
			if err != nil {
				return nil, fmt.Errorf("%s and %s: not a certificate and its key: %w; want PEM files without a "+
					"password",
					cert, key, err)
			}
			return &pair, nil
		}, cert, key)
	if err != nil {
		return nil, err
	}
	roots, err := files.Open("quorum's authority", log,
		func(contents [][]byte, _ *x509.CertPool) (*x509.CertPool, error) {
			pool := x509.NewCertPool()
			if !pool.AppendCertsFromPEM(contents[0]) {
				return nil, fmt.Errorf("%s: no certificate; want a PEM file with lines that say BEGIN CERTIFICATE", ca)
			}
			return pool, nil
		}, ca)
	if err != nil {
		return nil, err
	}
	return &Ring{files: paths{ca, cert, key}, certificate: pair.Get, roots: roots.Get, hosts: hosts}, nil
}

func (r *Ring) fromFiles() bool { return r.files != paths{} }

// Server returns a configuration for servers: whoever connects must show a certificate of a key, or one of the
// authority that names a machine or ClientName. IsMachine then tells which. The caller may set NextProtos. Sessions are
// not resumed: a key that was taken away must not live on in them.
func (r *Ring) Server() *tls.Config {
	c := &tls.Config{
		MinVersion:             tls.VersionTLS13,
		GetCertificate:         func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return r.certificate(), nil },
		ClientAuth:             tls.RequireAndVerifyClientCert,
		ClientCAs:              r.admitted,
		SessionTicketsDisabled: true,
	}
	if r.fromFiles() {
		c.ClientAuth, c.ClientCAs = tls.RequireAnyClientCert, nil
		c.VerifyConnection = func(s tls.ConnectionState) error {
			if err := r.verify(s, x509.ExtKeyUsageClientAuth, ""); err != nil {
				return err
			}
			if shown := s.PeerCertificates[0]; !r.namesMachine(shown) && shown.VerifyHostname(ClientName) != nil {
				return &NameError{Names: namesOf(shown), Hosts: r.hosts()}
			}
			return nil
		}
	}
	return c
}

// IsMachine reports whether whoever has connected to a server here may do what machines may, and not only what clients
// may.
func (r *Ring) IsMachine(s tls.ConnectionState) bool {
	if r.fromFiles() {
		return len(s.PeerCertificates) > 0 && r.namesMachine(s.PeerCertificates[0])
	}
	return slices.ContainsFunc(s.VerifiedChains, func(chain []*x509.Certificate) bool {
		return slices.ContainsFunc(r.machines, chain[len(chain)-1].Equal)
	})
}

// namesMachine reports whether a certificate names the host of a machine.
func (r *Ring) namesMachine(c *x509.Certificate) bool {
	return slices.ContainsFunc(r.hosts(), func(host string) bool { return c.VerifyHostname(host) == nil })
}

func namesOf(c *x509.Certificate) []string {
	names := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}

// NameError is returned when a certificate of the right authority names nobody who is admitted.
type NameError struct{ Names, Hosts []string }

func (e *NameError) Error() string {
	return fmt.Sprintf("the certificate names %.200q; want the host of a machine, one of %s, or %s for a client",
		e.Names, strings.Join(e.Hosts, ", "), ClientName)
}

// CheckMachine returns an error when others would not take this process for the machine at an address.
func (r *Ring) CheckMachine(address string) error {
	if !r.fromFiles() {
		if r.keys.IsClient() {
			return fmt.Errorf("%s is a machine of the quorum, and the key of this process is for clients; want the "+
				"machines' own, which firn quorum key prints", address)
		}
		return nil
	}
	shown, err := x509.ParseCertificate(r.certificate().Certificate[0])
	if err != nil {
		return err
	}
	if shown.VerifyHostname(hostOf(address)) != nil {
		return fmt.Errorf("%s: it names %.200q; want %s, the host of this machine", r.files.cert, namesOf(shown),
			hostOf(address))
	}
	return nil
}

// IsClient reports whether this process has a key for clients.
func (r *Ring) IsClient() bool { return r.keys.IsClient() }

// Client returns a configuration for clients of the machine at an address, host:port. The caller may set NextProtos.
func (r *Ring) Client(address string) *tls.Config {
	c := &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return r.certificate(), nil
		},
		RootCAs:    r.roots(),
		ServerName: ServerName,
	}
	if r.fromFiles() {
		c.ServerName = hostOf(address)
		c.RootCAs, c.InsecureSkipVerify = nil, true // the authorities of now verify it instead of those of then
		c.VerifyConnection = func(s tls.ConnectionState) error {
			return r.verify(s, x509.ExtKeyUsageServerAuth, c.ServerName)
		}
	}
	return c
}

func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}

// verify checks what the other side shows as package tls does, by the authorities that the file has now.
func (r *Ring) verify(s tls.ConnectionState, usage x509.ExtKeyUsage, host string) error {
	between := x509.NewCertPool()
	for _, c := range s.PeerCertificates[1:] { // there is one: RequireAnyClientCert, and a server's is always needed
		between.AddCert(c)
	}
	_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{
		Roots: r.roots(), Intermediates: between, KeyUsages: []x509.ExtKeyUsage{usage}, DNSName: host,
	})
	if err != nil {
		return &tls.CertificateVerificationError{UnverifiedCertificates: s.PeerCertificates, Err: err}
	}
	return nil
}

// WriteFiles writes the certificates and the private key of this process as PEM files into a directory, which it makes,
// and which only its owner can read; each file is replaced at once. ServerName is the name that certificates of others
// are for; empty: the host of their addresses. For a ring made from files, it writes nothing and returns their paths.
func (r *Ring) WriteFiles(dir string) (ca, cert, key, serverName string, err error) {
	if r.fromFiles() {
		return r.files.ca, r.files.cert, r.files.key, "", nil
	}
	shown := r.certificate()
	der, err := x509.MarshalPKCS8PrivateKey(shown.PrivateKey.(crypto.Signer))
	if err != nil {
		return "", "", "", "", err
	}
	var chain []byte
	for _, c := range shown.Certificate {
		chain = append(chain, encode("CERTIFICATE", c)...)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", "", "", "", err
	}
	if err := os.Chmod(dir, 0o700); err != nil { // it may have been there
		return "", "", "", "", err
	}
	ca, cert, key = filepath.Join(dir, "ca.pem"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for _, f := range []struct {
		path string
		text []byte
	}{{ca, r.rootsPEM}, {cert, chain}, {key, encode("PRIVATE KEY", der)}} {
		if err := writeFile(f.path, f.text); err != nil {
			return "", "", "", "", err
		}
	}
	return ca, cert, key, ServerName, nil
}
