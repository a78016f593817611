package httpapi_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/codes"
	"github.com/firn-id/firn/internal/service/httpapi"
	"github.com/firn-id/firn/internal/service/httpapi/apidoc"
	"github.com/firn-id/firn/internal/test/servertest"
	"github.com/firn-id/firn/sequencer"
)

func document(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(apidoc.Document())
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// The document is OpenAPI 3.1, and its examples are what its schemas allow.
func TestDocumentIsValid(t *testing.T) {
	doc := document(t)
	if err := doc.Validate(t.Context(), openapi3.EnableExamplesValidation()); err != nil {
		t.Error(err)
	}
	if doc.OpenAPI != "3.1.0" || doc.Info.Version != "v1" {
		t.Errorf("OpenAPI %s of version %s", doc.OpenAPI, doc.Info.Version)
	}
	if links := regexp.MustCompile(`https?://[^"]*`).FindAll(apidoc.Document(), -1); links != nil {
		t.Errorf("it links to %s", links)
	}
	if most := doc.Components.Parameters["Count"].Value.Schema.Value.Max; most == nil || *most != calls.MaxCount {
		t.Errorf("a call is for at most %v IDs, want %d", most, calls.MaxCount)
	}
	body := doc.Paths.Find("/api/v1/sequencers").Post.RequestBody.Value.Content["application/json"]
	for name, example := range body.Examples {
		data, err := json.Marshal(example.Value.Value)
		var n httpapi.NewSequencer
		if err == nil {
			err = json.Unmarshal(data, &n)
		}
		if err != nil {
			t.Errorf("the example %s is no sequencer: %v", name, err)
		}
	}
}

// The document has every field of a definition, with its default.
func TestDocumentedDefinition(t *testing.T) {
	schemas := document(t).Components.Schemas
	data, err := json.Marshal(httpapi.NewSequencer{Name: "a", Definition: cluster.Definition{
		After:  1,
		Attach: cluster.AttachExplicit, Window: time.Minute, Prefix: "a", Scattered: true, RandomStart: true,
		Max: 9, Order: sequencer.OrderStrict, Dated: sequencer.Dated{Every: sequencer.EveryDay, Digits: 6, Zone: "UTC"},
	}, Reserve: 1})
	var fields map[string]any
	if err == nil {
		err = json.Unmarshal(data, &fields)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"layout", "kind", "nodes", "allocation"} { // only read, or not in strict order
		fields[field] = ""
	}
	have, want := slices.Sorted(maps.Keys(schemas["NewSequencer"].Value.Properties)), slices.Sorted(maps.Keys(fields))
	if !slices.Equal(have, want) {
		t.Errorf("a new sequencer has the fields %v, want %v", have, want)
	}
}

// Each call that the handler serves is in the document, and the other way round.
func TestDocumentedCalls(t *testing.T) {
	served := newHandler(t, &servertest.Issuer{Same: true}, example(t).Member, nil).Methods()
	for _, path := range []string{"/openapi.json", apidoc.Root} { // the description is no call
		if !slices.Equal(served[path], []string{"GET", "HEAD"}) {
			t.Errorf("%s has %v", path, served[path])
		}
		delete(served, path)
	}
	documented := map[string][]string{}
	for path, item := range document(t).Paths.Map() {
		methods := slices.Collect(maps.Keys(item.Operations()))
		if slices.Contains(methods, http.MethodGet) {
			methods = append(methods, http.MethodHead) // the document says so once for all
		}
		documented[path] = slices.Sorted(slices.Values(methods))
	}
	if !reflect.DeepEqual(served, documented) {
		t.Errorf("served are\n%v\nand documented\n%v", served, documented)
	}
}

// What a call needs is said in words and for programs, and only the state of health needs nothing.
func TestDocumentedRights(t *testing.T) {
	for path, item := range document(t).Paths.Map() {
		for method, op := range item.Operations() {
			right, _ := op.Extensions["x-firn-right"].(string)
			open := op.Security != nil && len(*op.Security) == 0
			admin := right == "admin" || right == "import"
			if strings.Contains(op.Description, "**Administration:**") != admin {
				t.Errorf("%s %s needs %q, and its description is %s", method, path, right, op.Description)
			}
			if health := slices.Contains(op.Tags, "Health"); health != open || health != (right == "") {
				t.Errorf("%s %s needs %q, with the tags %v", method, path, right, op.Tags)
			}
			for _, status := range []string{"401", "403", "429"} {
				if op.Responses.Value(status) == nil && !open {
					t.Errorf("%s %s has no %s", method, path, status)
				}
			}
		}
	}
}

// All codes of errors are documented, with their statuses.
func TestDocumentedCodes(t *testing.T) {
	var want []string
	for _, code := range codes.All() {
		want = append(want, fmt.Sprintf("%d %s", code.HTTP(), code))
	}
	slices.Sort(want)
	described := document(t)
	if have := statusesAndCodes("(?m)^\\| (\\d+) \\| `([a-z_]+)`",
		described.Info.Description); !slices.Equal(have, want) {
		t.Errorf("described are %q, want %q", have, want)
	}
	var inEnum, inAnswers []string
	for _, code := range described.Components.Schemas["ErrorCode"].Value.Enum {
		inEnum = append(inEnum, code.(string))
	}
	answers := map[string]bool{"404 not_found": true, "405 method_not_allowed": true} // those of no call
	for _, item := range described.Paths.Map() {
		for _, op := range item.Operations() {
			for status, response := range op.Responses.Map() {
				for _, code := range codesOf(t, response) {
					answers[status+" "+code] = true
				}
			}
		}
	}
	inAnswers = slices.Sorted(maps.Keys(answers))
	if !slices.Equal(inAnswers, want) {
		t.Errorf("the answers have %q, want %q", inAnswers, want)
	}
	for i, c := range want {
		_, want[i], _ = strings.Cut(c, " ")
	}
	slices.Sort(inEnum)
	slices.Sort(want)
	if !slices.Equal(inEnum, want) {
		t.Errorf("the schema has %q, want %q", inEnum, want)
	}
}

func statusesAndCodes(pattern, text string) (all []string) {
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		all = append(all, m[1]+" "+m[2])
	}
	slices.Sort(all)
	return all
}

// codesOf are the codes that an answer may have; none if it tells of no error.
func codesOf(t *testing.T, response *openapi3.ResponseRef) (all []string) {
	media := response.Value.Content["application/json"]
	if media == nil || len(media.Schema.Value.AllOf) != 2 {
		return nil
	}
	failure := media.Schema.Value.AllOf[1].Value.Properties["error"]
	if failure == nil {
		return nil
	}
	for _, code := range failure.Value.Properties["code"].Value.Enum {
		all = append(all, code.(string))
		if !strings.Contains(*response.Value.Description, fmt.Sprintf("`%s`", code)) {
			t.Errorf("the description of %v does not tell of it: %s", code, *response.Value.Description)
		}
	}
	return all
}

// What is described first is what callers get that ask for nothing else: generated clients have its type.
func TestWhatIsSentByDefaultIsDescribedFirst(t *testing.T) {
	var doc struct {
		Paths map[string]map[string]struct {
			Responses map[string]struct{ Content json.RawMessage } // in the order of the document
		}
	}
	if err := json.Unmarshal(apidoc.Document(), &doc); err != nil {
		t.Fatal(err)
	}
	h := newHandler(t, &servertest.Issuer{Same: true}, nil, nil)
	answers := 0
	for path, methods := range doc.Paths {
		for method, op := range methods {
			types := regexp.MustCompile(`"(application/[^"]*)":`).FindAllSubmatch(op.Responses["200"].Content, -1)
			if len(types) < 2 {
				continue
			}
			answers++
			path := strings.NewReplacer("{name}", "default", "{id}", "5", "{time}", "1795231536425").Replace(path)
			if w := call(h, strings.ToUpper(method), path); w.Code != 200 ||
				w.Header().Get("Content-Type") != string(types[0][1]) {
				t.Errorf("%s %s is described as %s first, and answers %d %v", method, path, types[0][1],
					w.Code, w.Header())
			}
		}
	}
	if answers != 8 {
		t.Errorf("%d answers have several types, want 8", answers)
	}
}

// The document and the page are there, and the root says where.
func TestDocs(t *testing.T) {
	h := newHandler(t, &servertest.Issuer{Same: true}, nil, nil)
	if w := call(h, "GET", "/openapi.json"); w.Code != 200 || w.Body.String() != string(apidoc.Document()) {
		t.Errorf("/openapi.json = %d %.100s", w.Code, w.Body)
	}
	if w := call(h, "GET", "/docs"); w.Code/100 != 3 || w.Header().Get("Location") != "docs/" { // also below a prefix
		t.Errorf("/docs = %d %v", w.Code, w.Header())
	}
	if w := call(h, "GET", "/docs/"); w.Code != 200 || !strings.Contains(w.Body.String(), "<title>firn") {
		t.Errorf("/docs/ = %d %.100s", w.Code, w.Body)
	}
	for target, status := range map[string]int{
		"GET /": 404, "GET /docs/x": 404, "POST /docs/": 405,
		"POST /openapi.json": 405,
	} {
		method, path, _ := strings.Cut(target, " ")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, "http://localhost"+path, nil))
		if w.Code != status || !strings.Contains(w.Body.String(), `{"error":`) ||
			path == "/" && !strings.Contains(w.Body.String(), "/docs/") {
			t.Errorf("%s = %d %s", target, w.Code, w.Body)
		}
	}
}
