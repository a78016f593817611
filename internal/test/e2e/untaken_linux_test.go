package e2e

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/firn-id/firn/api/firnv1"
	"github.com/firn-id/firn/internal/test/certtest"
	"github.com/firn-id/firn/internal/test/testenv"
)

// hoard is callers who ask for much and take nothing of it.
type hoard struct {
	name   string
	secure bool
	calls  int
	begin  func(c *comer)
	// the call, as metrics name it, when the node is to be done with all within the test; empty: it takes longer
	gone string
}

func hoards() []hoard {
	return []hoard{
		{"70 connections that ask for `count=100000` and do not read", false, 70, func(c *comer) {
			for range 70 {
				conn, err := c.dial(c.t.Context(), "tcp", strings.TrimPrefix(c.node.url, "http://"))
				if err != nil {
					c.t.Fatal(err)
				}
				c.t.Cleanup(func() { conn.Close() })
				if _, err := io.WriteString(conn,
					"POST /api/v1/ids?count=100000 HTTP/1.1\r\nHost: firn\r\n\r\n"); err != nil {
					c.t.Fatal(err)
				}
			}
		}, "POST /api/v1/ids"},
		{"the same, 100 times over one connection of HTTP/2", true, 100, func(c *comer) {
			transport := &http.Transport{
				DialContext: c.dial, TLSClientConfig: c.tls.Clone(), ForceAttemptHTTP2: true,
				HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10},
			}
			c.t.Cleanup(transport.CloseIdleConnections)
			for range 100 {
				request, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost,
					strings.Replace(c.node.url, "http:", "https:", 1)+"/api/v1/ids?count=100000", nil)
				if err != nil {
					c.t.Fatal(err)
				}
				response, err := transport.RoundTrip(request)
				if err != nil {
					c.t.Fatal(err)
				}
				if c.t.Cleanup(func() { response.Body.Close() }); response.ProtoMajor != 2 {
					c.t.Fatalf("it is %s", response.Proto)
				}
			}
		}, "POST /api/v1/ids"},
		{"1000 gRPC streams of the largest batches that nobody reads, on 10 connections", false, 1000, func(c *comer) {
			for range 10 {
				all := firnv1.NewFirnClient(c.grpc())
				for range 100 {
					if _, err := all.Stream(c.t.Context(), &firnv1.StreamRequest{BatchSize: 10_000}); err != nil {
						c.t.Fatal(err)
					}
				}
			}
		}, ""},
	}
}

// Callers who ask for much and take nothing of it hold up nothing else, neither another caller nor another connection
// of their own, and are cut off. The node has the memory of a pod; docs/security.md sums up what it has at most.
func TestUntakenAnswers(t *testing.T) {
	testenv.Slow(t)
	for _, h := range hoards() {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			args := []string{"--data-dir=" + filepath.Join(t.TempDir(), "data"), "--grpc-addr=127.0.0.1:0"}
			c := &comer{t: t, creds: insecure.NewCredentials()}
			if h.secure {
				certs := certtest.WriteFiles(t, t.TempDir())
				args = append(args, "--tls-cert="+certs.ServerCert, "--tls-key="+certs.ServerKey)
				c.tls = &tls.Config{InsecureSkipVerify: true}
				c.creds = credentials.NewTLS(c.tls)
			}
			p := newPod(t, podMemory)
			c.node = p.serve("node", args...)
			c.from("127.0.0.1")
			for deadline := time.Now().Add(patience); c.get("/readyz") != nil; time.Sleep(5 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("it does not get ready")
				}
			}
			before := p.used()
			h.begin(c)
			during := p.used()
			for _, from := range []string{"127.0.0.2", "127.0.0.1"} {
				c.from(from)
				if err := c.takes(100_000); err != nil {
					t.Errorf("from %s: %v", from, err)
				}
			}
			for deadline := time.Now().Add(patience); h.gone != "" &&
				c.ended(h.gone) < h.calls+2; time.Sleep(50 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("%d calls have ended, want %d", c.ended(h.gone), h.calls+2)
				}
			}
			t.Logf("| %s | %d | %d, at most %d | %d |", h.name, before>>20, during>>20, p.peak()>>20, p.used()>>20)
			if p.killed() != 0 {
				t.Error("the node was killed for want of memory")
			}
			if most := int64(podMemory - room); p.peak() > most {
				t.Errorf("it used %d MiB; want at most %d MiB of %d", p.peak()>>20, most>>20, podMemory>>20)
			}
		})
	}
}

// takes takes so many IDs, and then some over gRPC, as a stream and as a batch.
func (c *comer) takes(count int) error {
	request, err := http.NewRequest(http.MethodPost, fmt.Sprintf("%s/api/v1/ids?count=%d", c.webURL(), count), nil)
	if err != nil {
		return err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || strings.Count(string(body), ",") != 2*count-1 {
		return fmt.Errorf("%s: %d bytes, %w", response.Status, len(body), err)
	}
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	ids := firnv1.NewFirnClient(c.grpc())
	stream, err := ids.Stream(ctx, &firnv1.StreamRequest{})
	for i := 0; err == nil && i < 50; i++ {
		_, err = stream.Recv()
	}
	_, batchErr := ids.NextBatch(ctx, &firnv1.NextBatchRequest{Count: 10_000})
	return errors.Join(err, batchErr)
}

func (c *comer) webURL() string {
	if c.tls == nil {
		return c.node.url
	}
	return strings.Replace(c.node.url, "http:", "https:", 1)
}

// ended is how many calls of a name the node has ended, whatever they came to.
func (c *comer) ended(call string) (all int) {
	c.t.Helper()
	response, err := c.http.Get(c.webURL() + "/metrics")
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^firn_requests_total\{call="`+regexp.QuoteMeta(call)+`",.*\} (\d+)$`).
		FindAllSubmatch(text, -1) {
		n, err := strconv.Atoi(string(m[1]))
		if err != nil {
			c.t.Fatal(err)
		}
		all += n
	}
	return all
}
