package main

import (
	"crypto/tls"
	"log/slog"
	"net"
	"strings"
	"sync"

	"google.golang.org/grpc/credentials"
)

// Clients that connect and don't come to speak TLS are in the log, whatever protocol they came for: the first of them in a
// minute, and how many there were besides. Each of the three kinds of server would say it in its own way, or not at all.

// noHandshake says that a client did not come to speak TLS.
func (n *node) noHandshake(d aDoor, remote, err string) {
	n.audit.Write(slog.LevelWarn, d.metrics, "a TLS handshake failed", "address", d.metrics, "remote", remote, "err", err)
}

// webErrors is where a server of net/http writes what it has to say.
type webErrors struct {
	node *node
	door aDoor
}

func (w webErrors) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	if rest, ok := strings.CutPrefix(text, "http: TLS handshake error from "); ok {
		remote, err, _ := strings.Cut(rest, ": ")
		w.node.noHandshake(w.door, remote, err)
		return len(line), nil
	}
	what, _, _ := strings.Cut(text, " from ") // what comes next is an address
	what, _, _ = strings.Cut(strings.TrimPrefix(what, "http: "), ":")
	w.node.audit.Write(slog.LevelWarn, what, "a server of HTTP complains", "address", w.door.metrics, "err", text)
	return len(line), nil
}

// shakenHands are the credentials of a gRPC server.
type shakenHands struct {
	credentials.TransportCredentials
	node *node
}

func (s shakenHands) ServerHandshake(c net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secure, info, err := s.TransportCredentials.ServerHandshake(c)
	if err != nil {
		s.node.noHandshake(grpcDoor, c.RemoteAddr().String(), err.Error())
	}
	return secure, info, err
}

// handshakes is a listener for TLS whose connections shake hands when they are first read from.
type handshakes struct {
	net.Listener
	node *node
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
	node *node
	once sync.Once
}

func (c *handshake) Read(b []byte) (int, error) {
	c.once.Do(func() {
		if err := c.Handshake(); err != nil { // what there is to read has the same error
			c.node.noHandshake(redisDoor, c.RemoteAddr().String(), err.Error())
		}
	})
	return c.Conn.Read(b)
}
