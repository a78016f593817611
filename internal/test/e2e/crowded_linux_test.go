package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/firn-id/firn/api/firnv1"
	"github.com/firn-id/firn/internal/test/certtest"
	"github.com/firn-id/firn/internal/test/testenv"
)

// Connections with a call in progress have taken all places: a seventh of those from one address are left for others,
// and whoever comes then is told how the node is, and that it is overloaded, over each protocol. When there is room
// again, the next gets in.
func TestAllPlacesAreTaken(t *testing.T) {
	testenv.Slow(t)
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprintf("TLS %v", secure), func(t *testing.T) {
			t.Parallel()
			args := []string{
				"--data-dir=" + filepath.Join(t.TempDir(), "data"), "--grpc-addr=127.0.0.1:0",
				"--redis-addr=127.0.0.1:0", "--max-connections=16",
			}
			c := &comer{t: t, creds: insecure.NewCredentials()}
			if secure {
				certs := certtest.WriteFiles(t, t.TempDir())
				args = append(args, "--tls-cert="+certs.ServerCert, "--tls-key="+certs.ServerKey)
				c.tls = &tls.Config{InsecureSkipVerify: true}
				c.creds = credentials.NewTLS(c.tls)
			}
			c.node = serve(t, "node", args...)
			c.from("127.0.0.1")
			for deadline := time.Now().Add(patience); c.get("/readyz") != nil; time.Sleep(5 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("it does not get ready")
				}
			}
			var watches []*grpc.ClientConn
			for range 14 {
				watches = append(watches, c.watches())
			}
			c.refused()
			c.from("127.0.0.2")
			watches = append(watches, c.watches())
			if err := c.post("/api/v1/id"); err != nil {
				t.Errorf("the 16th: %v", err)
			}
			watches = append(watches, c.watches()) // in the place of that, which is idle
			c.refused()
			watches[0].Close()
			for deadline := time.Now().Add(patience); ; {
				err := c.post("/api/v1/id")
				if err == nil {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("there is room again, and calls still fail: %v", err)
				}
			}
		})
	}
}

// comer comes to a node from an address, over a connection of its own for each call.
type comer struct {
	t     *testing.T
	node  *node
	tls   *tls.Config // nil: without
	creds credentials.TransportCredentials
	http  *http.Client
	dial  func(ctx context.Context, network, address string) (net.Conn, error)
}

// from makes it come from an address of this machine.
func (c *comer) from(address string) {
	c.dial = (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}).DialContext
	c.http = &http.Client{Transport: &http.Transport{
		DialContext: c.dial, DisableKeepAlives: true,
		TLSClientConfig: c.tls,
	}, Timeout: patience}
}

func (c *comer) ask(method, path string) error {
	request, err := http.NewRequest(method, c.webURL()+path, nil)
	if err != nil {
		return err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		return nil
	}
	body, err := io.ReadAll(response.Body)
	return errors.Join(fmt.Errorf("%s %s", response.Status, body), err)
}

func (c *comer) get(path string) error  { return c.ask(http.MethodGet, path) }
func (c *comer) post(path string) error { return c.ask(http.MethodPost, path) }

func (c *comer) grpc() *grpc.ClientConn {
	c.t.Helper()
	dial := c.dial
	conn, err := grpc.NewClient(c.node.listens("grpc_addr"), grpc.WithTransportCredentials(c.creds),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return dial(ctx, "tcp", address)
		}))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { conn.Close() })
	return conn
}

// watches is a new connection with a call in progress, for as long as it is open. One that was closed just now may
// still have its place for a moment.
func (c *comer) watches() *grpc.ClientConn {
	c.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		conn := c.grpc()
		w, err := healthpb.NewHealthClient(conn).Watch(c.t.Context(), &healthpb.HealthCheckRequest{})
		if err == nil {
			_, err = w.Recv()
		}
		switch {
		case err == nil:
			return conn
		case status.Code(err) != codes.ResourceExhausted || time.Now().After(deadline):
			c.t.Fatal(err)
		}
		conn.Close()
	}
}

// refused wants probes to be answered, and everything else to be refused.
func (c *comer) refused() {
	c.t.Helper()
	for _, path := range []string{"/livez", "/readyz"} {
		if err := c.get(path); err != nil {
			c.t.Errorf("%s: %v", path, err)
		}
	}
	if err := c.post("/api/v1/id"); err == nil ||
		!strings.Contains(err.Error(), `503 Service Unavailable {"error":{"code":"overloaded"`) {
		c.t.Errorf("an ID: %v, want 503 overloaded", err)
	}
	conn := c.grpc()
	defer conn.Close()
	if _, err := healthpb.NewHealthClient(conn).Check(c.t.Context(), &healthpb.HealthCheckRequest{}); err != nil {
		c.t.Errorf("health over gRPC: %v", err)
	}
	if _, err := firnv1.NewFirnClient(conn).
		Next(c.t.Context(), &firnv1.NextRequest{}); status.Code(err) != codes.ResourceExhausted {
		c.t.Errorf("an ID over gRPC: %v, want RESOURCE_EXHAUSTED", err)
	}
	redis, err := c.dial(c.t.Context(), "tcp", c.node.listens("redis_addr"))
	if err != nil {
		c.t.Fatal(err)
	}
	defer redis.Close()
	if c.tls != nil {
		redis = tls.Client(redis, c.tls)
	}
	fmt.Fprint(redis, "PING\r\nINCR default\r\n")
	lines := bufio.NewReader(redis)
	pong, _ := lines.ReadString('\n')
	overloaded, _ := lines.ReadString('\n')
	if _, err := lines.ReadByte(); pong != "+PONG\r\n" || !strings.HasPrefix(overloaded, "-OVERLOADED ") || err == nil {
		c.t.Errorf("Redis: %q, %q, %v; want PONG, OVERLOADED and the end", pong, overloaded, err)
	}
}
