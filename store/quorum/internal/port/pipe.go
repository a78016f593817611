package port

import (
	"net"
	"sync"
	"time"
)

const (
	connectLimit = 5 * time.Second  // how long Pipe waits for a connection
	stallLimit   = 20 * time.Second // how long one side may take to read a full buffer
	bufferSize   = 16 << 10         // what a record of TLS holds
)

// Pipe connects to an address of a network, such as unix, and copies both ways between that connection and a until one
// of them ends, or takes less than 16 KiB in 20 s though there is more for it. Then it closes both and returns. If it
// can't connect, it closes a.
func Pipe(a net.Conn, network, address string) {
	b, err := net.DialTimeout(network, address, connectLimit)
	if err != nil {
		_ = a.Close()
		return
	}
	join(a, b)
}

func join(a, b net.Conn) {
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		both.Go(func() {
			copyAll(way[0], way[1])
			_ = a.Close()
			_ = b.Close()
		})
	}
	both.Wait()
}

// copyAll copies until one side ends. A side that takes nothing has to end it: while it blocks a write, nobody reads
// from the other one, so that the other one's end is not seen.
func copyAll(to, from net.Conn) {
	buffer := make([]byte, bufferSize)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			_ = to.SetWriteDeadline(time.Now().Add(stallLimit)) // if it fails, so does the write
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
