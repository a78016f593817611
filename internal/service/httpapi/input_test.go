package httpapi_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/httpapi"
	"github.com/firn-id/firn/internal/service/idtext"
	"github.com/firn-id/firn/internal/test/servertest"
)

func TestCounts(t *testing.T) {
	h := newHandler(t, &servertest.Issuer{Same: true}, nil, nil)
	for query, want := range map[string]int{
		"": 200, "?": 200, "?&": 200, "?count=1": 200, "?count=100000": 200,
		"?count=": 400, "?count=-1": 400, "?count=+1": 400, "?count=1.0": 400, "?count=1e3": 400, "?count=100001": 400,
		"?count=99999999999999999999": 400, "?count=1&count=1": 400, "?Count=1": 400, "?count=1;count=2": 400,
		"?count=%zz": 400,
	} {
		if w := call(h, "POST", "/api/v1/ids"+query); w.Code != want {
			t.Errorf("%q = %d %.200s, want %d", query, w.Code, w.Body, want)
		}
	}
}

func TestDecode(t *testing.T) {
	fine := firn.Default
	fine.Tick = time.Microsecond
	endless := firn.Layout{Epoch: firn.Default.Epoch, Tick: time.Second, TimeBits: 62}
	for _, tt := range []struct {
		name   string
		layout firn.Layout
		id     firn.ID
		time   string // or, without a digit in front, what the error says
		nodeID int64
	}{
		{"milliseconds", firn.Discord, 175928847299117063, "2016-04-30T11:18:25.796Z", 32},
		{"the epoch", firn.Default, 0, "2026-01-01T00:00:00.000Z", 0},
		{"microseconds", fine, 5 << 22, "2026-01-01T00:00:00.000005000Z", 0},
		{"too many bits", firn.JavaScript, firn.MaxID, "its 53 bits", 0},
		{"far future", endless, firn.MaxID / 2, "after the year 9999", 0},
		{"invalid", firn.Layout{}, 1, "time bits", 0},
	} {
		p, err := calls.Decode(idtext.Sequencer{Layout: tt.layout}, tt.id)
		if wantErr := tt.time[0] > '9'; wantErr {
			if err == nil || !strings.Contains(err.Error(), tt.time) {
				t.Errorf("%s: %+v, %v; want an error with %q", tt.name, p, err, tt.time)
			}
			continue
		}
		if err != nil || p.Time != tt.time || p.NodeID != tt.nodeID {
			t.Errorf("%s: %+v, %v; want %s, node ID %d", tt.name, p, err, tt.time, tt.nodeID)
		}
	}
}

// Whatever is asked for, the answer is IDs as many as the count says, the parts of the ID that
// was sent, what there is to see of the cluster, or an error in the usual shape.
func FuzzInput(f *testing.F) {
	for _, seed := range []string{
		"", "count=5", "count=100000", "count=1&x=2", "%zz", "count=;", "1234",
		"9223372036854775808", "../id", "a/b", "2026-11-21T03:25:36.425Z", "1795231536425", "at=2", "at=3",
		"from=2&follow=1",
	} {
		f.Add(seed)
	}
	log := newLog(f, cluster.PrepareJoin{Joiner: "a"})
	h := newHandler(f, &servertest.Issuer{Same: true, IDs: firn.Default}, log.Member, nil)
	f.Fuzz(func(t *testing.T, input string) {
		for _, r := range []http.Request{
			{Method: "POST", URL: &url.URL{Path: "/api/v1/id", RawQuery: input}},
			{Method: "POST", URL: &url.URL{Path: "/api/v1/ids", RawQuery: input}},
			{Method: "GET", URL: &url.URL{Path: "/api/v1/ids/" + input}},
			{Method: "GET", URL: &url.URL{Path: "/api/v1/times/" + input}},
			{Method: "GET", URL: &url.URL{Path: "/api/v1/cluster", RawQuery: input}},
			{Method: "GET", URL: &url.URL{Path: "/api/v1/cluster/value", RawQuery: input}},
			{Method: "HEAD", URL: &url.URL{Path: "/api/v1/cluster/log", RawQuery: input}},
			{Method: "GET", URL: &url.URL{Path: "/api/v1/sequencers/" + input}},
			{Method: "GET", URL: &url.URL{Path: "/api/v1/sequencers/orders/ids/" + input}},
			{Method: "POST", URL: &url.URL{Path: "/api/v1/sequencers/orders/detach", RawQuery: input}},
		} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, &r)
			var got struct {
				ID    int64     `json:"id"`
				IDStr string    `json:"id_str"`
				IDs   []firn.ID `json:"ids"`
				httpapi.Failure
			}
			if r.Method == http.MethodHead && w.Code == 200 {
				continue
			}
			if w.Code/100 == 3 { // a path that is not clean is sent to the one that is
				continue
			}
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatalf("%s %v = %d %q: %v", r.Method, r.URL, w.Code, w.Body, err)
			}
			switch {
			case w.Code != 200 && (w.Code < 400 || w.Code > 405 || got.Error.Code == "" || got.Error.Message == ""):
				t.Errorf("%s %v = %d %s", r.Method, r.URL, w.Code, w.Body)
			case w.Code == 200 && strings.HasPrefix(r.URL.Path, "/api/v1/ids/") && r.URL.Path != "/api/v1/ids/"+
				got.IDStr:
				t.Errorf("%v = %s", r.URL, w.Body)
			case w.Code == 200 && r.URL.Path == "/api/v1/ids":
				count, err := strconv.Atoi(r.URL.Query().Get("count"))
				if len(got.IDs) != count && (err == nil || len(got.IDs) != 1) {
					t.Errorf("%v gives %d IDs", r.URL, len(got.IDs))
				}
			}
		}
	})
}
