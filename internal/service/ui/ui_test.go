package ui_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/ui"
	"github.com/firn-id/firn/internal/test/servertest"
)

func two(t *testing.T) *servertest.Told {
	t.Helper()
	f := servertest.Tell(t, "a")
	f.SetPulses(map[string]peer.Pulse{"a": {Owner: "host-a"}})
	f.Apply(cluster.PrepareJoin{Joiner: "a"}, cluster.PrepareJoin{Joiner: "b"}, cluster.NotifyWatchers{Joiner: "b"},
		cluster.AcceptJoin{Joiner: "b"},
		cluster.CreateSequencer{Sequencer: "orders", Definition: cluster.Define(firn.Default)},
		cluster.Attach{Sequencer: "orders", Member: "b"})
	return f
}

// judged waits until the member has judged its clock, which is alone.
func judged(f *servertest.Told) {
	for f.Vitals().Verdict == "" {
		time.Sleep(1500 * time.Millisecond)
	}
}

var trusted = &auth.Policy{Trusted: true}

func dashboard(f *servertest.Told, e *auth.Policy) (*ui.Handler, *calls.Service) {
	s := calls.New(f.Member, calls.Options{Default: new(servertest.Issuer)})
	return ui.New(s, e, ui.Options{}), s
}

func get(h http.Handler, target string, headers ...string) *httptest.ResponseRecorder {
	method, path, _ := strings.Cut(target, " ")
	r := httptest.NewRequest(method, "http://localhost"+path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// Whatever the page and its scripts load is there, by a policy that lets nothing else in, and is sent again only when
// it has changed.
func TestEveryFile(t *testing.T) {
	h, _ := dashboard(two(t), new(auth.Policy))
	seen := map[string]bool{}
	loads := regexp.MustCompile(`(?:<link [^>]*href|<script [^>]*src)="([^"]*)"|import .*from "./([^"]*)"`)
	for todo := []string{""}; len(todo) > 0; todo = todo[1:] {
		name := todo[0]
		if seen[name] {
			continue
		}
		seen[name] = true
		w := get(h, "GET "+ui.Root+name)
		head := w.Header()
		if w.Code != 200 || w.Body.Len() == 0 || head.Get("Cache-Control") != "no-cache" ||
			head.Get("X-Content-Type-Options") != "nosniff" ||
			head.Get("Content-Type") == "" || head.Get("X-Frame-Options") != "DENY" ||
			head.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%q: %d %v", name, w.Code, head)
		}
		policy := head.Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none';") || strings.Contains(policy, "unsafe") ||
			!strings.Contains(policy, "frame-ancestors 'none'") {
			t.Errorf("%q has the policy %s", name, policy)
		}
		if again := get(h, "GET "+ui.Root+name, "If-None-Match",
			head.Get("ETag")); again.Code != http.StatusNotModified || again.Body.Len() > 0 {
			t.Errorf("%q again: %d with %d bytes", name, again.Code, again.Body.Len())
		}
		for _, m := range loads.FindAllStringSubmatch(w.Body.String(), -1) {
			todo = append(todo, m[1]+m[2])
		}
		for _, link := range regexp.MustCompile(`https?://[^"'\s]*`).FindAllString(w.Body.String(), -1) {
			if link != "http://www.w3.org/2000/svg" &&
				!strings.HasPrefix(link, "https://github.com/firn-id/firn/blob/main/docs/") {
				t.Errorf("%q has a link to %q", name, link)
			}
		}
	}
	if len(seen) < 10 {
		t.Errorf("only %v were seen", seen)
	}
	page, err := os.ReadDir("page")
	if err != nil || len(page) != len(seen) {
		t.Errorf("%d files are embedded, and %d are used: %v", len(page), len(seen), err)
	}
}

// What there is not, and who may not, is told.
func TestRefusals(t *testing.T) {
	const app, slow = "a token", "a token for one call"
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	if err := os.WriteFile(file, []byte("- {name: app, sha256: "+auth.Hash(app)+", allow: [issue]}\n"+
		"- {name: slow, sha256: "+auth.Hash(slow)+", allow: [admin], rate: 0.001}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens, err := auth.OpenTokens(file, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	open, _ := dashboard(two(t), trusted)
	public, _ := dashboard(two(t), new(auth.Policy))
	closed, _ := dashboard(two(t), &auth.Policy{Tokens: tokens, Trusted: true})
	for _, tt := range []struct {
		h       http.Handler
		target  string
		headers []string
		status  int
		says    string
	}{
		{open, "GET /ui/nothing", nil, 404, "the dashboard is at /ui/"},
		{open, "GET /ui/index.html", nil, 404, ""},
		{open, "GET /ui/page/ui.css", nil, 404, ""},
		{open, "GET /ui/../ui.go", nil, 404, ""},
		{open, "POST /ui/", nil, 405, "want GET"},
		{open, "DELETE /ui/stream", nil, 405, "want GET"},
		{open, "HEAD /ui/stream", nil, 200, ""},
		{public, "GET /ui/stream", nil, 403, `"code":"forbidden"`},
		{closed, "GET /ui/", nil, 200, "<title>firn"},
		{closed, "GET /ui/stream", nil, 401, `"code":"unauthenticated"`},
		{closed, "GET /ui/stream", []string{"Authorization", "Bearer nobody's"}, 401, `"code":"unauthenticated"`},
		{closed, "GET /ui/stream", []string{"Authorization", "Bearer " + app}, 403, "allows issue, not admin"},
		{closed, "HEAD /ui/stream", []string{"Authorization", "Bearer " + slow}, 200, ""},
		{closed, "HEAD /ui/stream", []string{"Authorization", "Bearer " + slow}, 429, `"code":"rate_limited"`},
	} {
		w := get(tt.h, tt.target, tt.headers...)
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.says) ||
			w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s = %d %.200s; want %d %s", tt.target, w.Code, w.Body, tt.status, tt.says)
		}
	}
	r := httptest.NewRequest(http.MethodGet, "http://firn.example.org/ui/", nil)
	w := httptest.NewRecorder()
	open.ServeHTTP(w, r)
	if w.Code != http.StatusForbidden {
		t.Errorf("under a name that others can point here: %d", w.Code)
	}
}

// watching reads the events of a stream.
type watching struct {
	t     *testing.T
	lines *bufio.Scanner
	end   context.CancelFunc
	done  chan struct{}
}

// pipe is a response that is read while it is written.
type pipe struct {
	*httptest.ResponseRecorder
	w *io.PipeWriter
}

func (p pipe) Write(b []byte) (int, error) { return p.w.Write(b) }
func (p pipe) FlushError() error           { return nil }

func watch(t *testing.T, h http.Handler) *watching {
	t.Helper()
	r, w := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	s := &watching{t: t, lines: bufio.NewScanner(r), done: make(chan struct{})}
	s.end = func() {
		cancel()
		r.Close() // whatever was written and not read
	}
	s.lines.Buffer(nil, 1<<20)
	go func() {
		defer close(s.done)
		defer w.Close()
		h.ServeHTTP(pipe{httptest.NewRecorder(), w},
			httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/ui/stream", nil))
	}()
	return s
}

// presets are the layouts in the first event.
var presets = regexp.MustCompile(`"layouts":.*"twitter":.*?}},`)

// event returns the next event that is no beat, and nothing at the end.
func (s *watching) event() string {
	for {
		var event strings.Builder
		for s.lines.Scan() && s.lines.Text() != "" {
			event.WriteString(s.lines.Text() + "\n")
		}
		if !strings.HasPrefix(event.String(), "event: beat\n") {
			return presets.ReplaceAllString(event.String(), "")
		}
	}
}

// next wants the next event that is no beat to be this one.
func (s *watching) next(want string) {
	s.t.Helper()
	switch have := s.event(); have {
	case want:
	case "":
		s.t.Fatalf("it has ended; want %s", want)
	default:
		s.t.Errorf("have %swant %s", have, want)
	}
}

const definition = `{"nodes":1024,"allocation":{"kind":"all"},"epoch":"2026-01-01T00:00:00Z","tick":"1ms",` +
	`"time_bits":41,"datacenter_bits":0,"node_bits":10,"sequence_bits":12,"node_lowest":false}`

// The first event has everything, and each later one what has changed: who lives is known once the store has told, and
// somebody who has come since is not taken for dead.
func TestStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := two(t)
		judged(f)
		h, s := dashboard(f, trusted)
		w := watch(t, h)
		defer w.end()
		w.next(`event: view
data: {"facts":{"member":"a","position":7,"entries":6,"not_ready":""},` +
			`"may":true,"members":{"a":{"watches":"b","joined":2,"state":"not_ready","fresh":true},` +
			`"b":{"watches":"a","joined":5,"state":"unknown","fresh":false}},"problems":[],"reset":true,` +
			`"sequencers":{"orders":{"given":null,"here":{"state":"none"},"nodes":{"0":"b"},` +
			`"origin":{"definition":` + definition + `,"created":6,"capacity":1024,"until":"2095-09-07T15:47:35.552Z","rate":4096000},"rules":{"allocation":{"kind":"all"},"drained":[]},"waiting":[]}},"vitals":{"a":{"rate":0,"given":0,"offset":0}}}
`)
		w.next("event: view\ndata: " +
			`{"members":{"a":{"watches":"b","joined":2,"state":"not_ready","fresh":true,"owner":"host-a"},` +
			`"b":{"watches":"a","joined":5,"state":"gone","fresh":false}},` +
			`"problems":[{"level":"warning","kind":"gone","effect":"member b is gone","cause":"its pulse has ended, ` +
			`and it is still in the cluster","do":"If nobody stopped it, start it again; the other members remove it ` +
			`from the cluster.","link":"https://github.com/firn-id/firn/blob/main/docs/problems.md#gone",` +
			`"members":["b"]}],"sequencers":{"orders":{"given":0}}}` + "\n")
		f.Apply(cluster.PrepareJoin{Joiner: "c"})
		w.next("event: view\ndata: " +
			`{"facts":{"member":"a","position":8,"entries":7,"not_ready":""},"joins":{"c":{"target":"a",` +
			`"phase":"prepared","state":"new","fresh":false}}}` + "\n")
		f.Apply(cluster.DestroySequencer{Sequencer: "orders"}, cluster.CreateSequencer{
			Sequencer:  "orders",
			Definition: cluster.Define(firn.Default),
		}, cluster.Attach{Sequencer: "orders", Member: "b"})
		w.next("event: view\ndata: " + `{"facts":{"member":"a","position":11,"entries":10,"not_ready":""},` +
			`"sequencers":{"orders":{"given":0,"here":{"state":"none"},"nodes":{"0":"b"},` +
			`"origin":{"definition":` + definition +
			`,"created":10,"capacity":1024,"until":"2095-09-07T15:47:35.552Z","rate":4096000},` +
			`"rules":{"allocation":{"kind":"all"},"drained":[]},"waiting":[]}}}` + "\n")
		f.Apply(cluster.Leave{Member: "b"}, cluster.DestroySequencer{Sequencer: "orders"})
		w.next("event: view\ndata: " +
			`{"facts":{"member":"a","position":13,"entries":12,"not_ready":""},"joins":{"c":null},` +
			`"members":{"a":{"joined":2,"state":"not_ready","fresh":true,"owner":"host-a"},"b":null},"problems":[],` +
			`"sequencers":{"orders":null}}` + "\n")
		f.Apply(cluster.CreateSequencer{Sequencer: "origin", Definition: cluster.Define(firn.Default)})
		w.next("event: view\ndata: " + `{"facts":{"member":"a","position":14,"entries":13,"not_ready":""},` +
			`"sequencers":{"origin":{"given":0,"here":{"state":"none"},` +
			`"origin":{"definition":` + definition +
			`,"created":14,"capacity":1024,"until":"2095-09-07T15:47:35.552Z","rate":4096000},` +
			`"rules":{"allocation":{"kind":"all"},"drained":[]},"waiting":[]}}}` + "\n")
		f.Apply(cluster.DestroySequencer{Sequencer: "origin"})
		w.next("event: view\ndata: " +
			`{"facts":{"member":"a","position":15,"entries":14,"not_ready":""},"sequencers":{"origin":null}}` + "\n")
		synctest.Wait() // until the read that is due has ended
		f.Fail(errors.New("the store does not answer"))
		w.next("event: view\ndata: " +
			`{"facts":{"member":"a","position":15,"entries":14,"not_ready":"","store":{"reached":false,` +
			`"as_of":"2000-01-01T00:00:04.5Z","answered":"2000-01-01T00:00:04.5Z","why":"the store does not ` +
			`answer"}},` +
			`"problems":[{"level":"error","kind":"store","effect":"host-a gives no IDs",` +
			`"since":"2000-01-01T00:00:04.5Z","cause":"the store has not answered it for 4s","do":"Start the store, ` +
			`or mend the network between it and this node.",` +
			`"link":"https://github.com/firn-id/firn/blob/main/docs/problems.md#store","detail":"the store does not ` +
			`answer"}]}` + "\n")
		s.Drain()
		w.next("event: end\ndata: " +
			`{"error":{"code":"not_ready","message":"not ready to make IDs: it is shutting down"}}` + "\n")
		<-w.done
	})
}

// A counter has no node IDs, no layout and no time, also one with the name of a sequencer that had.
func TestStreamOfACounter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := two(t)
		judged(f)
		h, s := dashboard(f, trusted)
		w := watch(t, h)
		defer w.end()
		for range 2 { // before and after the store has told
			w.event()
		}
		counter := cluster.Definition{Kind: cluster.Counter, After: 41, Max: 2000, Prefix: "inv"}
		f.Apply(cluster.CreateSequencer{Sequencer: "invoices", Definition: counter})
		const about = `"here":{"state":"none"},"origin":{"definition":` +
			`{"kind":"counter","after":"41","max":"2000","prefix":"inv"},"created":`
		w.next("event: view\ndata: " + `{"facts":{"member":"a","position":8,"entries":7,"not_ready":""},` +
			`"sequencers":{"invoices":{"given":0,` + about + `8}}}}` + "\n")
		f.Apply(cluster.DestroySequencer{Sequencer: "orders"},
			cluster.CreateSequencer{Sequencer: "orders", Definition: counter})
		w.next("event: view\ndata: " + `{"facts":{"member":"a","position":10,"entries":9,"not_ready":""},` +
			`"sequencers":{"orders":{"given":0,` + about + `10}}}}` + "\n")
		s.Drain()
		w.event()
		<-w.done
	})
}

// Whoever looks sees the quorum, also while the node waits for it and has not joined; what nobody looks at is left out.
func TestStreamOfAQuorum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := servertest.Waiting(t, "it waits for ids-2:7420")
		q := servertest.ThreeMachines()
		q.State.Machines = q.State.Machines[1:]
		s := calls.New(f, calls.Options{Quorum: q})
		w := watch(t, ui.New(s, trusted, ui.Options{}))
		defer w.end()
		w.next(`event: view
data: {"facts":{"member":"","position":0,"entries":0,"not_ready":"its store is not open yet: the store is unavailable: it waits for ids-2:7420"},"may":true,"problems":[{"level":"error","kind":"not_ready","effect":"This node gives no IDs","cause":"its store is not open yet: the store is unavailable: it waits for ids-2:7420","do":"Run firn doctor on that machine.","link":"https://github.com/firn-id/firn/blob/main/docs/problems.md#not_ready"}],"reset":true}
`)
		w.next(`event: view
data: {"facts":{"member":"","position":0,"entries":0,"not_ready":"its store is not open yet: the store is unavailable: it waits for ids-2:7420","store":{"reached":false,"why":"not ready to make IDs: its store is not open yet: the store is unavailable: it waits for ids-2:7420"}},` +
			`"problems":[{"level":"error","kind":"store","effect":"This node gives no IDs","cause":"the store does ` +
			`not answer it","do":"Start the store, or mend the network between it and this node.",` +
			`"link":"https://github.com/firn-id/firn/blob/main/docs/problems.md#store","detail":"not ready to make ` +
			`IDs: its store is not open yet: the store is unavailable: it waits for ids-2:7420"},` +
			`{"level":"warning","kind":"quorum","effect":"The quorum can lose no other machine","cause":"1 of 1 ` +
			`machines is down (ids-3)","do":"Start it, or replace it: firn quorum replace.",` +
			`"link":"https://github.com/firn-id/firn/blob/main/docs/problems.md#quorum"}],` +
			`"quorum":{"cluster":"5f0c3a9be1d24c77","self":"ids-1:7420","majority":true,"record":["ids-1:7420",` +
			`"ids-2:7420","ids-3:7420"],"machines":[` +
			`{"address":"ids-2:7420","role":"learner","leader":false,"index":0,"behind":345,"size":2097152,` +
			`"in_use":0,"log_size":4194304,"version":"v1.4.0","etcd":"3.7.3","clock_ns":-250000000,"rtt_ns":0,` +
			`"fsync_ns":210000000,"doing":"catches up"},` +
			`{"address":"ids-3:7420","error":"connection refused","role":"voter","leader":false,"index":0,"behind":1345,"size":0,"in_use":0,"log_size":0,"version":"","etcd":"","clock_ns":0,"rtt_ns":0,"fsync_ns":0}]}}
`)
		s.Drain()
		w.next("event: end\ndata: " +
			`{"error":{"code":"not_ready","message":"not ready to make IDs: it is shutting down"}}` + "\n")
		<-w.done
	})
}

// A machine of the quorum that is lost is a problem of the cluster.
func TestProblemsOfTheQuorum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := calls.New(two(t).Member, calls.Options{Quorum: servertest.ThreeMachines()})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		w := httptest.NewRecorder()
		ui.New(s, trusted, ui.Options{}).
			ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/ui/stream", nil))
		if want := "1 of 2 machines is down (ids-3)"; !strings.Contains(w.Body.String(), want) {
			t.Errorf("it does not say that %s: %s", want, w.Body)
		}
	})
}

// It beats once a second, with how many IDs were given, and sends nothing else while nothing happens.
func TestBeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := two(t)
		judged(f)
		s := calls.New(f.Member, calls.Options{Default: new(servertest.Issuer)})
		given := uint64(1) << 60
		h := ui.New(s, trusted, ui.Options{Given: func() []ui.NodeGiven {
			given++
			return []ui.NodeGiven{{Name: "one", Given: map[string]uint64{"orders": given}}}
		}})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second+time.Millisecond)
		defer cancel()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/ui/stream", nil))
		if w.Header().Get("Content-Type") != "text/event-stream" || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("headers %v", w.Header())
		}
		beats, views := strings.Count(w.Body.String(), "event: beat\n"), strings.Count(w.Body.String(), "event: view\n")
		if beats != 11 || views != 2 {
			t.Errorf("%d beats and %d views, want 11 and 2: %s", beats, views, w.Body)
		}
		if !strings.Contains(w.Body.String(), `"given":[{"name":"one","given":{"orders":1152921504606846977}}]}`) {
			t.Error(w.Body)
		}
	})
}

// Only so many pages are kept up to date, and a place is free again when one goes away.
func TestViewers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := dashboard(two(t), trusted)
		var all []*watching
		for range 32 {
			all = append(all, watch(t, h))
		}
		synctest.Wait()
		w := get(h, "GET /ui/stream")
		var failure struct{ Error struct{ Code string } }
		if err := json.Unmarshal(w.Body.Bytes(), &failure); err != nil || w.Code != 503 ||
			failure.Error.Code != "overloaded" {
			t.Errorf("one too many: %d %s", w.Code, w.Body)
		}
		all[0].end()
		<-all[0].done
		if w := get(h, "HEAD /ui/stream"); w.Code != 200 {
			t.Errorf("there is room: %d %s", w.Code, w.Body)
		}
		for _, one := range all {
			one.end()
			<-one.done
		}
	})
}
