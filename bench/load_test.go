package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestAnswersAreReadWhole(t *testing.T) {
	const answer = "HTTP/1.1 200 OK\r\nDate: today\r\nContent-Length: 10\r\nServer: any\r\n\r\n{\"id\":123}"
	for n := range len(answer) {
		if _, whole, err := parseAnswer([]byte(answer[:n])); whole || err != nil {
			t.Errorf("%q: %v, %v; there is more to come", answer[:n], whole, err)
		}
	}
	if body, whole, err := parseAnswer([]byte(answer)); string(body) != `{"id":123}` || !whole || err != nil {
		t.Errorf("%q, %v, %v", body, whole, err)
	}
	for _, change := range [][2]string{
		{"200 OK", "503 Service Unavailable"},
		{"Content-Length: 10", "Transfer-Encoding: chunked"},
		{"10", "9"},
		{"10", "x"},
		{"10", "-1"},
		{"10", "99999"},
		{`"id"`, `"no"`},
		{"HTTP", "PTTH"},
	} {
		bad := strings.Replace(answer, change[0], change[1], 1)
		if _, _, err := parseAnswer([]byte(bad)); err == nil {
			t.Errorf("%q is no error", bad)
		}
	}
	read := []byte(answer)
	if n := testing.AllocsPerRun(100, func() { _, _, _ = parseAnswer(read) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// Every answer of a server is counted, and none that is bad.
func TestLoad(t *testing.T) {
	bad := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/api/v1/id" {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		if bad {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		fmt.Fprint(w, `{"id":1}`)
	}))
	defer server.Close()
	address := server.Listener.Addr().String()
	begun := 0
	l, err := ask(t.Context(), address, 3, 50*time.Millisecond, func() { begun++ })
	if err != nil || l.answers < 3 || begun != 1 || l.took < 50*time.Millisecond || l.took > 5*time.Second {
		t.Errorf("%d answers in %v, begun %d times: %v", l.answers, l.took, begun, err)
	}
	all := 0
	for _, n := range l.each {
		all += n
	}
	if all != l.answers {
		t.Errorf("%d times for %d answers", all, l.answers)
	}
	bad = true
	if _, err := ask(t.Context(), address, 3, time.Second, func() {}); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("got %v, want what the server said", err)
	}
}

// The quantiles are those of the sorted times, nearly.
func TestHistogram(t *testing.T) {
	var h histogram
	if got := h.quantile(0.5); got != 0 {
		t.Errorf("of nothing it is %v", got)
	}
	var all []time.Duration
	for range 10_000 {
		d := time.Duration(1) << rand.IntN(36)
		d += time.Duration(rand.Int64N(int64(d)))
		all = append(all, d)
		h.add(d)
	}
	slices.Sort(all)
	for _, part := range []float64{0.0001, 0.1, 0.5, 0.99, 0.999, 1} {
		want, got := all[max(0, int(part*10_000)-1)].Seconds(), h.quantile(part).Seconds()
		if got < want*63/64 || got > want*65/64 {
			t.Errorf("quantile %v: %v s, want %v s", part, got, want)
		}
	}
	for _, d := range []time.Duration{-1, 0, time.Hour, 1 << 62} {
		h.add(d) // in whatever slot
	}
	if n := testing.AllocsPerRun(100, func() { h.add(time.Millisecond) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestProcStat(t *testing.T) {
	parent, ticks, err := parseStat("42 (a ) b) S 7 42 42 0 -1 4194560 100 0 0 0 31 11 0 0 20 0 5 0 9 9 9")
	if parent != 7 || ticks != 42 || err != nil {
		t.Errorf("parent %d, %d ticks, %v", parent, ticks, err)
	}
	for _, bad := range []string{"", "42 (a) S", "42 (a) S x 42 42 0 -1 4194560 100 0 0 0 31 11 0 0"} {
		if _, _, err := parseStat(bad); err == nil {
			t.Errorf("%q is no error", bad)
		}
	}
}

func TestRedisBenchmark(t *testing.T) {
	const head = `"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"` + "\n"
	r, err := parseRedisBenchmark(head + `"INCR id","88888.89","0.105","0.032","0.095","0.207","0.271","0.663"` + "\n")
	if err != nil || r.perSecond != 88888.89 || r.p50 != 95 || r.p99 != 271 {
		t.Errorf("%+v, %v", r, err)
	}
	for _, bad := range []string{"", head, head + "\"INCR\",\"0\"\n", "ERR\nno\n"} {
		if _, err := parseRedisBenchmark(bad); err == nil {
			t.Errorf("%q is no error", bad)
		}
	}
}
