package main

import (
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// itself is this process, as a server that was started.
func itself() *process { return &process{command: &exec.Cmd{Process: &os.Process{Pid: os.Getpid()}}} }

// Every answer of a server is counted, and none that is bad.
func TestOverLoad(t *testing.T) {
	answer := func(w http.ResponseWriter) { _, _ = w.Write([]byte(`{"id":1}`)) }
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/api/v1/id" {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		answer(w)
	}))
	defer server.Close()
	r := &rival{process: itself(), address: server.Listener.Addr().String()}
	ask := overLoad(1, dialLean)
	for range 2 { // over the same connections
		got, err := ask(t.Context(), r, 3, 50*time.Millisecond)
		if err != nil || got.answers < 3 || got.perSecond <= 0 || got.perSecond > float64(got.answers)/0.05 ||
			got.p50 <= 0 || got.p999 < got.p50 {
			t.Errorf("%+v, %v", got, err)
		}
	}
	for what, wrong := range map[string]func(w http.ResponseWriter){
		"503":     func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) },
		"0 bytes": func(http.ResponseWriter) {},
	} {
		answer = wrong
		if _, err := overLoad(1, dialLean)(t.Context(), r, 3, time.Second); err == nil ||
			!strings.Contains(err.Error(), what) {
			t.Errorf("got %v, want %s", err, what)
		}
	}
}

func TestCPUTimeOfAProcess(t *testing.T) {
	if _, err := os.Stat("/proc/self/task"); err != nil {
		t.Skip(err)
	}
	before := itself().cpu()
	for began := cpuTime(); cpuTime()-began < 100*time.Millisecond; {
	}
	if used := itself().cpu() - before; used < 80_000 || used > 10_000_000 {
		t.Errorf("%v µs of CPU time were used, want 100 000 or more", used)
	}
	if gone := (&process{command: &exec.Cmd{Process: &os.Process{Pid: math.MaxInt32}}}).cpu(); !math.IsNaN(gone) {
		t.Errorf("a process that does not exist used %v µs", gone)
	}
}

func TestRedisBenchmark(t *testing.T) {
	const head = `"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms",` +
		`"max_latency_ms"` + "\n"
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
