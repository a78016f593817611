package e2e

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/certtest"
	"github.com/firn-id/firn/internal/test/testenv"
)

// besides are paths that the description of the calls does not have.
var besides = []string{
	"GET /", "GET /ui/", "GET /ui/ui.css", "GET /ui/main.js", "GET /ui/stream", "GET /docs/",
	"GET /docs/swagger-ui.css",
	"GET /docs/swagger-ui-bundle.js", "HEAD /docs/swagger-ui-bundle.js", "GET /openapi.json",
	"GET /nothing", "PUT /ui/",
	"GET /api/v1/cluster/log?follow=1", "GET /api/v1/cluster/value?at=1", "POST /api/v1/ids?count=2000",
	"POST /api/v1/ids?count=100000",
	"GET /debug/pprof/goroutine?debug=2", "GET /debug/pprof/heap?debug=1", "GET /debug/pprof/", "OPTIONS /api/v1/id",
}

// openPaths are all calls that a node describes, and those besides, without those that change something.
func openPaths(t *testing.T, n *node, client *http.Client) (all []string) {
	t.Helper()
	var document struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if _, err := exchange(client, http.MethodGet, n.url+"/openapi.json", "", &document); err != nil {
		t.Fatal(err)
	}
	for path, methods := range document.Paths {
		for method := range methods {
			method = strings.ToUpper(method)
			if method == http.MethodGet ||
				method == http.MethodPost && (strings.HasSuffix(path, "/id") || strings.HasSuffix(path, "/ids")) {
				all = append(all,
					method+" "+strings.NewReplacer("{name}", "default", "{id}", "5", "{key}", "default").Replace(path))
			}
		}
	}
	slices.Sort(all)
	return append(all, besides...)
}

// unreadOver is a way to ask for answers and to read none.
type unreadOver struct {
	name   string
	secure bool
	conns  int // to each listener
	asks   func(path []string) string
	only   string // the call; empty: all
}

func unreadOvers() []unreadOver {
	http2 := func(window string, each int) func([]string) string {
		return func(paths []string) string {
			return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" +
				frame(6, 4, 0, 0, "\x00\x04"+window) + frame(4, 8, 0, 0, "\x3f\xff\x00\x00") + streams(paths, each)
		}
	}
	http1 := func(times int) func([]string) string {
		return func(paths []string) string {
			method, path, _ := strings.Cut(paths[0], " ")
			return strings.Repeat(method+" "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n", times)
		}
	}
	return []unreadOver{
		{"HTTP/1.1", false, 1500, http1(1), ""},
		{"HTTP/1.1, 100 calls after each other", false, 1500, http1(100), ""},
		{"HTTP/1.1 over TLS", true, 800, http1(1), ""},
		{"HTTP/2, which lets nothing be sent", true, 40, http2("\x00\x00\x00\x00", 100), ""},
		{"HTTP/2, which does not read", true, 400, http2("\x3f\xff\xff\xff", 20), ""},
		{"HTTP/1.1, of the largest page", false, 1500, http1(1), "GET /docs/swagger-ui-bundle.js"},
		{"HTTP/2, of the largest page", true, 20, http2("\x00\x00\x00\x00", 100), "GET /docs/swagger-ui-bundle.js"},
		{"HTTP/2, of the longest list", true, 20, http2("\x00\x00\x00\x00", 100), "GET /api/v1/sequencers"},
	}
}

// streams are so many calls of HTTP/2 of the paths, from a place on.
func streams(paths []string, count int) string {
	var b strings.Builder
	text := func(s string) string { return string([]byte{byte(len(s))}) + s }
	for i := range count {
		method, path, _ := strings.Cut(paths[i%len(paths)], " ")
		headers := "\x87\x02" + text(method) + "\x04" + text(path) + "\x01" + text("localhost")
		b.WriteString(frame(len(headers), 1, 5, uint32(2*i+1), headers))
	}
	return b.String()
}

// Callers who ask for everything that is open, on every listener, and read no answer, don't take more memory than there
// is, and hold up neither probes nor IDs of others. The calls are those of a node's own description.
func TestUnreadAnswersOfEveryPath(t *testing.T) {
	testenv.Slow(t)
	for _, over := range unreadOvers() {
		t.Run(over.name, func(t *testing.T) {
			certs := certtest.WriteFiles(t, t.TempDir())
			p := newPod(t, podMemory)
			data := filepath.Join(t.TempDir(), "data")
			args := []string{"--data-dir=" + data, "--metrics-addr=127.0.0.1:0", "--compat=leaf"}
			secure := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}}
			if over.secure {
				args = append(args, "--tls-cert="+certs.ServerCert, "--tls-key="+certs.ServerKey)
			}
			n := p.serve("node", args...)
			if over.secure {
				n.url, n.admin = strings.Replace(n.url, "http:", "https:", 1),
					strings.Replace(n.admin, "http:", "https:", 1)
			}
			from := func(ip string) *http.Client {
				dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
				return &http.Client{Timeout: patience, Transport: &http.Transport{
					DialContext:       dialer.DialContext,
					DisableKeepAlives: true, TLSClientConfig: secure,
				}}
			}
			waitReady(t, n, from("127.0.0.1"))
			manySequencers(t, n, data, &http.Client{Transport: &http.Transport{TLSClientConfig: secure}})
			paths, before := openPaths(t, n, from("127.0.0.1")), p.used()
			if over.only != "" {
				paths = []string{over.only}
			}
			for _, address := range []string{
				strings.SplitAfter(n.admin, "//")[1], n.listens("metrics_addr"),
				strings.SplitAfter(n.url, "//")[1],
			} {
				var dialled atomic.Int64
				end := occupy(t, address, over.conns, func(c net.Conn) error {
					i := int(dialled.Add(1)) % len(paths)
					_ = c.(*net.TCPConn).SetReadBuffer(1)
					if over.secure {
						own := secure.Clone()
						if strings.HasPrefix(over.name, "HTTP/2") {
							own.NextProtos = []string{"h2"}
						}
						c = tls.Client(c, own)
					}
					_ = c.SetDeadline(time.Now().Add(5 * time.Second)) // it may be one whose listener takes no more
					_, err := io.WriteString(c, over.asks(slices.Concat(paths[i:], paths[:i])))
					return err
				})
				t.Cleanup(end)
			}
			during := p.settled()
			for _, path := range []string{"/livez", "/readyz"} {
				if _, err := exchange(from("127.0.0.2"), http.MethodGet, n.url+path, "", nil); err != nil {
					t.Errorf("%s: %v", path, err)
				}
			}
			if _, err := exchange(from("127.0.0.2"), http.MethodPost, n.url+"/api/v1/id", "", nil); err != nil {
				t.Errorf("an ID: %v", err)
			}
			t.Logf("| unread answers of %d paths on three listeners by %s | %d | %d, at most %d | %d |", len(paths),
				over.name, before>>20, during>>20, p.peak()>>20, p.used()>>20)
			if p.killed() != 0 {
				t.Error("the node was killed for want of memory")
			}
			if most := int64(podMemory - room); p.peak() > most {
				t.Errorf("it used %d MiB; want at most %d MiB of %d", p.peak()>>20, most>>20, podMemory>>20)
			}
			if log := n.log.String(); strings.Contains(log, "panic") || strings.Contains(log, "level=ERROR") {
				t.Errorf("the log:\n%s", log)
			}
		})
	}
}

func waitReady(t *testing.T, n *node, client *http.Client) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		_, err := exchange(client, http.MethodGet, n.url+"/readyz", "", nil)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// manySequencers makes the lists of a node long.
func manySequencers(t *testing.T, n *node, data string, client *http.Client) {
	t.Helper()
	const count, creators = 300, 4
	text, err := os.ReadFile(filepath.Join(data, "admin.token"))
	if err != nil {
		t.Fatal(err)
	}
	secret, _, _ := strings.Cut(string(text), "\n")
	var creating sync.WaitGroup
	for part := range creators {
		creating.Go(func() {
			for i := part; i < count; i += creators {
				body := fmt.Sprintf(`{"name":"sequencer-of-many-%d"}`, i)
				if _, err := exchangeAs(client, secret, http.MethodPost, n.admin+"/api/v1/sequencers", body,
					nil); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	creating.Wait()
	if t.Failed() {
		t.FailNow()
	}
}
