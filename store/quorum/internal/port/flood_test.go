package port

import (
	"net"
	"testing"

	"github.com/firn-id/firn/internal/test/testenv"
)

// Ten thousand connections over TCP that stay open take nothing from those who have the key, and 256 files from this
// process.
func TestTenThousandOpenConnections(t *testing.T) {
	testenv.Slow(t)
	ring := newRing(t)
	p := listen(t, ring)
	p.Handle(Clients, echo)
	honest := dial(t, p, ring, "h2")
	for i := range 10_000 {
		c, err := net.Dial("tcp", p.Addr())
		if err != nil {
			t.Skipf("no more than %d connections can be open here: %v", i, err)
		}
		defer c.Close()
		if i%500 == 0 {
			if !echoes(honest) {
				t.Fatalf("after %d strangers, who had the key lost the connection", i)
			}
			if !echoes(dial(t, p, ring, "h2")) {
				t.Fatalf("after %d strangers, who has the key is not admitted", i)
			}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.handshakes); n > maxHandshakes {
		t.Errorf("there are %d handshakes at a time", n)
	}
}
