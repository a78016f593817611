package keyring

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"time"
)

// Refused is the protocol that a machine chooses, of those that Dial offers, to say in words why it takes no
// connection.
const Refused = "firn-refused/1"

// maxRefusal is how long such words may be, in bytes.
const maxRefusal = 1024

// Dial connects to the machine at an address for a protocol, and returns when it has accepted both. Errors are as
// Explain has them, or have the machine's own words. The context ends the attempt, not the connection.
func (r *Ring) Dial(ctx context.Context, address, protocol string) (*tls.Conn, error) {
	config := r.Client(address)
	config.NextProtos = []string{protocol, Refused}
	dialer := tls.Dialer{NetDialer: &net.Dialer{KeepAlive: 15 * time.Second}, Config: config}
	c, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, r.Explain(err, address)
	}
	conn := c.(*tls.Conn)
	switch got := conn.ConnectionState().NegotiatedProtocol; got {
	case protocol:
		return conn, nil
	case Refused:
		stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
		said, err := io.ReadAll(io.LimitReader(conn, maxRefusal))
		stop()
		_ = conn.Close()
		if len(said) == 0 {
			return nil, r.Explain(cmp.Or(err, io.ErrUnexpectedEOF), address)
		}
		return nil, fmt.Errorf("%s refuses the connection: %s", address, said)
	default:
		_ = conn.Close()
		return nil, fmt.Errorf("%s speaks %q; want %q: is it the address of another program?", address, got, protocol)
	}
}
