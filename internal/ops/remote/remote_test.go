package remote

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/admit/secretfile"
)

// An answer that is not from a firn server is an error that says so, never an ID.
func TestStrangeServers(t *testing.T) {
	for _, tt := range []struct {
		status     int
		body, want string // want: a part of the error
	}{
		{200, `{"ids":[1,2],"ids_str":["1","2"]}`, ""},
		{200, `{"ids_str":["1"]}`, "gives 1 IDs, not 2"},
		{200, `{"ids_str":["1","x"]}`, "not as a firn server does"},
		{200, `{}`, "gives 0 IDs, not 2"},
		{200, "<html>", "not as a firn server does"},
		{404, "404 page not found", "answers: 404 Not Found, and not as a firn server does"},
		{
			503, `{"error":{"code":"not_ready","message":"it has not joined yet"}}`,
			"answers: it has not joined yet (not_ready)",
		},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tt.status)
			fmt.Fprint(w, tt.body)
		}))
		ids := make([]firn.ID, 2)
		err := Client{Base: server.URL, HTTP: http.DefaultClient}.Fill(t.Context(), ids)
		server.Close()
		switch {
		case tt.want == "" && (err != nil || ids[0] != 1 || ids[1] != 2):
			t.Errorf("%s: %v, %v", tt.body, ids, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || ids[0] != 0):
			t.Errorf("%d %s: %v, %v; want %q", tt.status, tt.body, ids, err, tt.want)
		}
	}
}

func TestParseURL(t *testing.T) {
	for text, want := range map[string]string{
		"localhost:8080": "http://localhost:8080", "http://a/": "http://a", "https://a:1/b": "https://a:1/b",
		"": "", "http://": "", "ftp://a": "", "http://a?b": "", "http://a#b": "", "a b": "", "http://[": "",
	} {
		if got, err := ParseURL(text); got != want || (err == nil) != (want != "") {
			t.Errorf("ParseURL(%q) = %q, %v; want %q", text, got, err, want)
		}
	}
}

// A client that has found the node's secret sends it at once from then on, until the node has another one.
func TestKeepsTheSecret(t *testing.T) {
	first, second := auth.NewSecret().Token(), auth.NewSecret().Token()
	path, secret := filepath.Join(t.TempDir(), "secret"), ""
	var sent []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent = append(sent, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		if sent[len(sent)-1] != secret {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":{"code":"unauthenticated","message":"no"},"secret_file":%q}`, path)
			return
		}
		fmt.Fprint(w, "{}")
	}))
	defer server.Close()
	keeps := Client{Base: server.URL, HTTP: http.DefaultClient, Owner: new(atomic.Pointer[Client])}
	for _, secret = range []string{first, first, second} {
		if err := secretfile.Write(path, secret, []string{server.Listener.Addr().String()}); err != nil {
			t.Fatal(err)
		}
		if _, err := keeps.Call(t.Context(), http.MethodPost, "/", nil, &struct{}{}); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"", first, first, first, second}; !slices.Equal(sent, want) {
		t.Errorf("it sends %q, want %q", sent, want)
	}
}
