package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/base/throttle"
	"github.com/firn-id/firn/internal/service/admit/conns"
	"github.com/firn-id/firn/internal/test/certtest"
	"github.com/firn-id/firn/internal/test/logtest"
)

// Hundreds of clients that connect and speak no TLS take a bounded number of lines for each address, whose counts
// add up when the node has stopped.
func TestFailedHandshakes(t *testing.T) {
	t.Parallel()
	var log logtest.Journal
	certs := certtest.WriteFiles(t, t.TempDir())
	c := testConfig(t)
	c.GRPCAddr, c.RedisAddr, c.DrainDelay = "127.0.0.1:0", "127.0.0.1:0", 0
	c.TLS = conns.TLSFiles{Cert: certs.ServerCert, Key: certs.ServerKey}
	c.Logger = log.Logger()
	n := newNode(t, c)
	ctx, stop := context.WithCancel(t.Context())
	done := running(t, ctx, n)
	const clients = 3 * throttle.First
	for _, one := range n.servers.all {
		address := one.listener.Addr().String()
		for range clients {
			c, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			_ = c.SetDeadline(time.Now().Add(patience))
			fmt.Fprint(c, "no TLS\r\n\r\n")
			if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatal("the connection is not closed")
			}
			c.Close()
		}
	}
	stop()
	if err := ended(t, done); err != nil {
		t.Fatal(err)
	}
	text := log.String()
	for _, of := range []string{"public", "admin", "grpc", "redis"} {
		said, leftOut := strings.Count(text, `msg="a TLS handshake failed" address=`+of+" remote=127.0.0.1:"), 0
		if _, rest, ok := strings.Cut(text, `of="a TLS handshake failed" kind=`+of+" left_out="); ok {
			fmt.Sscan(rest, &leftOut)
		}
		if said != throttle.First || said+leftOut != clients {
			t.Errorf("%s: of %d clients %d are in the log, and %d said to be left out; want %d, and all of them", of,
				clients, said, leftOut, throttle.First)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}
