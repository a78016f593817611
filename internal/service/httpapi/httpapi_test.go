package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/space"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/httpapi"
	"github.com/firn-id/firn/internal/test/servertest"
	"github.com/firn-id/firn/store/quorum"
)

const first = servertest.First

// handler serves whoever comes, an administrator too.
type handler struct {
	*httpapi.Handler
	*calls.Service
	bounded http.Handler // the same, within a budget
}

func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.bounded.ServeHTTP(w, r) }

// newHandler returns the handler of a member. Without one, nil, there is no other sequencer.
func newHandler(t testing.TB, m calls.Issuer, c *peer.Member, log *slog.Logger) handler {
	t.Helper()
	return handlerWith(t, m, c, calls.Options{Log: log})
}

// A call passes on the ID to exceed, of the query or else of the header.
func TestAfter(t *testing.T) {
	issuer := new(servertest.Issuer)
	h := newHandler(t, issuer, nil, nil)
	for _, path := range []string{"/api/v1/id", "/api/v1/ids"} {
		for _, c := range []struct {
			query, header string
			want          firn.ID
		}{
			{"", "", 0},
			{"?after=77", "", 77},
			{"?form=base62&after=78", "", 78},
			{"", "79", 79},
			{"?after=80", "81", 80},
		} {
			r := httptest.NewRequest(http.MethodPost, path+c.query, nil)
			r.Host = "127.0.0.1"
			if c.header != "" {
				r.Header.Set(httpapi.After, c.header)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != http.StatusOK || issuer.After() != c.want {
				t.Errorf("%s%s: %d, after %d; want %d", path, c.query, w.Code, issuer.After(), c.want)
			}
		}
	}
}

func handlerWith(t testing.TB, m calls.Issuer, c *peer.Member, o calls.Options) handler {
	t.Helper()
	if c == nil {
		c = servertest.Join(t)
	}
	o.Default = m
	s := calls.New(c, o)
	h := withMetrics(s, &auth.Policy{Trusted: true})
	return handler{h, s, httpapi.NewBudget(s, 100).Handler(h)}
}

// withMetrics returns a handler whose metrics are in their own answer: /metrics?again=N asks N times more within it,
// before anything is answered.
func withMetrics(s *calls.Service, e *auth.Policy, options ...httpapi.Option) (h *httpapi.Handler) {
	metrics := func(w http.ResponseWriter, r *http.Request) {
		if again, _ := strconv.Atoi(r.FormValue("again")); again > 0 {
			inner := httptest.NewRequest(r.Method, fmt.Sprintf("http://localhost/metrics?again=%d", again-1), nil)
			inner.Header = r.Header
			httpapi.NewBudget(s, 1).Handler(h).ServeHTTP(w, inner)
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		fmt.Fprintln(w, "firn_ready 1")
	}
	h = httpapi.New(s, e, append(options, httpapi.WithMetrics(http.HandlerFunc(metrics)))...)
	return h
}

func call(h http.Handler, method, target string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "http://localhost"+target, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// Every path, with the answer in full.
func TestAnswers(t *testing.T) {
	h := newHandler(t, &servertest.Issuer{Same: true, IDs: firn.Twitter}, nil, nil)
	for _, tt := range []struct {
		method, target string
		status         int
		body           string
	}{
		{"POST", "/api/v1/id", 200, `{"id":1152921504606846976,"id_str":"1152921504606846976"}`},
		{"POST", "/api/v1/ids", 200, `{"ids":[1152921504606846976],"ids_str":["1152921504606846976"]}`},
		{
			"POST", "/api/v1/ids?count=2", 200,
			`{"ids":[1152921504606846976,1152921504606846977],"ids_str":["1152921504606846976",` +
				`"1152921504606846977"]}`,
		},
		{"GET", "/api/v1/ids/1541815603606036480", 200, `{"id":1541815603606036480,"id_str":"1541815603606036480",` +
			`"time":"2022-06-28T16:07:40.105Z","unix_ms":1656432460105,"tick":367597485448,"datacenter":11,"node":26,` +
			`"node_id":378,"sequence":0}`},
		{"GET", "/livez", 200, "ok"},
		{"GET", "/readyz", 200, "ok"},
		{"HEAD", "/readyz", 200, "ok"}, // net/http leaves the body out

		{
			"POST", "/api/v1/id?count=2", 400,
			`{"error":{"code":"bad_request","message":"unknown parameter \"count\"; want form, ids, after; for ` +
				`several ` +
				`IDs ` +
				`POST /api/v1/ids?count=N"}}`,
		},
		{
			"POST", "/api/v1/ids?count=0", 400,
			`{"error":{"code":"bad_request","message":"count is \"0\"; want a number from 1 to 100000"}}`,
		},
		{
			"POST", "/api/v1/ids?coutn=5", 400,
			`{"error":{"code":"bad_request","message":"unknown parameter \"coutn\"; want count, form, ids, after"}}`,
		},
		{
			"GET", "/api/v1/ids/12x", 400,
			`{"error":{"code":"bad_request","message":"\"12x\" is not an ID in any form; want decimal digits, 16 ` +
				`characters of hex, 13 of base32, 11 of base62, 8 to 11 of base58 (say so if there are fewer), a ` +
				`UUID, or a text such as ord_038aj5d574005, ORD117465411174400005, 117465411174400005-32 or ` +
				`1-0Z8XHYq9t0Y"}}`,
		},
		{
			"POST", "/nowhere", 404,
			`{"error":{"code":"not_found","message":"there is nothing at \"/nowhere\"; try POST /api/v1/id, POST ` +
				`/api/v1/ids?count=N or GET /api/v1/ids/{id}"}}`,
		},
		{
			"GET", "/api/v1/id", 405,
			`{"error":{"code":"method_not_allowed","message":"the method \"GET\" is not allowed for \"/api/v1/id\"; ` +
				`want POST"}}`,
		},
		{
			"DELETE", "/api/v1/ids/12", 405,
			`{"error":{"code":"method_not_allowed","message":"the method \"DELETE\" is not allowed for ` +
				`\"/api/v1/ids/12\"; want GET, HEAD"}}`,
		},
	} {
		w := call(h, tt.method, tt.target)
		if body := strings.TrimSuffix(w.Body.String(), "\n"); w.Code != tt.status || body != tt.body {
			t.Errorf("%s %s = %d %s\nwant %d %s", tt.method, tt.target, w.Code, body, tt.status, tt.body)
		}
		wantType := "application/json"
		if tt.body == "ok" {
			wantType = "text/plain; charset=utf-8"
		}
		if got := w.Header(); got.Get("Content-Type") != wantType || got.Get("Cache-Control") != "no-store" {
			t.Errorf("%s %s has the headers %v", tt.method, tt.target, got)
		}
		if allow := w.Header().Get("Allow"); (allow != "") != (tt.status == 405) {
			t.Errorf("%s %s has Allow: %q", tt.method, tt.target, allow)
		}
	}
}

// The largest batch arrives whole and in order, also where it is written in pieces.
func TestLargestBatch(t *testing.T) {
	for _, count := range []int{1, 700, 1700, 1701, calls.MaxCount} {
		h := newHandler(t, &servertest.Issuer{IDs: firn.Default}, nil, nil)
		w := call(h, "POST", fmt.Sprintf("/api/v1/ids?count=%d", count))
		var got struct {
			IDs  []firn.ID `json:"ids"`
			Strs []firn.ID `json:"ids_str"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || len(got.IDs) != count || len(got.Strs) != count {
			t.Fatalf("count %d: %d and %d IDs, %v", count, len(got.IDs), len(got.Strs), err)
		}
		for i := range count {
			if want := first + firn.ID(i); got.IDs[i] != want || got.Strs[i] != want {
				t.Fatalf("count %d: ID %d is %d and %d, want %d", count, i, got.IDs[i], got.Strs[i], want)
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	notReady := fmt.Errorf("%w: it has not joined yet", peer.ErrNotReady)
	for _, tt := range []struct {
		err    error
		status int
		code   string
	}{
		{notReady, 503, "not_ready"},
		{fmt.Errorf("waiting: %w", context.DeadlineExceeded), 503, "overloaded"},
		{firn.ErrLifetime, 503, "lifetime"},
		{errors.New("surprise"), 500, "internal"},
	} {
		var log bytes.Buffer
		h := newHandler(t, &servertest.Issuer{Err: tt.err, IDs: firn.Default}, nil,
			slog.New(slog.NewTextHandler(&log, nil)))
		for _, target := range []string{"POST /api/v1/id", "POST /api/v1/ids?count=3"} {
			method, path, _ := strings.Cut(target, " ")
			w := call(h, method, path)
			var got httpapi.Failure
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != tt.status ||
				string(got.Error.Code) != tt.code || got.Error.Message == "" {
				t.Errorf("%s with %v = %d %s", target, tt.err, w.Code, w.Body)
			}
			if retry := w.Header().Get("Retry-After"); (retry == "1") != (tt.status == 503) {
				t.Errorf("%s with %v has Retry-After: %q", target, tt.err, retry)
			}
		}
		if w := call(h, "GET", "/readyz"); w.Code != tt.status {
			t.Errorf("/readyz with %v = %d %s", tt.err, w.Code, w.Body)
		}
		if w := call(h, "GET", "/livez"); w.Code != 200 {
			t.Errorf("/livez with %v = %d", tt.err, w.Code)
		}
		if (log.Len() > 0) != (tt.status == 500) {
			t.Errorf("%v was logged as %q", tt.err, &log)
		}
	}
}

// A client that goes away is not logged, and nothing is written to it.
func TestGoneClient(t *testing.T) {
	var log bytes.Buffer
	h := newHandler(t, &servertest.Issuer{Err: context.Canceled}, nil, slog.New(slog.NewTextHandler(&log, nil)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "POST", "http://localhost/api/v1/id", nil))
	if log.Len() > 0 || w.Body.Len() > 0 {
		t.Errorf("it was logged as %q and told %q", &log, w.Body)
	}
}

// While draining, IDs are given, but nobody should ask for them here.
func TestDrain(t *testing.T) {
	h := newHandler(t, &servertest.Issuer{Same: true}, nil, nil)
	if w := call(h, "POST", "/api/v1/id"); w.Header().Get("Connection") != "" {
		t.Errorf("before draining: %v", w.Header())
	}
	h.Drain()
	if w := call(h, "GET", "/readyz"); w.Code != 503 || !strings.Contains(w.Body.String(), "shutting down") {
		t.Errorf("/readyz = %d %s", w.Code, w.Body)
	}
	if w := call(h, "GET", "/livez"); w.Code != 200 {
		t.Errorf("/livez = %d", w.Code)
	}
	w := call(h, "POST", "/api/v1/id")
	if w.Code != 200 || w.Header().Get("Connection") != "close" {
		t.Errorf("POST /api/v1/id = %d %v", w.Code, w.Header())
	}
}

// A page of another site can't have its visitors' browsers use up IDs.
func TestCrossOrigin(t *testing.T) {
	h := newHandler(t, &servertest.Issuer{Same: true, IDs: firn.Default}, nil, nil)
	for _, tt := range []struct {
		target, site string
		status       int
	}{
		{"POST /api/v1/id", "cross-site", 403},
		{"POST /api/v1/ids", "cross-site", 403},
		{"POST /api/v1/id", "same-origin", 200},
		{"GET /api/v1/ids/5", "cross-site", 200},
	} {
		method, path, _ := strings.Cut(tt.target, " ")
		if w := call(h, method, path, "Sec-Fetch-Site", tt.site); w.Code != tt.status {
			t.Errorf("%s, %s = %d %s, want %d", tt.target, tt.site, w.Code, w.Body, tt.status)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	h := newHandler(b, &servertest.Issuer{Same: true}, nil, nil)
	r := httptest.NewRequest(http.MethodPost, "http://localhost/api/v1/id", nil)
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
}

// Where nothing but its address keeps strangers from administering, a browser that was sent there under another name
// gets nothing.
func TestHost(t *testing.T) {
	trusting := newHandler(t, &servertest.Issuer{Same: true, IDs: firn.Default}, nil, nil)
	public := httpapi.New(trusting.Service, new(auth.Policy))
	for _, tt := range []struct {
		h      http.Handler
		host   string
		status int
	}{
		{trusting, "localhost:9080", 200},
		{trusting, "127.0.0.1:9080", 200},
		{trusting, "[::1]:9080", 200},
		{trusting, "example.org:9080", 403},
		{trusting, "localhost.example.org", 403},
		{public, "example.org", 200},
	} {
		for _, target := range []string{"POST /api/v1/id", "GET /api/v1/ids/5"} {
			method, path, _ := strings.Cut(target, " ")
			r := httptest.NewRequest(method, path, nil)
			r.Host = tt.host
			w := httptest.NewRecorder()
			tt.h.ServeHTTP(w, r)
			if w.Code != tt.status || tt.status == 403 && !strings.Contains(w.Body.String(), `"cross_origin"`) {
				t.Errorf("%s of %s = %d %s, want %d", target, tt.host, w.Code, w.Body, tt.status)
			}
		}
	}
}

// A node that is not ready says first that it gives no IDs, and then why, and what to do: never an error of its store.
func TestReadySaysWhatToDo(t *testing.T) {
	lost := servertest.ThreeMachines()
	lost.State.Majority = false
	lost.State.Machines[1].Role, lost.State.Machines[1].Err = quorum.Voter, "no answer"
	for name, tt := range map[string]struct {
		options calls.Options
		want    string
	}{
		"alone": {
			calls.Options{},
			`"This node gives no IDs: the horizon is reached. Run firn doctor on that machine. ` +
				`https://github.com/firn-id/firn/blob/main/docs/problems.md#not_ready"`,
		},
		"alone, on a disk that is nearly full": {
			calls.Options{Disk: func() (space.Room, bool) {
				return space.Room{Free: 1 << 20, Share: 0.01, Inodes: 1}, true
			}},
			`"This node gives no IDs: the horizon is reached. Run firn doctor on that machine. ` +
				`https://github.com/firn-id/firn/blob/main/docs/problems.md#not_ready"`,
		},
		"in a quorum without a majority": {
			calls.Options{Quorum: lost},
			`"This node gives no IDs: 2 of 3 machines do not answer (ids-3, ids-2). Start one of them, or mend the ` +
				`network to them. https://github.com/firn-id/firn/blob/main/docs/problems.md#quorum"`,
		},
	} {
		tt.options.Default = &servertest.Issuer{Err: fmt.Errorf("%w: the horizon is reached", peer.ErrNotReady)}
		s := calls.New(servertest.Waiting(t, "no answer"), tt.options)
		h := httpapi.New(s, new(auth.Policy))
		if w := call(h, "GET", "/readyz"); w.Code != 503 || !strings.Contains(w.Body.String(), `"message":`+tt.want) ||
			w.Header().Get("Retry-After") != "1" {
			t.Errorf("%s: /readyz = %d %s, want %s", name, w.Code, w.Body, tt.want)
		}
	}
}

// discarded is an answer that nobody reads.
type discarded struct{ header http.Header }

func (d discarded) Header() http.Header         { return d.header }
func (d discarded) Write(b []byte) (int, error) { return len(b), nil }
func (d discarded) WriteHeader(int)             {}

// BenchmarkBatch writes 1,000 IDs an answer.
func BenchmarkBatch(b *testing.B) {
	h := newHandler(b, &servertest.Issuer{IDs: firn.Default}, nil, nil)
	for _, form := range []string{"", "decimal", "hex", "base32", "base58", "base62", "uuid"} {
		b.Run("form="+form, func(b *testing.B) {
			target := "/api/v1/ids?count=1000"
			if form != "" {
				target += "&form=" + form
			}
			r := httptest.NewRequest(http.MethodPost, "http://localhost"+target, nil)
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); w.Code != http.StatusOK {
				b.Fatal(w.Body)
			}
			for b.Loop() {
				h.ServeHTTP(discarded{http.Header{}}, r)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/ID")
		})
	}
}
