package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/httpapi"
	"github.com/firn-id/firn/internal/test/servertest"
)

func leafHandler(t *testing.T, m calls.Issuer, meter calls.Meter, p *auth.Policy, ids httpapi.LeafIDs) http.Handler {
	t.Helper()
	return httpapi.New(calls.New(servertest.Join(t), calls.Options{Default: m, Meter: meter}), p, httpapi.WithLeaf(ids))
}

// Callers of Leaf get digits and nothing else, which those who read JSON may take for JSON.
func TestLeaf(t *testing.T) {
	byKey := leafHandler(t, &servertest.Issuer{Same: true, IDs: firn.Twitter}, nil, new(auth.Policy),
		httpapi.LeafIDs{Served: true})
	one := leafHandler(t, &servertest.Issuer{Same: true, IDs: firn.Twitter}, nil, new(auth.Policy),
		httpapi.LeafIDs{Served: true, Snowflake: "default"})
	const text, asJSON, unknown = "text/plain; charset=utf-8", "application/json", "unknown_sequencer"
	for _, tt := range []struct {
		h              http.Handler
		target, accept string
		want           string // the type of the answer, or the code of an error
	}{
		{byKey, "GET /api/snowflake/get/default", "", text},
		{byKey, "POST /api/snowflake/get/default", "*/*", text},
		{byKey, "GET /api/segment/get/default", "text/plain, application/json, */*", text},
		{byKey, "GET /api/segment/get/default", "application/json, application/*+json", asJSON},
		{byKey, "GET /api/segment/get/default", "Application/JSON; q=0.5", asJSON},
		{byKey, "GET /api/snowflake/get/orders", "", unknown},
		{byKey, "GET /api/segment/get/orders", "", unknown},
		{byKey, "GET /api/snowflake/get/Orders", "", "bad_request"}, // no sequencer can have this name
		{one, "GET /api/snowflake/get/default", "", text},
		{one, "GET /api/snowflake/get/%E8%AE%A2%E5%8D%95", "", text}, // Leaf ignores the key
		{one, "GET /api/segment/get/orders", "", unknown},            // but not that of a segment
	} {
		method, path, _ := strings.Cut(tt.target, " ")
		w := call(tt.h, method, path, "Accept", tt.accept)
		if tt.want == text || tt.want == asJSON {
			h := w.Header()
			if w.Code != 200 || w.Body.String() != "1152921504606846976" || h.Get("Content-Type") != tt.want ||
				h.Get("Vary") != "Accept" || h.Get("Cache-Control") != "no-store" {
				t.Errorf("%s, Accept: %s = %d %v %q, want %s", tt.target, tt.accept, w.Code, h, w.Body, tt.want)
			}
			continue
		}
		var got httpapi.LeafFailure
		err := json.Unmarshal(w.Body.Bytes(), &got)
		if err != nil || w.Code != 500 || got.Status != 500 || got.Error != "Internal Server Error" ||
			string(got.Code) != tt.want || got.Message == "" || got.Path != path || got.Timestamp == 0 {
			t.Errorf("%s = %d %s, want %s: %v", tt.target, w.Code, w.Body, tt.want, err)
		}
	}
	plain := newHandler(t, &servertest.Issuer{Same: true, IDs: firn.Twitter}, nil, nil)
	if w := call(plain, "GET", "/api/snowflake/get/default"); w.Code != 404 {
		t.Errorf("without being asked to, it answers %d %s", w.Code, w.Body)
	}
	if w := call(byKey, "DELETE", "/api/snowflake/get/default"); w.Code != 405 ||
		w.Header().Get("Allow") != "GET, HEAD, POST" {
		t.Errorf("DELETE = %d %v", w.Code, w.Header())
	}
}

// Calls of Leaf are refused and counted as others are. What another node may answer is 503, as for everybody.
func TestLeafIsRefused(t *testing.T) {
	m := servertest.NewMeter()
	policy := &auth.Policy{Tokens: nobody{}}
	h := leafHandler(t, &servertest.Issuer{Same: true, IDs: firn.Twitter}, m, policy, httpapi.LeafIDs{Served: true})
	if w := call(h, "GET", "/api/snowflake/get/default"); w.Code != 401 || w.Header().
		Get("WWW-Authenticate") != "Bearer" || !strings.Contains(w.Body.String(), `"code":"unauthenticated"`) {
		t.Errorf("without a token = %d %v %s", w.Code, w.Header(), w.Body)
	}
	h = leafHandler(t, &servertest.Issuer{Err: peer.ErrNotReady}, m, new(auth.Policy), httpapi.LeafIDs{Served: true})
	if w := call(h, "GET", "/api/segment/get/default"); w.Code != 503 || w.Header().Get("Retry-After") != "1" ||
		!strings.Contains(w.Body.String(), `"status":503,"error":"Service Unavailable","code":"not_ready"`) {
		t.Errorf("not ready = %d %v %s", w.Code, w.Header(), w.Body)
	}
	h = leafHandler(t, &servertest.Issuer{IDs: firn.Twitter}, m, new(auth.Policy), httpapi.LeafIDs{Served: true})
	call(h, "GET", "/api/segment/get/default")
	call(h, "GET", "/api/segment/get/orders")
	m.Wants(t, map[string]int{
		"http GET /api/snowflake/get/{key} unauthenticated": 1, "http GET /api/segment/get/{key} not_ready": 1,
		"http GET /api/segment/get/{key} ok": 1, "http GET /api/segment/get/{key} unknown_sequencer": 1,
	}, map[string]int{"http GET /api/snowflake/get/{key}": 1, "http GET /api/segment/get/{key}": 3})
}

// fromSites are what GETs say of the page that has sent them, and their status where GET is not safe.
var fromSites = []struct {
	site, agent string
	status      int
}{
	{"cross-site", "Mozilla/5.0", 403},
	{"cross-site", "", 403},
	{"same-site", "Mozilla/5.0", 403},
	{"same-origin", "Mozilla/5.0", 200},
	{"none", "Mozilla/5.0", 200}, // a person has typed the address
	{"", "Mozilla/5.0", 403},     // over plain HTTP to another machine, from wherever
	{"", "Java/21", 200},
	{"", "", 200},
}

// A page of another site can't have its visitors' browsers use up IDs, though GET takes them here. A person may look.
func TestLeafCrossOrigin(t *testing.T) {
	f := &servertest.Issuer{IDs: firn.Twitter}
	h := leafHandler(t, f, nil, new(auth.Policy), httpapi.LeafIDs{Served: true})
	for _, from := range fromSites {
		site, status := from.site, from.status
		r := httptest.NewRequest(http.MethodGet, "http://ids.internal/api/snowflake/get/default", nil)
		r.Header.Set("User-Agent", from.agent)
		if site != "" {
			r.Header.Set("Sec-Fetch-Site", site)
		}
		before := f.Given()
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != status || (f.Given() > before) != (status == 200) {
			t.Errorf("from %q, %q, it answers %d %s, and has given %d IDs", site, from.agent, w.Code, w.Body,
				f.Given()-before)
		}
	}
}
