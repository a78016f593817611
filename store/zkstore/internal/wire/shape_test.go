package wire

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/store/internal/answers"
)

// part is an answer to a part of a transaction: its header, and what follows.
func part(code int32, rest ...byte) []byte {
	var w writer
	header(&w, code, false)
	return append(w.buf, rest...)
}

func statOf(created, modified int64) []byte {
	var w writer
	w.long(created)
	w.long(modified)
	return append(w.buf, make([]byte, 52)...)
}

var end = []byte{255, 255, 255, 255, 1, 255, 255, 255, 255}

// An answer of another shape than that of the request is an error, which says what is wrong.
func TestShapeOfAnswers(t *testing.T) {
	multi := Multi(Check("/a", 0), Set("/a", nil, 0))
	check, set := part(codeCheck), part(codeSetData, statOf(1, 2)...)
	failed := func(code byte) []byte { return part(codeError, 255, 255, 255, code) }
	for _, c := range []struct {
		request Request
		answer  [][]byte
		want    string // empty: it is right
	}{
		{multi, [][]byte{check, set, end}, ""},
		{multi, [][]byte{part(codeError, 0, 0, 0, 0), failed(155), end}, ""},
		{multi, [][]byte{failed(155), failed(254), end}, ""},
		{multi, [][]byte{end}, "0 parts of a transaction; want 2"},
		{multi, [][]byte{check, end}, "1 parts of a transaction; want 2"},
		{multi, [][]byte{check, set, check, end}, "more parts of a transaction than the 2"},
		{multi, [][]byte{set, set, end}, "part 0 of a transaction as one of code 5; want 13"},
		{multi, [][]byte{check, part(codeDelete), end}, "part 1 of a transaction as one of code 2; want 5"},
		{multi, [][]byte{check, failed(155), end}, "1 parts of a transaction as failed, of 2"},
		{multi, [][]byte{failed(254), failed(254), end}, "2 parts of a transaction as failed, of 2"},
		{multi, [][]byte{check, part(codeSetData, statOf(2, 1)...), end}, "want numbers above zero"},
		{multi, [][]byte{check, set[:40]}, "ends too early"},
		{multi, [][]byte{check, set}, "ends too early"},
		{Exists("/a", false), [][]byte{statOf(1, 1)}, ""},
		{Exists("/", false), [][]byte{statOf(0, 0)}, ""},
		{Exists("/a", false), [][]byte{statOf(0, 0)}, "transaction 0 made \"/a\""},
		{Exists("/a", false), [][]byte{statOf(-1, 1)}, "transaction -1 made"},
		{Exists("/a", false), [][]byte{statOf(1, 1)[:67]}, "ends too early"},
		{Get("/a"), [][]byte{{255, 255, 255, 255}, statOf(1, 1)}, ""},
		{Get("/a"), [][]byte{{255, 255, 255, 254}, statOf(1, 1)}, "a length of -2"},
		{Get("/a"), [][]byte{{0, 0, 0, 200}, statOf(1, 1)}, "ends too early"},
		{Children("/a", false), [][]byte{{0, 0, 0, 1, 0, 0, 0, 1, 'b'}, statOf(1, 1)}, ""},
		{
			Children("/a", false),
			[][]byte{{0, 0, 0, 40, 0, 0, 0, 1, 'b'}, statOf(1, 1)},
			"a list of 40 names in 73 bytes",
		},
		{Children("/a", false), [][]byte{{0, 127, 255, 255}, make([]byte, 40<<20)}, "want at most 1048576"},
		{Children("/a", false), [][]byte{{255, 255, 255, 254}, statOf(1, 1)}, "a list of -2 names"},
	} {
		in := reader{buf: bytes.Join(c.answer, nil)}
		var reply Reply
		c.request.decode(&in, &reply)
		if in.err == nil && c.want != "" ||
			in.err != nil && (c.want == "" || !strings.Contains(in.err.Error(), c.want)) {
			t.Errorf("%.300x: %v; want %q", c.answer, in.err, c.want)
		}
	}
}

// What a server says that it will send takes no memory before it comes, and what is more than a request has room for
// ends the connection.
func TestLengthOfAnswers(t *testing.T) {
	greeting := make([]byte, 36)
	binary.BigEndian.PutUint32(greeting[4:], 10_000)
	greeting[15], greeting[19] = 1, 16
	answer := func(xid int32, length uint32) []byte {
		b := binary.BigEndian.AppendUint32(nil, length)
		return binary.BigEndian.AppendUint32(b, uint32(xid))
	}
	largeNode := append(answer(1, 20<<20+16+4+68), make([]byte, 12)...)
	largeNode = append(append(binary.BigEndian.AppendUint32(largeNode, 20<<20), make([]byte, 20<<20)...),
		statOf(1, 1)...)
	for name, c := range map[string]struct {
		greet, then []byte
		want        string
	}{
		"a greeting of 4 GiB": {greet: []byte{255, 255, 255, 255}, want: "4294967295 bytes; want at most 1024"},
		"an answer of 2 GiB": {
			then: append(answer(1, 1<<31), make([]byte, 12)...),
			want: "bytes; want at most 33554432",
		},
		"an answer that never comes": {then: append(answer(1, answers.Max), make([]byte, 12)...), want: "no answer"},
		"an event of 1 MiB": {
			then: append(answer(xidEvent, 1<<20), make([]byte, 12)...),
			want: "bytes; want at most 65536",
		},
		"an answer to nothing": {
			then: append(answer(7, 1<<20), make([]byte, 12)...),
			want: "a request 7 that was not sent",
		},
		"an answer without a header": {then: answer(1, 4), want: "4 bytes; want at least 16"},
		"all answers to a call, each": {
			then: append(largeNode, append(answer(2, 20<<20+16), make([]byte, 12)...)...),
			want: "want at most 12582840",
		},
	} {
		t.Run(name, func(t *testing.T) {
			client, server := net.Pipe()
			defer server.Close()
			go func() {
				request := make([]byte, 1<<10)
				_, _ = server.Read(request)
				if c.greet != nil {
					_, _ = server.Write(c.greet)
					return
				}
				_, _ = server.Write(append([]byte{0, 0, 0, 36}, greeting...))
				_, _ = server.Read(request)
				_, _ = server.Write(c.then)
			}()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			silence := time.Minute // on a busy machine 20 MiB take a while
			if c.want == "no answer" {
				silence = 300 * time.Millisecond
			}
			conn, err := Dial(ctx, Options{
				Connect: func(context.Context) (net.Conn, error) {
					return client, nil
				}, Timeout: time.Second, Silence: silence,
			})
			if err == nil {
				_, err = conn.Do(ctx, Get("/a"), Get("/b"))
				conn.Abandon()
			}
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v; want %q", err, c.want)
			}
			if grown := after.TotalAlloc - before.TotalAlloc; len(c.then) < 1<<10 && grown > 2<<20 {
				t.Errorf("it allocates %d bytes", grown)
			}
		})
	}
}
