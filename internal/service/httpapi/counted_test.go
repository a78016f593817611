package httpapi_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/httpapi"
	"github.com/firn-id/firn/internal/service/metrics"
	"github.com/firn-id/firn/internal/test/servertest"
)

// Each call is counted by its route and by what it came to, whoever was at fault; other answers are not.
func TestCallsAreCounted(t *testing.T) {
	m := servertest.NewMeter()
	h := handlerWith(t, &servertest.Issuer{Same: true, IDs: firn.Default}, example(t).Member, calls.Options{Meter: m})
	for _, target := range []string{
		"POST /api/v1/id", "POST /api/v1/id", "POST /api/v1/id?x", "POST /api/v1/ids?count=3",
		"POST /api/v1/ids?count=x",
		"GET /api/v1/ids/5", "HEAD /api/v1/ids/6", "GET /api/v1/ids/x", "DELETE /api/v1/id", "PUT /api/v1/ids/5",
		"GET /api/v1/cluster/log",
		"GET /livez", "GET /readyz", "GET /metrics", "GET /openapi.json", "GET /nowhere", "GET /api/v1/nowhere",
	} {
		method, path, _ := strings.Cut(target, " ")
		call(h, method, path)
	}
	call(h, "POST", "/api/v1/id", "Sec-Fetch-Site", "cross-site")
	m.Wants(t, map[string]int{
		"http POST /api/v1/id ok": 2, "http POST /api/v1/id bad_request": 1, "http POST /api/v1/id cross_origin": 1,
		"http POST /api/v1/ids ok": 1, "http POST /api/v1/ids bad_request": 1,
		"http GET /api/v1/ids/{id} ok": 2, "http GET /api/v1/ids/{id} bad_request": 1,
		"http other method_not_allowed": 2, "http GET /api/v1/cluster/log ok": 1,
	}, map[string]int{
		"http POST /api/v1/id": 4, "http POST /api/v1/ids": 2, "http GET /api/v1/ids/{id}": 3,
		"http other": 2,
	})
}

// What goes wrong is counted by its code, also when nobody is there to be told, or the handler panics.
func TestWhatGoesWrongIsCounted(t *testing.T) {
	m := servertest.NewMeter()
	h := handlerWith(t, &servertest.Issuer{Err: firn.ErrLifetime, IDs: firn.Default}, example(t).Member,
		calls.Options{Meter: m})
	call(h, "POST", "/api/v1/id")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "POST", "http://localhost/api/v1/id", nil))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "http://localhost/api/v1/sequencers",
		strings.NewReader(strings.Repeat(" ", 70_000))))
	func() {
		defer func() { _ = recover() }()
		h := handlerWith(t, panics{}, example(t).Member, calls.Options{Meter: m})
		call(h, "POST", "/api/v1/id")
		t.Error("it did not panic")
	}()
	m.Wants(t, map[string]int{
		"http POST /api/v1/id lifetime": 1, "http POST /api/v1/id gone": 1, "http POST /api/v1/id internal": 1,
		"http POST /api/v1/sequencers too_large": 1,
	}, map[string]int{"http POST /api/v1/id": 3, "http POST /api/v1/sequencers": 1})
}

type panics struct{ calls.Issuer }

// A body that is too long ends its connection, counted or not.
func TestTooLongABodyEndsTheConnection(t *testing.T) {
	for _, o := range []calls.Options{{}, {Meter: servertest.NewMeter()}} {
		s := httptest.NewServer(handlerWith(t, &servertest.Issuer{Same: true}, example(t).Member, o))
		response, err := http.Post(s.URL+"/api/v1/sequencers", "application/json",
			strings.NewReader(strings.Repeat(" ", 70_000)))
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != http.StatusRequestEntityTooLarge || !response.Close {
			t.Errorf("with %+v it answers %s, and closes: %v", o, response.Status, response.Close)
		}
		response.Body.Close()
		s.Close()
	}
}

// nothing takes an answer and keeps none of it.
type nothing struct{ header http.Header }

func (n nothing) Header() http.Header         { return n.header }
func (n nothing) Write(b []byte) (int, error) { return len(b), nil }
func (n nothing) WriteHeader(int)             {}

// Being counted costs no memory.
func TestCountingAllocatesNothing(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "http://localhost/api/v1/id", nil)
	w := nothing{http.Header{}}
	cost := func(o calls.Options) float64 {
		h := handlerWith(t, &servertest.Issuer{Same: true}, nil, o)
		return testing.AllocsPerRun(1000, func() { h.ServeHTTP(w, r) })
	}
	without, with := cost(calls.Options{}), cost(calls.Options{Meter: metrics.New(metrics.Build{})})
	if with > without {
		t.Errorf("a call allocates %v times, and %v when it is counted", without, with)
	}
}

func BenchmarkCounted(b *testing.B) {
	for _, bench := range []struct {
		name  string
		meter calls.Meter
	}{{"no", nil}, {"yes", metrics.New(metrics.Build{})}} {
		b.Run(bench.name, func(b *testing.B) {
			h := handlerWith(b, &servertest.Issuer{Same: true}, nil, calls.Options{Meter: bench.meter})
			r := httptest.NewRequest(http.MethodPost, "http://localhost/api/v1/id", nil)
			w := nothing{http.Header{}}
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(w, r)
			}
		})
	}
}

// Profiles are for administrators, and only where they are served.
func TestProfiles(t *testing.T) {
	trusted := newHandler(t, &servertest.Issuer{Same: true}, nil, nil)
	profiled := httpapi.New(trusted.Service, &auth.Policy{Trusted: true}, httpapi.WithProfiles())
	for _, tt := range []struct {
		h      http.Handler
		path   string
		status int
		has    string
	}{
		{profiled, "/debug/pprof/", 200, "goroutine"},
		{profiled, "/debug/pprof/goroutine?debug=1", 200, "TestProfiles"},
		{profiled, "/debug/pprof/heap", 200, ""},
		{profiled, "/debug/pprof/symbol", 200, "num_symbols"},
		{profiled, "/debug/pprof/cmdline", 404, ""},
		{trusted, "/debug/pprof/", 404, `"not_found"`},
		{httpapi.New(trusted.Service, new(auth.Policy), httpapi.WithProfiles()), "/debug/pprof/", 403, `"forbidden"`},
	} {
		w := call(tt.h, "GET", tt.path)
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.has) {
			t.Errorf("%s = %d %.200s, want %d %s", tt.path, w.Code, w.Body, tt.status, tt.has)
		}
	}
	r := httptest.NewRequest(http.MethodGet, "http://example.org/debug/pprof/", nil)
	w := httptest.NewRecorder()
	if profiled.ServeHTTP(w, r); w.Code != 403 || !strings.Contains(w.Body.String(), "cross_origin") {
		t.Errorf("under a name of another site it answers %d %s", w.Code, w.Body)
	}
	for _, from := range fromSites {
		r := httptest.NewRequest(http.MethodGet, "http://10.0.0.7:9080/debug/pprof/symbol", nil)
		r.Header.Set("User-Agent", from.agent)
		if from.site != "" {
			r.Header.Set("Sec-Fetch-Site", from.site)
		}
		w := httptest.NewRecorder()
		if profiled.ServeHTTP(w, r); w.Code != from.status {
			t.Errorf("from %q, %q, it answers %d %s", from.site, from.agent, w.Code, w.Body)
		}
	}
	s := httptest.NewUnstartedServer(profiled)
	s.Config.WriteTimeout = time.Second / 2 // as there is one for answers
	s.Start()
	defer s.Close()
	response, err := http.Get(s.URL + "/debug/pprof/profile?seconds=1")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if body, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK || len(body) == 0 {
		t.Errorf("a profile of 1 s = %s, %d bytes, %v", response.Status, len(body), err)
	}
}
