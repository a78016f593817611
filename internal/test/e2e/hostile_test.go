//go:build linux

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/testenv"
)

// What clients send that mean no good, or are broken, and what comes of it. docs/security.md sums up what this prints
// with -v. After each, the node gives IDs as if nothing had been.

// attack is something that a client does to an address, and what it may end with.
type attack struct {
	name string
	send string        // at once; may be empty
	then func(c *wire) // more of it; may be nil
	want string        // a part of what is answered; "closed" for nothing but the connection's end
	stay bool          // the connection may stay open: then what is answered at first counts
}

// wire is a connection that is looked at byte by byte.
type wire struct {
	net.Conn
	t *testing.T
}

func dial(t *testing.T, address string) *wire {
	t.Helper()
	c, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(patience))
	return &wire{c, t}
}

// push sends until the other side will have no more of it, and returns how many bytes it took.
func (w *wire) push(piece string, most int) int {
	sent := 0
	for sent < most {
		n, err := io.WriteString(w, piece)
		if sent += n; err != nil {
			break
		}
	}
	return sent
}

// outcome is what is answered, in short, until the connection ends.
func (w *wire) outcome(mayStay bool) string {
	if mayStay {
		_ = w.SetReadDeadline(time.Now().Add(time.Second))
	}
	head := make([]byte, 64<<10)
	n, err := io.ReadFull(w, head)
	switch open := errors.Is(err, os.ErrDeadlineExceeded); {
	case open && !mayStay:
		w.t.Error("the connection stays open")
	case mayStay: // they are frames, and not for people
		return fmt.Sprintf("%d bytes, closed: %v", n, !open)
	case n == 0:
		return "closed"
	}
	lines := strings.Split(strings.ReplaceAll(string(head[:n]), "\r", ""), "\n")
	if body := lines[len(lines)-1]; len(lines) > 2 && body == "" {
		return lines[0] + " " + lines[len(lines)-2]
	}
	return lines[0] + " " + lines[len(lines)-1]
}

func post(path, headers string) string {
	return "POST " + path + " HTTP/1.1\r\nHost: firn\r\nConnection: close\r\n" + headers + "\r\n"
}

func get(path string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: firn\r\nConnection: close\r\n\r\n"
}

// onHTTP are those on the port for everybody. With a token that is wrong the node is one with tokens.
func onHTTP() []attack {
	drip := func(line string) func(*wire) {
		return func(w *wire) { // a byte now and then, for as long as it is let
			for range 600 {
				if _, err := io.WriteString(w, line); err != nil {
					return
				}
				time.Sleep(100 * time.Millisecond)
			}
			w.t.Error("it may go on for a minute")
		}
	}
	return []attack{
		{"a connection that sends nothing", "", nil, "closed", false},
		{
			"slow-loris: a header that never ends", "POST /api/v1/id HTTP/1.1\r\nHost: firn\r\n", drip("X-a: b\r\n"),
			"closed", false,
		},
		{
			"a header of 64 KiB", post("/api/v1/id", "X: "+strings.Repeat("a", 64<<10)+"\r\n"), nil,
			"431 Request Header Fields Too Large", false,
		},
		{"ten thousand headers", post("/api/v1/id", strings.Repeat("a: b\r\n", 10_000)), nil, "431 ", false},
		{"a path of 32 KiB", post("/"+strings.Repeat("a", 32<<10), ""), nil, "431 ", false},
		{"a body of 10 GB announced", post("/api/v1/id", "Content-Length: 10000000000\r\n"), nil, "200 OK", false},
		{
			"a body of 1 MB where none is read",
			post("/api/v1/id", "Content-Length: 1000000\r\n") + strings.Repeat("x", 1_000_000), nil, "200 OK", false,
		},
		{"a negative length", post("/api/v1/id", "Content-Length: -1\r\n"), nil, "400 Bad Request", false},
		{
			"two lengths", post("/api/v1/id", "Content-Length: 1\r\nContent-Length: 2\r\n") + "xx", nil,
			"400 Bad Request", false,
		},
		{
			"a length and chunks",
			post("/api/v1/id", "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n") + "0\r\n\r\n",
			nil, "200 OK", false,
		},
		{
			"chunks with a bad length", post("/api/v1/id", "Transfer-Encoding: chunked\r\n") + "zz\r\n", nil,
			"200 OK", false,
		},
		{"a line end in a header's name", post("/api/v1/id", "X\n: b\r\n"), nil, "400 Bad Request", false},
		{"a NUL in the path", get("/api/v1/ids/\x00"), nil, "400 Bad Request", false},
		{"no HTTP at all", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", nil, "400 Bad Request", false},
		{"HTTP/2 without TLS", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", nil, "400 Bad Request", false},
		{"another version", "GET /livez HTTP/9.9\r\nHost: firn\r\n\r\n", nil, "505 ", false},
		{"no Host", "GET /livez HTTP/1.1\r\nConnection: close\r\n\r\n", nil, "400 Bad Request", false},
		{
			"CONNECT to elsewhere",
			"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n",
			nil, "404 ", false,
		},
		{
			"a URL of elsewhere", "GET http://example.org/ HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n",
			nil, "404 ", false,
		},
		{"dots in the path, to administration", post("/api/v1/ids/../sequencers", ""), nil, "307 ", false},
		{"dots, encoded", post("/api/v1/%2e%2e/v1/sequencers/orders/attach", ""), nil, "40", false},
		{"a name with a slash, encoded", post("/api/v1/sequencers/a%2Fb/id", ""), nil, "bad_request", false},
		{"a name of dots, encoded", post("/api/v1/sequencers/%2e%2e/id", ""), nil, "40", false},
		{"two slashes", post("//api/v1/sequencers", ""), nil, "307 ", false},
		{"upper case", post("/API/V1/ID", ""), nil, "not_found", false},
		{"an ID of 15 000 digits", get("/api/v1/ids/" + strings.Repeat("1", 15<<10)), nil, "bad_request", false},
		{
			"a count beyond all numbers", post("/api/v1/ids?count="+strings.Repeat("9", 1000), ""), nil,
			"bad_request", false,
		},
		{"count given twice", post("/api/v1/ids?count=1&count=100000", ""), nil, "bad_request", false},
		{
			"administration without a right",
			post("/api/v1/sequencers", "Content-Length: 17\r\n") + `{"name":"orders"}`,
			nil, "forbidden", false,
		},
		{
			"an administrator's method in the place of another",
			post("/api/v1/cluster", "X-HTTP-Method-Override: GET\r\n"), nil, "method_not_allowed", false,
		},
		{
			"another site's page", post("/api/v1/id", "Sec-Fetch-Site: cross-site\r\nOrigin: https://example.org\r\n"),
			nil, "cross_origin", false,
		},
	}
}

// onAdmin are those on the administrators' port, the node's secret being known unless the attack is about that.
func onAdmin(secret string) []attack {
	const destroy = "DELETE /api/v1/sequencers/orders HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
	local := func(request string) string { return strings.Replace(request, "Host: firn", "Host: localhost", 1) }
	create := func(headers, body string) string {
		return local(post("/api/v1/sequencers", fmt.Sprintf("Content-Length: %d\r\n%s", len(body), headers))) + body
	}
	bearer := "Authorization: Bearer " + secret + "\r\n"
	return []attack{
		{"a change without the node's secret", destroy + "\r\n", nil, "unauthenticated", false},
		{"a change with another secret", destroy + "Authorization: Bearer " + strings.Repeat("A", len(secret)) +
			"\r\n\r\n", nil, "unauthenticated", false},
		{"a page that got here under its own name (DNS rebinding)", get("/api/v1/cluster"), nil, "cross_origin", false},
		{"a body of 10 MB", local(post("/api/v1/sequencers", "Content-Length: 10000000\r\n")), func(w *wire) {
			w.push(strings.Repeat(" ", 64<<10), 10_000_000)
		}, "too_large", false},
		{"a body that never comes", local(post("/api/v1/sequencers", "Content-Length: 100\r\n")), nil, "40", false},
		{"half a body", local(post("/api/v1/sequencers", "Content-Length: 100\r\n")) + `{"name":`, func(w *wire) {
			_ = w.Conn.(*net.TCPConn).CloseWrite()
		}, "bad_request", false},
		{
			"JSON, nested 10 000 deep",
			create("", `{"name":`+strings.Repeat("[", 10_000)+strings.Repeat("]", 10_000)+`}`),
			nil, "bad_request", false,
		},
		{"a name of dots", create(bearer, `{"name":".."}`), nil, "bad_request", false},
		{"numbers beyond all bounds", create("", `{"name":"a","nodes":1e400}`), nil, "bad_request", false},
		{
			"an epoch in the year 300 000", create("", `{"name":"a","epoch":"300000-01-01T00:00:00Z"}`), nil,
			"bad_request", false,
		},
		{"a name with a line end", create("", `{"name":"a\nb"}`), nil, "bad_request", false},
		{
			"the log from a position beyond all numbers", local(get("/api/v1/cluster/log?from=99999999999999999999")),
			nil,
			"bad_request", false,
		},
	}
}

// frame is one of HTTP/2.
func frame(length int, kind, flags byte, stream uint32, payload string) string {
	return string([]byte{
		byte(length >> 16), byte(length >> 8), byte(length), kind, flags,
		byte(stream >> 24), byte(stream >> 16), byte(stream >> 8), byte(stream),
	}) + payload
}

// onGRPC are those on the port for gRPC. What is answered are frames: a GOAWAY, if anything, and then the end.
func onGRPC() []attack {
	const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
	settings := preface + frame(0, 4, 0, 0, "")
	many := func(what func(i uint32) string) func(*wire) {
		return func(w *wire) { // a hundred in a piece, for as long as they are taken
			var b strings.Builder
			for i := range uint32(200_000) {
				if b.WriteString(what(i)); i%100 < 99 {
					continue
				}
				if _, err := io.WriteString(w, b.String()); err != nil {
					return
				}
				b.Reset()
			}
			w.t.Log("200 000 were taken")
		}
	}
	return []attack{
		{"no HTTP/2 at all", "GET / HTTP/1.1\r\n\r\n", nil, "", false},
		{"a preface, and nothing more", preface, nil, "", false},
		{"a frame of 16 MB announced", settings + frame(1<<24-1, 0, 0, 1, ""), nil, "", true},
		{"data for a stream that is not open", settings + frame(5, 0, 0, 1, "hello"), nil, "", true},
		{"headers that can't be read", settings + frame(4, 1, 4, 1, "\xff\xff\xff\xff"), nil, "", true},
		{"settings for a stream", preface + frame(0, 4, 0, 3, ""), nil, "", true},
		{"settings of odd length", preface + frame(5, 4, 0, 0, "abcde"), nil, "", true},
		{"a window that overflows", settings + frame(4, 8, 0, 0, "\x7f\xff\xff\xff"), nil, "", true},
		{
			"a header block that never ends (CONTINUATION flood)", settings + frame(1, 1, 0, 1, "\x82"),
			many(func(uint32) string {
				return frame(16, 9, 0, 1, strings.Repeat("\x82", 16))
			}), "", true,
		},
		{"a flood of pings", settings, many(func(uint32) string { return frame(8, 6, 0, 0, "12345678") }), "", true},
		{"a flood of streams that are reset at once", settings, many(func(i uint32) string {
			return frame(3, 1, 4, 2*i+1, "\x83\x86\x84") + frame(4, 3, 0, 2*i+1, "\x00\x00\x00\x08")
		}), "", true},
	}
}

// onRedis are those on the port for Redis clients.
func onRedis() []attack {
	return []attack{
		{"a command of a billion parts announced", "*1000000000\r\n", nil, "-ERR Protocol error", false},
		{"a negative number of parts", "*-5\r\nPING\r\nQUIT\r\n", nil, "", false},
		{"a part of 512 MB announced", "*2\r\n$4\r\nINCR\r\n$536870912\r\n", nil, "-ERR Protocol error", false},
		{"a part of negative length", "*1\r\n$-1\r\n", nil, "-ERR Protocol error", false},
		{"a length that is no number", "*1\r\n$x\r\n", nil, "-ERR Protocol error", false},
		{"a part without its line end", "*1\r\n$4\r\nPINGxx", nil, "-ERR Protocol error", false},
		{"a line of a megabyte", strings.Repeat("a", 1<<20), nil, "-ERR Protocol error", false},
		{"quotes that don't end", "INCR \"orders\r\n", nil, "-ERR Protocol error", false},
		{
			"a request of HTTP, from a browser", "POST / HTTP/1.1\r\nHost: x\r\n\r\nINCR default\r\n", nil,
			"closed", false,
		},
		{
			"a count for FIRN.NEXT beyond all numbers", "FIRN.NEXT default 99999999999999999999\r\nQUIT\r\n",
			nil, "-", false,
		},
		{"a name that is none", "INCR \"../../etc\"\r\nQUIT\r\n", nil, "-", false},
		{"a name of 60 KiB", "INCR " + strings.Repeat("a", 60<<10) + "\r\nQUIT\r\n", nil, "-", false},
		{
			"an unknown command of 60 KiB", strings.Repeat("a", 60<<10) + "\r\nQUIT\r\n", nil,
			"-ERR Protocol error", false,
		},
		{"half a command", "*2\r\n$4\r\nINCR\r\n", func(w *wire) { _ = w.Conn.(*net.TCPConn).CloseWrite() }, "", false},
		{"a reader that never reads", "", func(w *wire) {
			// It takes what the other side's buffers take, and then no more.
			if sent := w.push(strings.Repeat("FIRN.NEXT default 100000\r\n", 100), 1<<30); sent >= 1<<30 {
				w.t.Errorf("it took %d bytes of commands", sent)
			}
		}, "", false},
	}
}

// onTokens are those on the port for everybody of a node that wants a token, whose hash is told.
func onTokens(token, hash string) []attack {
	bearing := func(headers string) string { return post("/api/v1/id", headers) }
	return []attack{
		{"no token", bearing(""), nil, "unauthenticated", false},
		{
			"a token that is nobody's", bearing("Authorization: Bearer firn_" + strings.Repeat("A", 43) + "\r\n"), nil,
			"unauthenticated", false,
		},
		{
			"the hash that the file has, as a token", bearing("Authorization: Bearer " + hash + "\r\n"), nil,
			"unauthenticated", false,
		},
		{
			"a token of 8 KiB", bearing("Authorization: Bearer " + strings.Repeat("A", 8<<10) + "\r\n"), nil,
			"unauthenticated", false,
		},
		{"the token in the URL", post("/api/v1/id?access_token="+token, ""), nil, "unauthenticated", false},
		{
			"the token as a password of Basic", bearing("Authorization: Basic " + token + "\r\n"), nil,
			"unauthenticated", false,
		},
		{
			"the token after another one",
			bearing("Authorization: Bearer x\r\nAuthorization: Bearer " + token + "\r\n"),
			nil, "unauthenticated", false,
		},
		{
			"the token, cut off at its end", bearing("Authorization: Bearer " + token[:len(token)-1] + "\r\n"), nil,
			"unauthenticated", false,
		},
		{"the token, for what it does not allow", post("/api/v1/sequencers", "Authorization: Bearer "+token+
			"\r\nContent-Length: 17\r\n") + `{"name":"orders"}`, nil, "forbidden", false},
		{
			"the token, for another sequencer",
			post("/api/v1/sequencers/others/id", "Authorization: Bearer "+token+"\r\n"), nil, "forbidden", false,
		},
		{"the token, for dots to another sequencer", post("/api/v1/sequencers/default%2f..%2fothers/id",
			"Authorization: Bearer "+token+"\r\n"), nil, "forbidden", false},
	}
}

// healthy asks for an ID over a connection of its own. A token is shown, if there is one.
func healthy(t *testing.T, n *node, token string) {
	t.Helper()
	healthyFrom(t, n, token, "127.0.0.1")
}

// healthyFrom is healthy for who comes from an address of this machine.
func healthyFrom(t *testing.T, n *node, token, from string) {
	t.Helper()
	var id struct {
		Str string `json:"id_str"`
	}
	request, err := http.NewRequest(http.MethodPost, n.url+"/api/v1/id", nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := once(from).Do(request)
	if err == nil {
		err = json.NewDecoder(response.Body).Decode(&id)
		response.Body.Close()
	}
	if err != nil || id.Str == "" {
		t.Errorf("an ID afterwards, from %s: %q, %v", from, id.Str, err)
	}
}

// once is a client from an address of this machine, each of whose calls has a connection of its own.
func once(from string) *http.Client {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	return &http.Client{
		Transport: &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true},
		Timeout:   patience,
	}
}

func (n *node) carryOut(t *testing.T, address, token string, all []attack) {
	for _, a := range all {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			w := dial(t, address)
			began := time.Now()
			if _, err := io.WriteString(w, a.send); err != nil && a.want != "closed" {
				t.Logf("sending: %v", err) // it was answered before all was sent
			}
			if a.then != nil {
				a.then(w)
			}
			got := w.outcome(a.stay)
			if !strings.Contains(got, a.want) {
				t.Errorf("%q; want %q", got, a.want)
			}
			if token != "" && strings.Contains(got, token[:20]) {
				t.Errorf("the answer shows the token: %s", got)
			}
			t.Logf("| %s | %.100s | %.1f s |", a.name, got, time.Since(began).Seconds())
			healthy(t, n, token)
		})
	}
}

func TestHostileInput(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	n := serve(t, "node", "--data-dir="+data, "--grpc-addr=127.0.0.1:0", "--redis-addr=127.0.0.1:0")
	n.ready(t, new(ledger))
	before := n.resident()
	text, err := os.ReadFile(filepath.Join(data, "admin.token"))
	if err != nil {
		t.Fatal(err)
	}
	secret, _, _ := strings.Cut(string(text), "\n")
	t.Run("public", func(t *testing.T) { n.carryOut(t, strings.TrimPrefix(n.url, "http://"), "", onHTTP()) })
	t.Run("admin", func(t *testing.T) { n.carryOut(t, strings.TrimPrefix(n.admin, "http://"), "", onAdmin(secret)) })
	t.Run("gRPC", func(t *testing.T) { n.carryOut(t, n.listens("grpc_addr"), "", onGRPC()) })
	t.Run("Redis", func(t *testing.T) { n.carryOut(t, n.listens("redis_addr"), "", onRedis()) })
	t.Logf("resident memory: %d MiB before, %d MiB after", before>>20, n.resident()>>20)
	if log := n.log.String(); strings.Contains(log, "panic") || strings.Contains(log, "level=ERROR") ||
		strings.Contains(log, secret) {
		t.Errorf("the log:\n%s", log)
	}
}

// Wrong tokens are refused, and neither answers nor the log show them.
func TestWrongTokens(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	token := newToken(t, file, "--name=app", "--allow=issue", "--sequencer=default")
	entry, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	hash := regexp.MustCompile("[0-9a-f]{64}").FindString(string(entry))
	n := serve(t, "node", "--data-dir="+filepath.Join(t.TempDir(), "data"), "--tokens="+file, "--log-level=debug")
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		_, err := exchange(caller, http.MethodGet, n.url+"/readyz", "", nil)
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	t.Run("tokens", func(t *testing.T) {
		n.carryOut(t, strings.TrimPrefix(n.url, "http://"), token, onTokens(token, hash))
	})
	if log := n.log.String(); strings.Contains(log, token[:20]) || strings.Contains(log, hash) {
		t.Errorf("the log:\n%s", log)
	}
}

// resident is how many bytes of memory the process has.
func (n *node) resident() int64 {
	n.t.Helper()
	statm, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", n.cmd.Process.Pid))
	if err != nil {
		n.t.Fatal(err)
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(statm), &size, &pages); err != nil {
		n.t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}
