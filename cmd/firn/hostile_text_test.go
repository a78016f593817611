package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A server that means harm, or what is on the way to it, tells no terminal what to do.
func TestTextOfAServerTellsNoTerminalWhatToDo(t *testing.T) {
	const evil = `\u001b]0;owned\u0007\u001b[2J\r\u009b`
	for _, tt := range []struct {
		kind, body string
	}{
		{"application/json", `{"error":{"code":"not_ready","message":"` + evil + `"}}`},
		{"application/json", `{"code":"` + evil + `","message":"` + evil + `"}`},
		{"text/plain", "\x1b]0;owned\a\x1b[2J\r\x9b"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", tt.kind)
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, tt.body)
		}))
		t.Cleanup(server.Close)
		for _, args := range [][]string{
			{"id", "--server", server.URL},
			{"decode", "--server", server.URL, "1"},
			{"health", "--server", server.URL},
			{"cluster", "status", "--admin", server.URL},
			{"quorum", "status", "--admin", server.URL},
			{"sequencer", "list", "--admin", server.URL},
		} {
			var said bytes.Buffer
			if run(t.Context(), args, nil, strings.NewReader(""), io.Discard, &said) == statusOK {
				t.Errorf("%v succeeds", args)
			}
			if strings.ContainsAny(said.String(), "\x1b\r\a\u009b") {
				t.Errorf("%v says %q", args, said.String())
			}
		}
	}
}
