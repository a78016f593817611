package port

import (
	"io"
	"net"
	"sync"
	"time"
)

// connectLimit bounds how long Pipe waits for a connection.
const connectLimit = 5 * time.Second

// Pipe connects to an address of a network, such as unix, and copies both ways between that connection and a until one of
// them ends. Then it closes both and returns. If it can't connect, it closes a.
//
// A side that takes nothing blocks the other, as on a single connection, and as long as the connection lives: how long the
// other side may be silent is up to TCP.
func Pipe(a net.Conn, network, address string) {
	defer a.Close()
	b, err := net.DialTimeout(network, address, connectLimit)
	if err != nil {
		return
	}
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1]) // whatever ends it
			_ = a.Close()
			_ = b.Close()
		})
	}
	both.Wait()
}
