package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/firn-id/firn/internal/ops/load"
)

// A service that gives an ID again is found out: the report says which, and the exit status is 1.
func TestBenchFindsADuplicate(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		id := 1000 + calls.Add(1)
		if id == 1090 {
			id = 1007
		}
		fmt.Fprintf(w, `{"id":%d,"id_str":"%[1]d"}`, id)
	}))
	defer server.Close()
	var stdout, stderr bytes.Buffer
	args := []string{"bench", "--server", server.URL, "--count", "100", "--concurrency", "4"}
	if got := run(t.Context(), args, nil, strings.NewReader(""), &stdout, &stderr); got != statusFailure {
		t.Errorf("the exit status is %d, want %d", got, statusFailure)
	}
	if want := "duplicates  1 among 100 IDs, such as 1007\n"; !strings.Contains(stdout.String(), want) {
		t.Errorf("it prints\n%s\nwant %q in it", &stdout, want)
	}
	if want := "firn: 1 ID came more than once, such as 1007: "; !strings.HasPrefix(stderr.String(), want) {
		t.Errorf("it says %q, want %q", &stderr, want)
	}
}

// An interrupt ends a bench early, with what there is.
func TestBenchIsInterrupted(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancelCause(t.Context())
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := calls.Add(1)
		if n == 100 {
			interrupt(signalError{syscall.SIGINT})
		}
		fmt.Fprintf(w, `{"id":%d,"id_str":"%[1]d"}`, n)
	}))
	defer server.Close()
	o := &benchOptions{servers: []string{server.URL}, protocol: load.Protocols[0], concurrency: 2, batch: 1, json: true}
	plan, err := o.plan()
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	p := &program{stdout: &stdout, stderr: &stderr}
	if err := p.bench(ctx, o, plan); status(err) != statusInterrupted {
		t.Errorf("bench: %v, and the status %d; want %d", err, status(err), statusInterrupted)
	}
	var got benchResult
	if err := json.Unmarshal(stdout.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if !got.Interrupted || got.IDs < 90 || got.Failed != 0 || got.Duplicates.Checked != got.IDs {
		t.Errorf("it prints %s; want nearly 100 IDs, no error, and that it was interrupted", &stdout)
	}
	if stderr.Len() > 0 {
		t.Errorf("no terminal looks at %q", &stderr)
	}
}
