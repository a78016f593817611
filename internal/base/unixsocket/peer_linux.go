package unixsocket

import (
	"fmt"
	"net"
	"syscall"
)

// WithPeer returns an accepted connection whose remote address names the user and the process at the other end: over a
// Unix socket there is no other address, for logs. Other connections it returns as they are.
func WithPeer(c net.Conn) net.Conn {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return c
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return c
	}
	var who *syscall.Ucred
	if raw.Control(func(fd uintptr) {
		who, err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}) != nil || err != nil {
		return c
	}
	return &conn{u, peer(fmt.Sprintf("user %d, process %d", who.Uid, who.Pid))}
}

// conn is a connection that knows who is at the other end.
type conn struct {
	*net.UnixConn
	from peer
}

func (c *conn) RemoteAddr() net.Addr { return c.from }

// peer is a user and a process.
type peer string

func (peer) Network() string  { return "unix" }
func (p peer) String() string { return string(p) }
