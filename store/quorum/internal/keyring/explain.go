package keyring

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
)

// Explain says in words why a connection to the machine at an address failed; err is that of dialing, of the handshake
// or of reading from the connection, for a server may refuse a client's certificate after the client's handshake. The
// error returned unwraps to err. It is nil if err is.
func (r *Ring) Explain(err error, address string) error {
	if err == nil {
		return nil
	}
	return &explained{r.whyNot(err, address), err}
}

type explained struct {
	text string
	err  error
}

func (e *explained) Error() string { return e.text }
func (e *explained) Unwrap() error { return e.err }

// distrust says in words why one of the two machines does not trust the other; empty: it does, as far as is known.
func (r *Ring) distrust(err error, address string) string {
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, host := errors.AsType[x509.HostnameError](err)
	invalid, isInvalid := errors.AsType[x509.CertificateInvalidError](err)
	told, keys := alert(err), otherKeys(err)
	switch files := r.fromFiles(); {
	case !files && (unknown || host || isInvalid || isRefusal(told)):
		if keys != "" {
			keys = " (" + keys + ")"
		}
		return fmt.Sprintf("%s has another key%s than this machine (%s); give all machines the same --quorum-key-file",
			address, keys, r.keys.Fingerprints())
	case !files:
		return ""
	case keys != "":
		return fmt.Sprintf("%s uses a key (%s), and this machine the certificate in %s; want the same on all machines",
			address, keys, r.files.cert)
	case unknown:
		return fmt.Sprintf("%s has a certificate of another authority than those in %s", address, r.files.ca)
	case host:
		return fmt.Sprintf("%s has a certificate for another host: %v", address, err)
	case isInvalid:
		return fmt.Sprintf("%s has a certificate that is not valid: %v", address, invalid)
	case isRefusal(told):
		return fmt.Sprintf("%s refuses the certificate in %s (%s); want one of an authority that it knows, for "+
			"clients and servers, that names a machine of its list, or %s for a client", address, r.files.cert,
			told, ClientName)
	default:
		return ""
	}
}

func (r *Ring) whyNot(err error, address string) string {
	_, plain := errors.AsType[tls.RecordHeaderError](err)
	distrust, told := r.distrust(err, address), alert(err)
	switch {
	case plain:
		return address + " speaks no TLS; want the address of a machine of the quorum: is it that of another program?"
	case distrust != "":
		return distrust
	case told == "no application protocol":
		return address +
			" speaks TLS, but not as a machine of a quorum does: is it the address of another program, or of another " +
			"version?"
	case told == "protocol version not supported":
		return address + " speaks an older version of TLS than 1.3: is it the address of another program?"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return address + " closed the connection before it was established"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return address + " did not answer in time"
	case strings.Contains(err.Error(), address):
		return err.Error()
	default:
		return address + ": " + err.Error()
	}
}

// Refusal says in words why a handshake as a server failed, for a log: why is one of few texts, and key has the
// fingerprints of the keys that the client seems to have; nobody has verified them. It is empty if they are not known.
func (r *Ring) Refusal(err error) (why, key string) {
	_, plain := errors.AsType[tls.RecordHeaderError](err)
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, names := errors.AsType[*NameError](err)
	_, verification := errors.AsType[*tls.CertificateVerificationError](err)
	told := alert(err)
	text := err.Error()
	switch {
	case plain:
		return "it speaks no TLS", ""
	case unknown && r.fromFiles():
		return "its certificate is of another authority", ""
	case unknown:
		return "it has another key", otherKeys(err)
	case names:
		return "its certificate names no machine, and is not for clients", ""
	case verification:
		return "its certificate is not valid", ""
	case isRefusal(told) && r.fromFiles():
		return "it refuses the certificate of this machine", ""
	case isRefusal(told):
		return "it has another key", ""
	case strings.Contains(text, "didn't provide a certificate"):
		return "it showed no certificate", ""
	case strings.Contains(text, "unsupported versions"):
		return "it speaks an older version of TLS than 1.3", ""
	case strings.Contains(text, "unsupported application protocols"):
		return "it wants a protocol that is not spoken here", ""
	case errors.Is(err, os.ErrDeadlineExceeded):
		return "it did not finish the handshake in time", ""
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE):
		return "it closed the connection before it was established", ""
	default:
		return "its handshake is wrong", ""
	}
}

// alert returns what the other side said in an alert of TLS; empty: nothing.
func alert(err error) string {
	if e, ok := errors.AsType[*net.OpError](err); ok && e.Op == "remote error" {
		return strings.TrimPrefix(e.Err.Error(), "tls: ")
	}
	return ""
}

// isRefusal tells whether an alert says that a certificate is not accepted.
func isRefusal(alert string) bool {
	return slices.Contains([]string{
		"unknown certificate authority", "bad certificate", "unknown certificate", "expired certificate",
		"unsupported certificate", "certificate required",
	}, alert)
}

// otherKeys returns the fingerprints of the keys that have signed what the other side shows, if it says so.
func otherKeys(err error) string {
	shown, ok := errors.AsType[*tls.CertificateVerificationError](err)
	if !ok {
		return ""
	}
	var all []string
	for _, c := range shown.UnverifiedCertificates {
		name, ok := strings.CutPrefix(strings.TrimSuffix(c.Issuer.CommonName, clientsName), authorityName)
		// a stranger may have written it
		if ok && len(name) == 8 && strings.Trim(name, "0123456789abcdef") == "" && len(all) < MaxKeys {
			all = append(all, name)
		}
	}
	return strings.Join(all, ", ")
}
