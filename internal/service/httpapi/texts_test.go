package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/packed"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/httpapi"
	"github.com/firn-id/firn/internal/test/servertest"
)

const textsType = "application/json;ids=string"

// The parameter says how JSON has IDs, else Accept, else the server; whatever the answer is, its type says so.
func TestWhoGetsTexts(t *testing.T) {
	usual := newHandler(t, &servertest.Issuer{Same: true, IDs: firn.Twitter}, nil, nil)
	textual := httpapi.New(usual.Service, new(auth.Policy), httpapi.WithTexts())
	const numbers, texts, packed8 = "application/json", textsType, packed.Type
	for _, tt := range []struct{ query, accept, usual, textual string }{
		{"", "", numbers, texts},
		{"", "*/*", numbers, texts},
		{"", "application/json", numbers, texts},
		{"", "application/json;charset=utf-8", numbers, texts},
		{"", "application/json;ids=hex", numbers, texts},
		{"", "application/json;ids=string", texts, texts},
		{"", "Application/JSON; IDS=\"string\"", texts, texts},
		{"", "application/json;ids=number", numbers, numbers},
		{"", "application/json;ids=string, application/json", texts, texts},
		{"", "application/json, application/json;ids=string;q=0.9", numbers, texts},
		{"", "application/json;ids=string;q=0", numbers, texts},
		{"", "application/json;ids=string;q=much", numbers, texts},
		{"", "application/json;ids=number;q=0.5, application/json;ids=string", texts, texts},
		{"", "application/json;ids=number, application/json;ids=string;q=0.5", numbers, numbers},
		{"", "application/json;ids=string, */*", texts, texts},
		{"", "text/html;ids=string", numbers, texts},
		{"", "application/octet-stream", packed8, packed8},
		{"", "application/octet-stream, application/json;ids=string", packed8, packed8},
		{"", "application/octet-stream;q=0.5, application/json;ids=string", texts, texts},
		{"ids=string", "", texts, texts},
		{"ids=string", "application/json;ids=number", texts, texts},
		{"ids=string", "application/octet-stream", texts, texts},
		{"ids=number", "", numbers, numbers},
		{"ids=number", "application/json;ids=string", numbers, numbers},
	} {
		for h, want := range map[http.Handler]string{usual.Handler: tt.usual, textual: tt.textual} {
			for target, bodies := range map[string]map[string]string{
				"POST /api/v1/id": {
					numbers: `{"id":1152921504606846976,"id_str":"1152921504606846976"}`,
					texts:   `{"id":"1152921504606846976","id_str":"1152921504606846976"}`,
				},
				"POST /api/v1/ids": {
					numbers: `{"ids":[1152921504606846976],"ids_str":["1152921504606846976"]}`,
					texts:   `{"ids":["1152921504606846976"],"ids_str":["1152921504606846976"]}`,
				},
				"GET /api/v1/ids/5": {
					numbers: `{"id":5,"id_str":"5","time":"2010-11-04T01:42:54.657Z","unix_ms":1288834974657,` +
						`"tick":0,"datacenter":0,"node":0,"node_id":0,"sequence":5}`,
					texts: `{"id":"5","id_str":"5","time":"2010-11-04T01:42:54.657Z","unix_ms":1288834974657,` +
						`"tick":0,"datacenter":0,"node":0,"node_id":0,"sequence":5}`,
				},
				"GET /api/v1/times/1288834974658": {
					numbers: `{"first":4194304,"first_str":"4194304","last":8388607,"last_str":"8388607",` +
						`"time":"2010-11-04T01:42:54.658Z","unix_ms":1288834974658,"tick":1}`,
					texts: `{"first":"4194304","last":"8388607","first_str":"4194304","last_str":"8388607",` +
						`"time":"2010-11-04T01:42:54.658Z","unix_ms":1288834974658,"tick":1}`,
				},
			} {
				method, path, _ := strings.Cut(target, " ")
				want := want
				if want == packed8 && method == http.MethodGet { // parts and spans are always JSON
					want = call(h, method, path).Header().Get("Content-Type")
				}
				w := call(h, method, path+"?"+tt.query, "Accept", tt.accept)
				body := strings.TrimSuffix(w.Body.String(), "\n")
				if w.Code != 200 || w.Header().Get("Content-Type") != want || want != packed8 && body != bodies[want] {
					t.Errorf("%s?%s, Accept: %s = %d %v %s; want %s", target, tt.query, tt.accept, w.Code,
						w.Header(), body, want)
				}
				if w.Header().Get("Vary") != "Accept" || w.Header().Get("Cache-Control") != "no-store" {
					t.Errorf("%s?%s, Accept: %s has the headers %v", target, tt.query, tt.accept, w.Header())
				}
			}
		}
	}
}

// Whoever keeps numbers as doubles gets every ID, and as many different ones as it asked for; with numbers it does not.
func TestDoublesKeepTexts(t *testing.T) {
	h := newHandler(t, &servertest.Issuer{IDs: firn.Default}, nil, nil)
	for query, exact := range map[string]bool{"ids=string": true, "ids=number": false} {
		w := call(h, http.MethodPost, fmt.Sprintf("/api/v1/ids?count=%d&%s", calls.MaxCount, query))
		var got struct {
			IDs []any `json:"ids"` // float64 or string
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || len(got.IDs) != calls.MaxCount {
			t.Fatalf("%s: %d IDs, %v", query, len(got.IDs), err)
		}
		different := map[any]bool{}
		for _, id := range got.IDs {
			different[id] = true
		}
		if (len(different) == calls.MaxCount) != exact {
			t.Errorf("%s: of %d IDs %d are different", query, calls.MaxCount, len(different))
		}
	}
}

// Errors have one type, whatever the caller wants of IDs.
func TestErrorsAreNoTexts(t *testing.T) {
	h := newHandler(t, &servertest.Issuer{Err: firn.ErrLifetime, IDs: firn.Default}, nil, nil)
	for _, path := range []string{"/api/v1/id", "/api/v1/ids?count=3", "/api/v1/id?ids=text"} {
		w := call(h, http.MethodPost, path, "Accept", textsType)
		var got httpapi.Failure
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.Error.Code == "" ||
			w.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%s = %d %v %s", path, w.Code, w.Header(), w.Body)
		}
	}
}
