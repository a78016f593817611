package conns

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// limitUnread has the kernel reset a connection whose other end takes nothing of what was sent for a time, also after
// it was closed here. A Unix socket has no such limit.
func limitUnread(c net.Conn, within time.Duration) {
	if tcp, ok := c.(*net.TCPConn); ok {
		control(tcp, func(fd int) error {
			return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(within.Milliseconds()))
		})
	}
}

// unread returns how many bytes the kernel has buffered because the other end has no room for them; 0: none, or
// unknown.
func unread(c net.Conn) (bytes int) {
	request := uint(unix.SIOCOUTQNSD)
	if c.LocalAddr().Network() == "unix" {
		request = unix.SIOCOUTQ
	}
	if s, ok := c.(syscall.Conn); ok {
		control(s, func(fd int) (err error) {
			bytes, err = unix.IoctlGetInt(fd, request)
			return err
		})
	}
	return max(bytes, 0)
}

// control does something with the file descriptor of a connection. An error leaves the connection as it is.
func control(c syscall.Conn, do func(fd int) error) {
	if raw, err := c.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = do(int(fd)) })
	}
}
