package port

import (
	"crypto/tls"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// The connections of a port end when the other machine lost its power: while it is idle by keep-alive, and else by the
// user timeout.
func TestConnectionsToTheDeadEnd(t *testing.T) {
	ring := newRing(t)
	p := listen(t, ring)
	got := make(chan map[string]int)
	p.Handle(Clients, func(c *tls.Conn) {
		options := map[string]int{}
		raw, err := c.NetConn().(syscall.Conn).SyscallConn()
		if err == nil {
			err = raw.Control(func(fd uintptr) {
				for name, o := range map[string][2]int{
					"SO_KEEPALIVE":     {unix.SOL_SOCKET, unix.SO_KEEPALIVE},
					"TCP_KEEPIDLE":     {unix.IPPROTO_TCP, unix.TCP_KEEPIDLE},
					"TCP_USER_TIMEOUT": {unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT},
				} {
					options[name], _ = unix.GetsockoptInt(int(fd), o[0], o[1])
				}
			})
		}
		if err != nil {
			t.Error(err)
		}
		got <- options
	})
	dial(t, p, ring, "h2")
	options := <-got
	for name, want := range map[string]int{"SO_KEEPALIVE": 1, "TCP_KEEPIDLE": 15, "TCP_USER_TIMEOUT": 20_000} {
		if options[name] != want {
			t.Errorf("%s is %d; want %d", name, options[name], want)
		}
	}
}
