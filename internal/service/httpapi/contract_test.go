package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
)

func init() {
	openapi3filter.RegisterBodyDecoder("application/x-ndjson", openapi3filter.JSONBodyDecoder) // one line
}

// contract compares calls and their answers with the document.
type contract struct {
	router    routers.Router
	exchanges []exchange
}

// exchange is a call with its answer.
type exchange struct {
	method, path, body string
	accept             string
	status             int
	header             http.Header
	answer             string
}

func (e exchange) String() string { return e.method + " " + e.path + " " + e.body }

func newContract(t *testing.T) *contract {
	t.Helper()
	doc := document(t)
	if len(doc.Servers) != 1 || doc.Servers[0].URL != "." { // relative to the document, which may be below a prefix
		t.Fatalf("the servers are %v", doc.Servers)
	}
	doc.Servers = nil // the router knows no relative ones
	router, err := legacy.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	return &contract{router: router}
}

// call sends a request, given as its method and path, and remembers the answer.
func (c *contract) call(h http.Handler, target, body, accept string) exchange {
	method, path, _ := strings.Cut(target, " ")
	r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if accept != "" {
		r.Header.Set("Accept", accept)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	e := exchange{method, path, body, accept, w.Code, w.Header(), w.Body.String()}
	c.exchanges = append(c.exchanges, e)
	return e
}

// compare returns what is wrong with the request of an exchange by the document, and what with its answer.
func (c *contract) compare(e exchange) (badRequest, badAnswer error) {
	r := httptest.NewRequest(e.method, e.path, strings.NewReader(e.body))
	if e.body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	route, parameters, err := c.router.FindRoute(r)
	if err != nil {
		return err, fmt.Errorf("%v: %w", e, err)
	}
	request := &openapi3filter.RequestValidationInput{
		Request: r, PathParams: parameters, Route: route,
		Options: &openapi3filter.Options{
			IncludeResponseStatus: true,
			AuthenticationFunc:    openapi3filter.NoopAuthenticationFunc,
		},
	}
	badRequest = openapi3filter.ValidateRequest(context.Background(), request)
	answers := []string{e.answer}
	if e.header.Get("Content-Type") == "application/x-ndjson" {
		answers = strings.SplitAfter(strings.TrimSuffix(e.answer, "\n"), "\n")
	}
	for _, answer := range answers {
		response := &openapi3filter.ResponseValidationInput{
			RequestValidationInput: request, Status: e.status, Header: e.header, Options: request.Options,
		}
		if err := openapi3filter.ValidateResponse(context.Background(),
			response.SetBodyBytes([]byte(answer))); err != nil {
			return badRequest, fmt.Errorf("%v = %d %s: %w", e, e.status, answer, err)
		}
	}
	return badRequest, nil
}

// seen are the operations with the statuses of their answers, such as "POST /api/v1/id 200".
func (c *contract) seen(t *testing.T) (all []string) {
	for _, e := range c.exchanges {
		route, _, err := c.router.FindRoute(httptest.NewRequest(e.method, e.path, nil))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s %s %d", e.method, route.Path, e.status))
	}
	return all
}

// changed returns what an answer could be turned into that the document does not allow, by what was done to it.
func (e exchange) changed(t *testing.T) map[string]exchange {
	t.Helper()
	all := map[string]exchange{}
	with := e
	with.status = http.StatusTeapot
	all["another status"] = with
	with = e
	with.header = e.header.Clone()
	with.header.Set("Content-Type", "text/html")
	all["another type"] = with
	first, rest, _ := strings.Cut(e.answer, "\n")
	var object map[string]any
	d := json.NewDecoder(bytes.NewReader([]byte(first)))
	d.UseNumber()
	if d.Decode(&object) != nil {
		return all
	}
	write := func(what string) {
		data, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		with := e
		with.answer = string(data) + "\n" + rest
		all[what] = with
	}
	object["surprise"] = 1
	write("a field that is not documented")
	delete(object, "surprise")
	for name, value := range object {
		if inner, ok := value.(map[string]any); ok && name != "nodes" {
			inner["surprise"] = 1
			write("a field in " + name + " that is not documented")
			delete(inner, "surprise")
		}
		object[name] = []any{nil}
		write("another type of " + name)
		delete(object, name)
		if !optional(e, name) {
			write("no " + name)
		}
		object[name] = value
	}
	return all
}

// optional tells whether a field may be absent from an answer.
func optional(e exchange, name string) bool {
	switch name {
	case "warnings", "why", "message", "quorum", "share", "owner", "never_held", "count", "reservations":
		return true
	case "nodes":
		return e.path == "/api/v1/cluster"
	case "waiting":
		return strings.HasPrefix(e.path, "/api/v1/quorum")
	case "until":
		return e.method == http.MethodDelete
	case "node":
		return strings.HasSuffix(e.path, "/attach") || strings.HasSuffix(e.path, "/past")
	case "reached":
		return true
	case "text": // of an ID that was asked for in no form
		return true
	case "id_str", "ids_str": // of sealed IDs
		return e.method == http.MethodPost && strings.Contains(e.header.Get("Content-Type"), "ids=string")
	case "at": // of an entry
		return strings.HasPrefix(e.path, "/api/v1/cluster/log")
	}
	return false
}

// wantAllSeen wants each status of each call seen that the handlers give.
func (c *contract) wantAllSeen(t *testing.T) {
	unseen := map[string]bool{
		"GET /api/v1/sequencers 500": true, "GET /api/v1/cluster 500": true, // only a bug would
		"GET /api/v1/ids/{id} 500": true, "GET /api/v1/times/{time} 500": true, "GET /api/v1/quorum 500": true,
		"GET /api/v1/cluster/policy 500":  true,
		"POST /api/v1/quorum/replace 500": true, "POST /api/v1/quorum/remove 500": true,
		"POST /api/v1/id 404": true, "POST /api/v1/ids 404": true, // see TestDestroyedElsewhere
		"POST /api/v1/sequencers/{name}/detach 409": true, // see TestAttachedAgain
	}
	seen := c.seen(t)
	for path, item := range document(t).Paths.Map() {
		for method, op := range item.Operations() {
			for status := range op.Responses.Map() {
				answer := method + " " + path + " " + status
				if unseen[answer] {
					continue
				}
				if !slices.Contains(seen, answer) {
					t.Errorf("%s is documented, and was not seen", answer)
				}
			}
		}
	}
}

// findChanges changes the answers that were seen, and wants every change found.
func (c *contract) findChanges(t *testing.T) {
	changes := 0
	for _, e := range c.exchanges {
		if len(e.answer) > 10_000 {
			continue // it is like others, and takes long
		}
		for what, changed := range e.changed(t) {
			changes++
			if _, badAnswer := c.compare(changed); badAnswer == nil {
				t.Errorf("%v with %s is not found: %d %s", e, what, changed.status, changed.answer)
			}
		}
	}
	if changes < 500 {
		t.Errorf("only %d changes were made", changes)
	}
}
