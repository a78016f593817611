package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/firn-id/firn/internal/core/cluster"
)

// Destroy says until when IDs may still appear, if some may.
func TestDestroyedText(t *testing.T) {
	for answer, want := range map[string]string{
		`{"name":"orders","destroyed":true}`: "orders is destroyed\n",
		`{"name":"orders","destroyed":true,"until":"2026-11-21T14:00:00Z","message":"m"}`: "orders is destroyed; " +
			"nodes that are out of reach may still make IDs of it until 2026-11-21T14:00:00Z\n",
		`{"name":"orders","destroyed":true,"message":"m"}`: "orders is destroyed; nodes that are out of reach may " +
			"still make IDs of it for a while\n",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodDelete || r.URL.Path != "/api/v1/sequencers/orders" {
				t.Errorf("it asks for %s %s", r.Method, r.URL)
			}
			w.WriteHeader(http.StatusAccepted)
			fmt.Fprint(w, answer)
		}))
		l := looked{url: server.URL}
		if status, out, errs := l.firn(t, "sequencer destroy orders --yes"); status != statusOK || out != want ||
			errs != "" {
			t.Errorf("%s: status %d, %q, %q; want %q", answer, status, out, errs, want)
		}
		if status, out, errs := l.firn(t, "sequencer destroy orders --json --yes"); status != statusOK ||
			out != answer || errs != "" {
			t.Errorf("%s: status %d, %q, %q", answer, status, out, errs)
		}
		server.Close()
	}
}

func TestParseAllocation(t *testing.T) {
	for text, want := range map[string]cluster.Allocation{
		"all": {}, "3": {Kind: cluster.AllocateCount, Count: 3}, "1%": {Kind: cluster.AllocatePercent, Percent: 1},
		"100%": {Kind: cluster.AllocatePercent, Percent: 100},
	} {
		if got, err := parseAllocation(text); got != want || err != nil {
			t.Errorf("%q is %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "-1", "0%", "101%", "%", "50 %", "half", "1.5", "99999999999999999999"} {
		if got, err := parseAllocation(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}
