package httpapi_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/store/memstore"
)

// Bubbles begin on 2000-01-01, and so these layouts begin before.
const (
	before  = `"epoch":"1999-01-01T00:00:00Z"`
	orders  = `{"name":"orders","nodes":2,` + before + `}`
	oneNode = `{"name":"orders","nodes":1,` + before + `}`
)

// served is a member with its handler.
type served struct {
	handler
	through http.Handler // what is asked; nil: handler
	t       *testing.T
	member  *peer.Member
	client  *memstore.Client
	log     bytes.Buffer
}

// lowest has the node IDs of a sequencer begin with the lowest one.
func lowest(nodes cluster.Range) int64 { return nodes.From }

// inBubble gives a test servers over one store, at an instant that is always the same.
func inBubble(t *testing.T, names []string, f func(t *testing.T, all []*served)) {
	synctest.Test(t, func(t *testing.T) {
		service := memstore.NewService()
		var all []*served
		for _, name := range names {
			s := &served{t: t, client: service.Client(name)}
			var err error
			if s.member, err = peer.Join(t.Context(), s.client, peer.Options{Owner: name, Start: lowest}); err != nil {
				t.Fatal(err)
			}
			layout := firn.Default
			layout.Epoch = time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
			q, err := s.member.EnsureSequencer(t.Context(), peer.DefaultSequencer, cluster.Define(layout))
			if err != nil {
				t.Fatal(err)
			}
			s.handler = newHandler(t, q, s.member, slog.New(slog.NewTextHandler(&s.log, nil)))
			all = append(all, s)
		}
		synctest.Wait() // each has read what the others wrote
		f(t, all)
		for _, s := range all {
			s.member.Leave()
			s.client.Close()
			if s.log.Len() > 0 {
				t.Errorf("it was logged: %s", &s.log)
			}
		}
	})
}

// ask sends a request, given as its method and path, and wants this status and an answer that this matches.
func (s *served) ask(target, body string, status int, want string) *httptest.ResponseRecorder {
	s.t.Helper()
	method, path, _ := strings.Cut(target, " ")
	w := httptest.NewRecorder()
	h := s.through
	if h == nil {
		h = s.handler
	}
	h.ServeHTTP(w,
		httptest.NewRequestWithContext(s.t.Context(), method, "http://localhost"+path, strings.NewReader(body)))
	if w.Code != status || !regexp.MustCompile(want).MatchString(w.Body.String()) {
		s.t.Errorf("%s %s = %d %s\nwant %d %s", target, body, w.Code, w.Body, status, want)
	}
	if retry := w.Header().Get("Retry-After"); (retry == "1") != (w.Code == 503) {
		s.t.Errorf("%s has Retry-After: %q", target, retry)
	}
	return w
}

func code(code, message string) string {
	return fmt.Sprintf(`^\{"error":\{"code":"%s","message":".*%s.*"\}[,}]`, code, message)
}

// A sequencer's life: it is created, shown, used, left, and destroyed.
func TestLifeOfASequencer(t *testing.T) {
	inBubble(t, []string{"a", "b"}, func(t *testing.T, all []*served) {
		a, b := all[0], all[1]
		const shown = `"name":"orders","definition":\{"nodes":2,"allocation":\{"kind":"all"\},` + before +
			`,"tick":"1ms","time_bits":41,` +
			`"datacenter_bits":0,"node_bits":10,"sequence_bits":12,"node_lowest":false\},` +
			`"created":\d+,"capacity":2,"until":"2068-09-06T15:47:35.552Z","rate":2097152000,`
		w := a.ask("POST /api/v1/sequencers", orders, 201,
			`^\{`+shown+
				`"nodes":\{\},"waiting":\[\],"free":2,"allocation":\{"kind":"all"\},"drained":\[\],`+
				`"here":\{"state":"none"\}\}\n$`)
		if at := w.Header().Get("Location"); at != "/api/v1/sequencers/orders" {
			t.Errorf("Location: %q", at)
		}
		w = b.ask("POST /api/v1/sequencers", orders, 200, `^\{`+shown)
		if at := w.Header().Get("Location"); at != "" {
			t.Errorf("it was there: Location: %q", at)
		}
		conflict := `\},"definition":\{"nodes":2,.*\},"differences":\[\{"field":"nodes","in_force":"2",` +
			`"wanted":"1"\}\]\}\n$`
		b.ask("POST /api/v1/sequencers", oneNode, 409,
			code("exists", "nodes: 2 is in force, 1 is wanted")+`"definition"`)
		b.ask("POST /api/v1/sequencers", oneNode, 409, conflict)

		a.ask("POST /api/v1/sequencers/orders/id", "", 200, `^\{"id":\d+,"id_str":"\d+"\}\n$`)
		a.ask("POST /api/v1/sequencers/orders/ids?count=2", "", 200,
			`^\{"ids":\[\d+,\d+\],"ids_str":\["\d+","\d+"\]\}\n$`)
		b.ask("POST /api/v1/sequencers/orders/ids", "", 200, `^\{"ids":\[\d+\],"ids_str":\["\d+"\]\}\n$`)
		a.ask("GET /api/v1/sequencers/orders/ids/4194304000000001", "", 200,
			`"time":"1999-01-12T13:46:40.000Z",.*"node_id":0,"sequence":1`)

		in := `^\{` + shown + `"nodes":\{"0":"` + a.member.ID() + `","1":"` + b.member.ID() +
			`"\},"waiting":\[\],"free":0,"allocation":\{"kind":"all"\},"drained":\[\],"here":\{"state":"attached",` +
			`"node":%d\}\}`
		synctest.Wait()
		a.ask("GET /api/v1/sequencers/orders", "", 200, fmt.Sprintf(in, 0))
		b.ask("GET /api/v1/sequencers/orders", "", 200, fmt.Sprintf(in, 1))
		b.ask("HEAD /api/v1/sequencers/orders", "", 200, "")
		nodes := `^\{"sequencer":"orders","unix_ms":\d+,"nodes":\[`
		node := `\{"node":%d,"member":"%s","live":true,"owner":"%s","since":"2000-01-01T00:00:0\d.*Z",` +
			`"horizon":"2000-01-01T00:00:3\d.*Z","horizon_ms":9466848\d+\}`
		second := fmt.Sprintf(node, 1, b.member.ID(), "b")
		b.ask("GET /api/v1/sequencers/orders/nodes", "", 200,
			nodes+fmt.Sprintf(node, 0, a.member.ID(), "a")+","+second+`\]\}\n$`)
		b.ask("GET /api/v1/sequencers/orders/nodes?from=1", "", 200, nodes+second+`\]\}\n$`)
		b.ask("GET /api/v1/sequencers", "", 200,
			`^\{"sequencers":\[\{"name":"default",.*\},\{"name":"orders",.*\}\]\}\n$`)
		b.ask("GET /api/v1/cluster", "", 200,
			`"sequencers":\[\{"name":"default",.*"here":\{"state":"attached","node":1\}\},\{"name":"orders",`+
				`.*"here":\{"state":"attached","node":1\}\}\]`)

		b.ask("POST /api/v1/sequencers/orders/detach", "", 200,
			`^\{"state":"detached","why":".*the sequencer is detached.*"\}\n$`)
		b.ask("POST /api/v1/sequencers/orders/detach", "", 200, `^\{"state":"detached"`)
		b.ask("GET /api/v1/sequencers/orders/nodes?from=1", "", 200,
			nodes+`\{"node":1,"live":false,"horizon":"2000-01-01T00:00:0\d.*Z","horizon_ms":9466848\d+\}\]\}\n$`)
		b.ask("POST /api/v1/sequencers/orders/attach", "", 200, `^\{"state":"attached","node":1\}\n$`)
		b.ask("POST /api/v1/sequencers/orders/attach", "", 200, `^\{"state":"attached","node":1\}\n$`)

		b.ask("DELETE /api/v1/sequencers/orders", "", 200, `^\{"name":"orders","destroyed":true\}\n$`)
		for _, target := range []string{
			"GET /orders", "DELETE /orders", "POST /orders/id", "POST /orders/ids?count=5", "GET /orders/ids/1",
			"POST /orders/attach", "POST /orders/detach",
		} {
			method, path, _ := strings.Cut(target, " ")
			a.ask(method+" /api/v1/sequencers"+path, "", 404,
				code("unknown_sequencer", `there is no such sequencer; it has to be created: \\"orders\\"`))
		}
	})
}

// What is wrong with a call is said in words, and nothing is done.
func TestBadSequencers(t *testing.T) {
	inBubble(t, []string{"a"}, func(t *testing.T, all []*served) {
		a := all[0]
		long := `{"name":"` + strings.Repeat("a", 64<<10) + `"}`
		for _, tt := range []struct {
			body   string
			status int
			says   string
		}{
			{"", 400, `the body is empty; want JSON such as`},
			{"{", 400, `not one JSON object: unexpected end of JSON input`},
			{orders + orders, 400, `not one JSON object: invalid character`},
			{"null", 400, "null; want an object"},
			{"[1]", 400, "it is a JSON array; want an object"},
			{`"orders"`, 400, "it is a JSON string; want an object"},
			{`{}`, 400, "no name; want"},
			{`{"name":5}`, 400, "name is 5; want a string"},
			{`{"name":"Orders"}`, 400, `the sequencer's name \\"Orders\\"; want 1 to 100 of a-z, 0-9`},
			{`{"name":".."}`, 400, `name \\"..\\" can't be in a URL`},
			{`{"name":"a","node":3}`, 400, `unknown field \\"node\\"; want name, kind, nodes, allocation`},
			{`{"name":"a","nodes":"3"}`, 400, "nodes is a JSON string; want a whole number"},
			{`{"name":"a","nodes":1.5}`, 400, "nodes is a JSON number 1.5; want a whole number"},
			{`{"name":"a","nodes":0}`, 400, "0 nodes; want 1 to 1024"},
			{
				`{"name":"a","nodes":9223372036854775808}`, 400,
				"nodes is a JSON number 9223372036854775808; want a whole number",
			},
			{`{"name":"a","tick":10}`, 400, "tick is a JSON number; want a string"},
			{`{"name":"a","tick":"10"}`, 400, `the duration \\"10\\"; want one such as 10ms`},
			{`{"name":"a","tick":"1us"}`, 400, "a tick of 1µs; want 1ms to 1s"},
			{`{"name":"a","node_lowest":1}`, 400, "node_lowest is a JSON number; want true or false"},
			{`{"name":"a","layout":"twiter"}`, 400, "no preset has this name"},
			{`{"name":"a","allocation":"all"}`, 400, "allocation is a JSON string; want an object"},
			{
				`{"name":"a","allocation":{"kind":"some"}}`, 400,
				`the allocation kind \\"some\\"; want all, count or percent`,
			},
			{
				`{"name":"a","allocation":{"kind":"percent","percent":101}}`, 400,
				"101 percent of the members; want 1 to 100",
			},
			{`{"name":"a","after":-1}`, 400, `\\"-1\\" is not a decimal ID`},
			{`{"name":"a","epoch":"yesterday"}`, 400, "epoch is yesterday; want a time such as 2026-01-01T00:00:00Z"},
			{
				`{"name":"a","epoch":"2026-01-01T00:00:00Z"}`, 400,
				"its epoch 2026-01-01T00:00:00Z has not come; want one in the past",
			},
			{
				`{"name":"a","epoch":"1971-01-01T00:00:00Z","time_bits":30}`, 400,
				"its time ended on 1971-01-13T10:15:41.824Z; want a later epoch",
			},
			{
				`{"name":"a",` + before + `,"after":"4194304000000000000"}`, 400,
				"every ID must exceed 4194304000000000000, and those of this definition do from 2030-",
			},
		} {
			a.ask("POST /api/v1/sequencers", tt.body, tt.status, code("bad_request", tt.says))
		}
		a.ask("POST /api/v1/sequencers", long, 413, code("too_large", "more than 65536 bytes"))
		a.ask("GET /api/v1/sequencers", "", 200,
			`^\{"sequencers":\[\{"name":"default",[^[]*\[\],[^[]*\[\],[^[]*\]\}\n$`)

		for _, tt := range []struct {
			target string
			status int
			want   string
		}{
			{
				"GET /api/v1/sequencers/Orders", 400,
				code("bad_request", `the sequencer's name \\"Orders\\"; want 1 to 100`),
			},
			{"DELETE /api/v1/sequencers/a%2Fb", 400, code("bad_request", `name \\"a/b\\"`)},
			{"POST /api/v1/sequencers/Orders/id", 400, code("bad_request", `name \\"Orders\\"`)},
			{"POST /api/v1/sequencers/Orders/ids", 400, code("bad_request", `name \\"Orders\\"`)},
			{"GET /api/v1/sequencers/Orders/ids/5", 400, code("bad_request", `name \\"Orders\\"`)},
			{"POST /api/v1/sequencers/Orders/attach", 400, code("bad_request", `name \\"Orders\\"`)},
			{"POST /api/v1/sequencers/Orders/detach", 400, code("bad_request", `name \\"Orders\\"`)},
			{"POST /api/v1/sequencers/default/ids?count=0", 400, code("bad_request", "count is")},
			{
				"POST /api/v1/sequencers/default/id?count=1", 400,
				code("bad_request", `for several IDs POST /api/v1/sequencers/default/ids\?count=N`),
			},
			{"GET /api/v1/sequencers/default/ids/x", 400, code("bad_request", "not an ID in any form")},
			{
				"GET /api/v1/sequencers?name=a", 400,
				code("bad_request", "for one sequencer GET /api/v1/sequencers/{name}"),
			},
			{"GET /api/v1/sequencers/default?x", 400, code("bad_request", "leave it out")},
			{"POST /api/v1/sequencers?name=a", 400, code("bad_request", "describe the sequencer in the body")},
			{"POST /api/v1/sequencers/default/attach?x", 400, code("bad_request", "leave it out")},
			{"POST /api/v1/sequencers/default/detach?x", 400, code("bad_request", "leave it out")},
			{"DELETE /api/v1/sequencers/default?x", 400, code("bad_request", "leave it out")},
			{"DELETE /api/v1/sequencers/default", 409, code("in_use", "it serves calls that name no sequencer")},
			{"GET /api/v1/sequencers/default/id", 405, code("method_not_allowed", "want POST")},
			{"PUT /api/v1/sequencers", 405, code("method_not_allowed", "want GET, HEAD, POST")},
			{"POST /api/v1/sequencers/default", 405, code("method_not_allowed", "want DELETE, GET, HEAD")},
			{"GET /api/v1/sequencers/default/nothing", 404, code("not_found", "")},
			{"DELETE /api/v1/sequencers/nothing", 404, code("unknown_sequencer", "nothing")},
		} {
			a.ask(tt.target, "", tt.status, tt.want)
		}
	})
}

// A layout whose time ends soon can be had, with a warning.
func TestWarning(t *testing.T) {
	inBubble(t, []string{"a"}, func(t *testing.T, all []*served) {
		const short = `{"name":"short","epoch":"1999-12-31T00:00:00Z","time_bits":34}`
		for _, status := range []int{201, 200} {
			all[0].ask("POST /api/v1/sequencers", short, status,
				`"warnings":\["its time ends on 2000-07-16T20:11:09.184Z, in 198 days; a later epoch, [^"]*"\]\}\n$`)
		}
		all[0].ask("GET /api/v1/sequencers/short", "", 200, `"here":\{"state":"none"\}\}\n$`)
	})
}

// Who finds no node ID free is told at once, and which place it has; it takes over.
func TestWaiting(t *testing.T) {
	inBubble(t, []string{"a", "b"}, func(t *testing.T, all []*served) {
		a, b := all[0], all[1]
		a.ask("POST /api/v1/sequencers", oneNode, 201, "")
		a.ask("POST /api/v1/sequencers/orders/id", "", 200, "")
		began := time.Now()
		for _, call := range []string{"id", "ids", "attach", "id"} {
			b.ask("POST /api/v1/sequencers/orders/"+call, "", 503,
				code("waiting", "at capacity, and this member has place 1 in line"))
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("it took %v", took)
		}
		b.ask("GET /api/v1/sequencers/orders", "", 200,
			`"waiting":\["`+b.member.ID()+
				`"\],"free":0,"allocation":\{"kind":"all"\},"drained":\[\],"here":\{"state":"waiting","place":1,`+
				`"why":".*place 1 in line; .*"\}\}`)
		a.ask("POST /api/v1/sequencers/orders/detach", "", 200, "")
		synctest.Wait()
		b.ask("POST /api/v1/sequencers/orders/attach", "", 200, `"attached","node":0`)
		b.ask("POST /api/v1/sequencers/orders/id", "", 200, "")
		// Waiting leaves the line too.
		a.ask("POST /api/v1/sequencers/orders/id", "", 503, code("waiting", ""))
		a.ask("POST /api/v1/sequencers/orders/detach", "", 200, `"detached"`)
		synctest.Wait()
		b.ask("GET /api/v1/sequencers/orders", "", 200, `"waiting":\[\],`)
	})
}

// Many calls at a time to a node that is not attached all get an ID, also of the default sequencer.
func TestAutoAttach(t *testing.T) {
	inBubble(t, []string{"a"}, func(t *testing.T, all []*served) {
		a := all[0]
		a.ask("POST /api/v1/sequencers", orders, 201, "")
		for range 3 {
			for _, path := range []string{
				"sequencers/orders/id", "sequencers/orders/ids?count=3", "id", "ids?count=2",
				"sequencers/default/id",
			} {
				var calls sync.WaitGroup
				for range 20 {
					calls.Go(func() { a.ask("POST /api/v1/"+path, "", 200, "id") })
				}
				calls.Wait()
				a.ask("POST /api/v1/sequencers/orders/detach", "", 200, "")
				a.ask("POST /api/v1/sequencers/default/detach", "", 200, "")
			}
		}
		a.ask("GET /readyz", "", 503, code("not_ready", "detached"))
		a.ask("POST /api/v1/id", "", 200, "")
		a.ask("GET /readyz", "", 200, "ok")
	})
}

// Without auto-attach a node gives no IDs before it is told to.
func TestNoAutoAttach(t *testing.T) {
	inBubble(t, []string{"a"}, func(t *testing.T, all []*served) {
		a := all[0]
		q, _ := a.member.Sequencer(peer.DefaultSequencer)
		a.handler = handlerWith(t, q, a.member, calls.Options{NoAutoAttach: true})
		a.ask("POST /api/v1/sequencers/orders/id", "", 404, code("unknown_sequencer", "orders"))
		a.ask("POST /api/v1/sequencers/Orders/id", "", 400, code("bad_request", "Orders"))
		a.ask("POST /api/v1/sequencers", orders, 201, "")
		detached := code("detached", `POST /api/v1/sequencers/orders/attach has it attach, or ask another node`)
		a.ask("POST /api/v1/sequencers/orders/id", "", 503, detached)
		a.ask("POST /api/v1/sequencers/orders/ids", "", 503, detached)
		a.ask("POST /api/v1/sequencers/orders/detach", "", 200, `^\{"state":"none"\}\n$`)
		a.ask("POST /api/v1/sequencers/orders/attach", "", 200, "attached")
		a.ask("POST /api/v1/sequencers/orders/id", "", 200, "")
		a.ask("POST /api/v1/sequencers/orders/detach", "", 200, "")
		a.ask("POST /api/v1/sequencers/orders/id", "", 503, detached)
		a.ask("POST /api/v1/id", "", 200, "")
		a.ask("POST /api/v1/sequencers/default/detach", "", 200, "")
		a.ask("POST /api/v1/id", "", 503, code("detached", "POST /api/v1/sequencers/default/attach"))
		a.ask("POST /api/v1/sequencers/default/attach", "", 200, "")
		a.ask("POST /api/v1/id", "", 200, "")
	})
}

// A sequencer that others destroy is gone here too, and so is the default one if an application destroys it.
func TestDestroyedElsewhere(t *testing.T) {
	inBubble(t, []string{"a", "b"}, func(t *testing.T, all []*served) {
		a, b := all[0], all[1]
		a.ask("POST /api/v1/sequencers", orders, 201, "")
		b.ask("POST /api/v1/sequencers/orders/id", "", 200, "")
		a.ask("DELETE /api/v1/sequencers/orders", "", 200, "")
		b.ask("POST /api/v1/sequencers/orders/id", "", 404, code("unknown_sequencer", ""))
		a.ask("POST /api/v1/sequencers", oneNode, 201, "")
		b.ask("POST /api/v1/sequencers/orders/id", "", 200, "")
		if err := a.member.Destroy(t.Context(), peer.DefaultSequencer); err != nil {
			t.Fatal(err)
		}
		b.ask("POST /api/v1/id", "", 404, code("unknown_sequencer", "destroyed"))
		b.ask("GET /readyz", "", 503, code("not_ready", "destroyed"))
	})
}

// Where a member that is out of reach may still make IDs, the answer says until when.
func TestDestroyInUse(t *testing.T) {
	inBubble(t, []string{"a", "b"}, func(t *testing.T, all []*served) {
		a, b := all[0], all[1]
		a.ask("POST /api/v1/sequencers", orders, 201, "")
		b.ask("POST /api/v1/sequencers/orders/id", "", 200, "")
		b.client.CutOff(true)
		a.ask("DELETE /api/v1/sequencers/orders", "", 202,
			`^\{"name":"orders","destroyed":true,"until":"2000-01-01T00:00:\d\d(\.\d+)?Z","message":".*may still make `+
				`IDs of it until .*"\}\n$`)
		b.ask("POST /api/v1/sequencers/orders/id", "", 200, "")
		b.client.CutOff(false)
	})
}

// A store that does not answer is not waited for without end. IDs flow meanwhile.
func TestSequencersWithoutStore(t *testing.T) {
	inBubble(t, []string{"a"}, func(t *testing.T, all []*served) {
		a := all[0]
		a.ask("POST /api/v1/sequencers", orders, 201, "")
		a.client.CutOff(true)
		for target, body := range map[string]string{
			"POST /api/v1/sequencers": `{"name":"other",` + before + `}`, "DELETE /api/v1/sequencers/orders": "",
			"POST /api/v1/sequencers/unknown/id": "", "POST /api/v1/sequencers/unknown/attach": "",
		} {
			began := time.Now()
			a.ask(target, body, 503, code("unavailable", ""))
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("%s took %v", target, took)
			}
			a.client.CutOff(false)
			time.Sleep(30 * time.Second) // simulated: the horizon moves on
			a.client.CutOff(true)
		}
		a.ask("POST /api/v1/sequencers/orders/id", "", 503, code("unavailable", ""))
		a.ask("GET /api/v1/sequencers/orders", "", 200, `"here":\{"state":"none"\}`)
		a.client.CutOff(false)
	})
}

// A node whose layout has run out of time is not ready, and says so as it says it to those who ask for IDs.
func TestTheLayoutsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const left = time.Minute
		short := firn.Default
		short.TimeBits, short.Epoch = 30, time.Now().Add(left-1<<30*time.Millisecond)
		client := memstore.NewService().Client("a")
		defer client.Close()
		m, err := peer.Join(t.Context(), client, peer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Leave()
		q, err := m.EnsureSequencer(t.Context(), peer.DefaultSequencer, cluster.Define(short))
		if err != nil {
			t.Fatal(err)
		}
		s := &served{t: t, handler: newHandler(t, q, m, nil)}
		time.Sleep(left - time.Millisecond)
		s.ask("GET /readyz", "", 200, "ok")
		s.ask("POST /api/v1/id", "", 200, "id")
		time.Sleep(time.Millisecond)
		over := code("lifetime", "its time ended on 2000-01-01T00:01:00Z; want a later epoch")
		s.ask("GET /readyz", "", 503, over)
		for _, call := range []string{"id", "ids?count=3", "sequencers/default/id"} {
			s.ask("POST /api/v1/"+call, "", 503, over)
		}
		s.ask("GET /api/v1/sequencers/default", "", 200,
			`"here":\{"state":"attached","node":\d+,"why":".*its time ended`)
	})
}
