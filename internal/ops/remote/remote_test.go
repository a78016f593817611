package remote

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/firn-id/firn"
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
