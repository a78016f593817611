package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/packed"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/httpapi"
	"github.com/firn-id/firn/internal/test/servertest"
)

// Only those who name the type of packed IDs get them; everybody else gets JSON, as ever.
func TestWhoGetsPackedIDs(t *testing.T) {
	h := newHandler(t, &servertest.Issuer{Same: true, IDs: firn.Default}, nil, nil)
	for accept, want := range map[string]bool{
		"":                                   false,
		"*/*":                                false,
		"text/html":                          false,
		"text/html, */*;q=0.8":               false,
		"application/*":                      false,
		"application/json":                   false,
		"application/octet-stream":           true,
		"Application/Octet-Stream":           true,
		" application/octet-stream ; q=0.1 ": true,
		"application/octet-stream;q=0":       false,
		"application/octet-stream;q=0.0, text/html":                             false,
		"application/octet-stream;q=high":                                       false,
		"application/octet-stream;q":                                            false,
		"application/octet-stream, application/json":                            true,
		"application/json, application/octet-stream":                            true,
		"application/json, application/octet-stream;q=0.9":                      false,
		"application/json;q=0.5, application/octet-stream;q=0.9":                true,
		"application/octet-stream;q=0.5, */*":                                   false,
		"*/*, application/octet-stream;q=0.5, application/json;q=0.1":           true,
		"application/json;q=0.1, application/*, application/octet-stream;q=0.5": true,
		"application/octet-streams":                                             false,
		"x application/octet-stream":                                            false,
	} {
		for path, size := range map[string]int{"/api/v1/id": 1, "/api/v1/ids": 1, "/api/v1/ids?count=3": 3} {
			w := call(h, http.MethodPost, path, "Accept", accept)
			got := w.Header().Get("Content-Type") == packed.Type
			if w.Code != 200 || got != want || got && w.Body.Len() != size*packed.Size ||
				got == json.Valid(w.Body.Bytes()) {
				t.Errorf("%s, Accept: %s = %d %v %q; want packed: %v", path, accept, w.Code, w.Header(), w.Body, want)
			}
			if header := w.Header(); header.Get("Vary") != "Accept" || header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s, Accept: %s has the headers %v", path, accept, header)
			}
		}
	}
	for _, lines := range [][]string{{"text/html", packed.Type}, {packed.Type + ";q=0.5", "application/json;q=0.4"}} {
		r := httptest.NewRequest(http.MethodPost, "http://localhost/api/v1/id", nil)
		r.Header["Accept"] = lines
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Header().Get("Content-Type") != packed.Type {
			t.Errorf("Accept: %q = %v", lines, w.Header())
		}
	}
}

// The largest batch arrives whole and in order, also where it is written in pieces, and says how long it is.
func TestLargestPackedBatch(t *testing.T) {
	for _, count := range []int{1, 4096, 4097, 5000, calls.MaxCount} {
		h := newHandler(t, &servertest.Issuer{IDs: firn.Default}, nil, nil)
		w := call(h, http.MethodPost, fmt.Sprintf("/api/v1/ids?count=%d", count), "Accept", packed.Type)
		ids := make([]firn.ID, count)
		if err := packed.Read(ids, w.Body.Bytes()); err != nil {
			t.Fatalf("count %d: %v", count, err)
		}
		if length := w.Header().Get("Content-Length"); length != fmt.Sprint(8*count) {
			t.Errorf("count %d has the length %s", count, length)
		}
		for i, id := range ids {
			if want := first + firn.ID(i); id != want {
				t.Fatalf("count %d: ID %d is %d, want %d", count, i, id, want)
			}
		}
	}
}

// Errors are JSON, whatever the caller accepts. So is the answer to a method that a call does not have.
func TestErrorsAreNotPacked(t *testing.T) {
	h := newHandler(t, &servertest.Issuer{Err: firn.ErrLifetime, IDs: firn.Default}, nil, nil)
	for target, want := range map[string]string{
		"POST /api/v1/id":           "503 lifetime",
		"POST /api/v1/ids?count=3":  "503 lifetime",
		"POST /api/v1/ids?count=0":  "400 bad_request",
		"POST /api/v1/id?count=2":   "400 bad_request",
		"GET /api/v1/id":            "405 method_not_allowed",
		"HEAD /api/v1/ids":          "405 method_not_allowed",
		"POST /api/v1/ids/12":       "405 method_not_allowed",
		"POST /api/v1/sequencers/x": "405 method_not_allowed",
	} {
		method, path, _ := strings.Cut(target, " ")
		w := call(h, method, path, "Accept", packed.Type)
		var got httpapi.Failure
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil ||
			fmt.Sprintf("%d %s", w.Code, got.Error.Code) != want {
			t.Errorf("%s = %d %s; want %s", target, w.Code, w.Body, want)
		}
		if kind := w.Header().Get("Content-Type"); kind != "application/json" ||
			w.Header().Get("Content-Length") != "" {
			t.Errorf("%s has the headers %v", target, w.Header())
		}
	}
}

// Who does not take a packed answer is cut off, as with JSON, and nothing is written after that.
func TestUntakenPackedAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := handlerWith(t, &servertest.Issuer{IDs: firn.Default}, nil, calls.Options{})
		r := httptest.NewRequest(http.MethodPost, fmt.Sprintf("http://localhost/api/v1/ids?count=%d", calls.MaxCount),
			http.NoBody)
		r.Header.Set("Accept", packed.Type)
		w := &reader{ResponseWriter: httptest.NewRecorder(), atOnce: 256 << 10}
		h.ServeHTTP(w, r)
		if !w.cut || w.taken > 300<<10 {
			t.Errorf("cut off: %v, after %d bytes", w.cut, w.taken)
		}
		if _, err := w.Write(make([]byte, 1)); err != os.ErrDeadlineExceeded {
			t.Error(err)
		}
	})
}
