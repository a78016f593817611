package node

import (
	"crypto/tls"
	"log/slog"
	"net"
	"strings"
	"sync"

	"google.golang.org/grpc/credentials"
)

// The node logs failed TLS handshakes in one form for all protocols: the first in a minute, and the number of the
// others. Each of the three kinds of server would log them in its own way, or not at all.

// noHandshake logs that a client's TLS handshake failed.
func (n *Node) noHandshake(a Address, remote, err string) {
	n.audit.Write(slog.LevelWarn, a.metrics, "a TLS handshake failed", "address", a.metrics, "remote",
		remote, "err", err)
}

// httpErrors is where a server of net/http writes its errors.
type httpErrors struct {
	node *Node
	at   Address
}

func (w httpErrors) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	if rest, ok := strings.CutPrefix(text, "http: TLS handshake error from "); ok {
		remote, err, _ := strings.Cut(rest, ": ")
		w.node.noHandshake(w.at, remote, err)
		return len(line), nil
	}
	what, _, _ := strings.Cut(text, " from ") // an address follows
	what, _, _ = strings.Cut(strings.TrimPrefix(what, "http: "), ":")
	w.node.audit.Write(slog.LevelWarn, what, "an HTTP server reports an error", "address", w.at.metrics, "err", text)
	return len(line), nil
}

// shakenHands is the credentials of a gRPC server for such connections.
type shakenHands struct {
	credentials.TransportCredentials
	node *Node
}

func (s shakenHands) ServerHandshake(c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secure, info, err := s.TransportCredentials.ServerHandshake(c)
	if err != nil {
		s.node.noHandshake(GRPC, c.RemoteAddr().String(), err.Error())
	}
	return secure, info, err
}

// handshakes is a TLS listener whose connections shake hands at the first read.
type handshakes struct {
	net.Listener
	node *Node
}

func (l handshakes) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &handshake{Conn: c.(*tls.Conn), node: l.node}, nil
}

type handshake struct {
	*tls.Conn
	node *Node
	once sync.Once
}

func (c *handshake) Read(b []byte) (int, error) {
	c.once.Do(func() {
		if err := c.Handshake(); err != nil { // Read returns the same error
			c.node.noHandshake(Redis, c.RemoteAddr().String(), err.Error())
		}
	})
	return c.Conn.Read(b)
}
