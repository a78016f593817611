package client

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/packed"
)

func TestParseAnswer(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{`{"id":9007199254740993,"id_str":"9007199254740993"}`, "[9007199254740993]"},
		{`{"id":1,"id_str":"9223372036854775807"}` + "\n", "[9223372036854775807]"},
		{`{"ids":[0,0],"ids_str":["9007199254740993","9007199254740995"]}`, "[9007199254740993 9007199254740995]"},
		{`{"ids_str":["5"]}`, "[5]"},
		{`{"ids":[5,6]}`, "0 IDs; want 2"},
		{`{"ids_str":["5"],"id_str":"6"}`, "2 IDs; want 1"},
		{`{"ids_str":["5","6","7"]}`, "3 IDs; want 2"},
		{`{"ids_str":["6","5"]}`, "[6 5]"}, // of a sequencer that scatters them
		{`{"ids_str":["5","5"]}`, "5 comes after 5"},
		{`{"ids_str":["0","5"]}`, "0 comes after 0"},
		{`{"ids_str":["-5","5"]}`, "-"},
		{`{"ids_str":["5","1e3"]}`, "1e3"},
		{`{"ids_str":["5","6"]} and more`, "invalid character"},
		{``, "unexpected end"},
	} {
		n := 2
		if strings.Count(c.want, " ") == 0 && c.want[0] == '[' || strings.HasSuffix(c.want, "want 1") {
			n = 1
		}
		ids, err := parseAnswer([]byte(c.body), n)
		if got := fmt.Sprint(ids); err == nil && got != c.want || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %s, %v; want %s", c.body, got, err, c.want)
		}
	}
}

func TestALongMessageIsCut(t *testing.T) {
	r := answer(503, "")
	e := readError("a", r, []byte(`{"error":{"code":"x","message":"`+strings.Repeat("ü", 2000)+`"}}`))
	if len(e.Message) > longestText+3 || !strings.HasSuffix(e.Message, "ü...") {
		t.Errorf("%d bytes: %s", len(e.Message), e.Message)
	}
}

// Whatever a node answers, either it is refused or there are as many IDs as were asked for, above zero, and each there
// once.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"id":9007199254740993,"id_str":"9007199254740993"}`), uint8(1))
	f.Add([]byte(`{"ids":[5,6],"ids_str":["5","6"]}`), uint8(2))
	f.Add([]byte(`{"ids_str":["5","6"],"ids_str":[null,"6"]}`), uint8(2))
	f.Add([]byte(`{"error":{"code":"not_ready","message":""}}`), uint8(1))
	f.Fuzz(func(t *testing.T, body []byte, n uint8) {
		ids, err := parseAnswer(body, int(n))
		if err != nil {
			return
		}
		seen := map[firn.ID]bool{}
		for _, id := range ids {
			if id <= 0 || seen[id] {
				t.Errorf("%d, or twice", id)
			}
			if !strings.Contains(string(body), id.String()) {
				t.Errorf("%d is not in the answer", id)
			}
			seen[id] = true
		}
		if len(ids) != int(n) {
			t.Errorf("%d IDs, want %d", len(ids), n)
		}
		_ = readError("a", answer(503, ""), body).Error()
	})
}

func TestPackedAnswer(t *testing.T) {
	for _, c := range []struct {
		kind string // empty: that of packed IDs
		body []byte
		n    int
		want string
	}{
		{"", packed.Append(nil, 5, 6), 2, "[5 6]"},
		{"", packed.Append(nil, math.MaxInt64), 1, "[9223372036854775807]"},
		{"", nil, 2, "0 bytes; want 16 for 2 IDs"},
		{"", packed.Append(nil, 5), 2, "8 bytes; want 16 for 2 IDs"},
		{"", packed.Append(nil, 5, 6)[:15], 2, "15 bytes; want 16 for 2 IDs"},
		{"", packed.Append(nil, 5, 6, 7), 2, "more than 16 bytes; want 16 for 2 IDs"},
		{"", packed.Append(nil, 5, 6), 1, "more than 8 bytes; want 8 for 1 IDs"},
		{"", packed.Append(nil, 6, 5), 2, "[6 5]"}, // of a sequencer that scatters them
		{"", packed.Append(nil, 6, 5, 6), 3, "6 comes after 6"},
		{"", packed.Append(nil, 6, 6), 2, "6 comes after 6"},
		{"", packed.Append(nil, 0, 6), 2, "0 comes after 0"},
		{"", packed.Append(nil, 5, -6), 2, "ID 2 of 2 is -6; want 0 or more"},
		{"", []byte(`{"ids_str":["5","6"]}`), 2, "more than 16 bytes; want 16 for 2 IDs"},
		{"application/json", packed.Append(nil, 5, 6), 2, "wrong answer: invalid character"},
	} {
		r := answer(200, string(c.body), "Content-Type", cmp.Or(c.kind, packed.Type))
		r.ContentLength = int64(len(c.body))
		given, err := readAnswer("a", r, query{n: c.n})
		if got := fmt.Sprint(given.ids); err == nil && got != c.want ||
			err != nil && (!strings.Contains(err.Error(), c.want) || given.ids != nil) {
			t.Errorf("%q for %d: %s, %v; want %s", c.body, c.n, got, err, c.want)
		}
	}
}

// serve is a node of one answer, over a real connection.
func serve(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c, err := New([]string{s.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// The client asks for packed IDs, and takes JSON from a node that does not know them.
func TestNewAndOldNodes(t *testing.T) {
	for _, old := range []bool{false, true} {
		c := serve(t, func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Header.Get("Accept") != packed.Type:
				t.Errorf("Accept: %q", r.Header["Accept"])
			case old:
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `{"ids":[7,8],"ids_str":["7","8"]}`)
			default:
				w.Header().Set("Content-Type", packed.Type)
				_, _ = w.Write(packed.Append(nil, 7, 8))
			}
		})
		ids := make([]firn.ID, 2)
		if err := c.Fill(within(t, 10*time.Second), ids); err != nil || ids[0] != 7 || ids[1] != 8 {
			t.Errorf("old: %v: %v, %v", old, ids, err)
		}
	}
}

// An answer whose end is missing gives no IDs.
func TestTruncatedPackedAnswer(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", packed.Type)
		w.Header().Set("Content-Length", "16")
		_, _ = w.Write(packed.Append(nil, 7))
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	ids := make([]firn.ID, 2)
	if err := c.Fill(within(t, 200*time.Millisecond), ids); !errors.Is(err, io.ErrUnexpectedEOF) || ids[0] != 0 {
		t.Errorf("%v, %v", ids, err)
	}
}
