package port

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// userTimeout is how long what was sent may stay without an acknowledgement, and how long the other side may take
// nothing.
const userTimeout = 20 * time.Second

// setUserTimeout ends a connection to a machine that lost its power. Keep-alive alone sees that only while nothing is
// being sent; else the system tries again for a quarter of an hour.
func setUserTimeout(c net.Conn) {
	s, ok := c.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { // without it, the connection ends later
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(userTimeout.Milliseconds()))
	})
}
