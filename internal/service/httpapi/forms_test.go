package httpapi_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/packed"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/httpapi"
	"github.com/firn-id/firn/internal/service/idtext"
	"github.com/firn-id/firn/internal/test/servertest"
)

// formed serves the IDs of an issuer, with keys to seal them, to callers whose tokens are the names of rights.
type formed struct {
	t testing.TB
	h http.Handler
}

func newFormed(t testing.TB, m *servertest.Issuer, keys string) formed {
	t.Helper()
	o := calls.Options{Default: m}
	if keys != "" {
		all, err := idtext.ParseKeys([]byte(keys))
		if err != nil {
			t.Fatal(err)
		}
		o.Keys = func() *idtext.Keys { return all }
	}
	var entries strings.Builder
	for _, rights := range []string{"issue", "open", "issue, open", "admin"} {
		entries.WriteString("- {name: '" + strings.ReplaceAll(rights, ", ", "-") + "', sha256: " + auth.Hash(rights) +
			", allow: [" + rights + "]}\n")
	}
	file := filepath.Join(t.TempDir(), "tokens.yaml")
	if err := os.WriteFile(file, []byte(entries.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens, err := auth.OpenTokens(file, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return formed{t, httpapi.New(calls.New(servertest.Join(t), o), &auth.Policy{Tokens: tokens})}
}

// ask returns the status and the body of an answer.
func (f formed) ask(token, target string) (int, string) {
	f.t.Helper()
	method, path, _ := strings.Cut(target, " ")
	r := httptest.NewRequest(method, "http://localhost"+path, nil)
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	f.h.ServeHTTP(w, r)
	return w.Code, strings.TrimSpace(w.Body.String())
}

const sealKey = "1 AAAAAAAAAAAAAAAAAAAAAA==\n"

// TestForms: new IDs in every form, one and many; each text is decoded, in every other form.
func TestForms(t *testing.T) {
	for _, scattered := range []bool{false, true} {
		f := newFormed(t, &servertest.Issuer{Same: true, Prefix: "ord", Scattered: scattered}, sealKey)
		const id = "1152921504606846976" // servertest.First
		for _, form := range idtext.Names() {
			status, body := f.ask("issue, open", "POST /api/v1/id?form="+form)
			var one struct {
				ID  string `json:"id"`
				Str string `json:"id_str"`
			}
			if err := json.Unmarshal([]byte(body), &one); status != 200 || err != nil || one.Str != id ||
				(one.ID == id) != (form == "decimal") {
				t.Fatalf("%s: %d %s, %v", form, status, body, err)
			}
			status, body = f.ask("issue, open", "POST /api/v1/ids?count=300&form="+form)
			var many struct {
				IDs []string `json:"ids"`
				Str []string `json:"ids_str"`
			}
			if err := json.Unmarshal([]byte(body), &many); status != 200 || err != nil || len(many.IDs) != 300 ||
				len(many.Str) != 300 || many.IDs[0] != one.ID || many.Str[0] != id {
				t.Fatalf("%s: %d %.200s, %v", form, status, body, err)
			}
			if many.IDs[0] == many.IDs[1] {
				t.Errorf("%s: %s twice", form, many.IDs[0])
			}
			for _, other := range idtext.Names() {
				status, body = f.ask("open", "GET /api/v1/ids/"+one.ID+"?form="+other+"&as="+form)
				var parts struct {
					Str  string `json:"id_str"`
					Text string `json:"text"`
				}
				if err := json.Unmarshal([]byte(body), &parts); status != 200 || err != nil || parts.Str != id ||
					parts.Text == "" {
					t.Fatalf("%s as %s: %d %s, %v", one.ID, other, status, body, err)
				}
				if other == form && parts.Text != one.ID {
					t.Errorf("%s comes back as %s", one.ID, parts.Text)
				}
			}
			if status, body := f.ask("open", "GET /api/v1/ids/"+one.ID); status != 200 && !strings.Contains(body,
				"say which form it has") || status == 200 && !strings.Contains(body, `"id_str":"`+id+`"`) {
				t.Errorf("%s: %d %s", one.ID, status, body)
			}
		}
	}
}

// Opening, and sealing what one has, needs the right open. Who has only issue gets new IDs sealed, and no number with
// them.
func TestWhoMayOpen(t *testing.T) {
	f := newFormed(t, &servertest.Issuer{Same: true}, sealKey)
	_, body := f.ask("issue", "POST /api/v1/id?form=sealed")
	sealed, ok := strings.CutPrefix(body, `{"id":"`)
	if sealed = strings.TrimSuffix(sealed, `"}`); !ok || !strings.HasPrefix(sealed, "1-") || len(sealed) != 13 {
		t.Fatalf("%s, want a sealed ID alone", body)
	}
	if _, body := f.ask("issue", "POST /api/v1/ids?count=2&form=sealed"); !strings.HasPrefix(body,
		`{"ids":["`+sealed+`","1-`) || strings.Contains(body, "ids_str") {
		t.Errorf("%s, want sealed IDs alone", body)
	}
	for _, tt := range []struct {
		token, target string
		status        int
		says          string
	}{
		{"issue", "GET /api/v1/ids/" + sealed, 403, `the token \"issue\" allows issue, not open`},
		{"admin", "GET /api/v1/ids/" + sealed, 403, "not open"},
		{"issue", "GET /api/v1/ids/" + sealed + "?as=sealed", 403, "not open"},
		{"issue", "GET /api/v1/ids/5?form=sealed", 403, "not open"},
		{"issue", "GET /api/v1/ids/5?form=uuid", 200, `"text":"019b76da-a800-7000-8000-000000000005"`},
		{"open", "GET /api/v1/ids/" + sealed, 200, `"id_str":"1152921504606846976"`},
		{"issue, open", "GET /api/v1/ids/" + sealed, 200, `"id_str":"1152921504606846976"`},
		{"open", "GET /api/v1/ids/5?form=sealed", 200, `"text":"1-`},
		{"open", "POST /api/v1/id?form=sealed", 403, "not issue"},
		{"open", "POST /api/v1/id", 403, "not issue"},
		{"open", "GET /api/v1/ids/1-00000000000", 200, `"id_str":"`}, // whoever guesses gets an ID of nothing
		{"open", "GET /api/v1/ids/9-" + sealed[2:], 400, "a key of version 9, which this node does not have; it has 1"},
	} {
		if status, body := f.ask(tt.token, tt.target); status != tt.status || !strings.Contains(body, tt.says) {
			t.Errorf("%s: %s: %d %s; want %d with %s", tt.token, tt.target, status, body, tt.status, tt.says)
		}
	}
	// Without tokens whoever reaches the node may open.
	keys, err := idtext.ParseKeys([]byte(sealKey))
	if err != nil {
		t.Fatal(err)
	}
	open := httpapi.New(calls.New(servertest.Join(t), calls.Options{
		Default: &servertest.Issuer{Same: true},
		Keys:    func() *idtext.Keys { return keys },
	}), new(auth.Policy))
	if status, body := (formed{t, open}).ask("", "GET /api/v1/ids/"+sealed); status != 200 {
		t.Errorf("%d %s", status, body)
	}
}

// What an ID has no text in, or no meaning, is refused, and no ID is taken.
func TestFormsThatAreRefused(t *testing.T) {
	m := &servertest.Issuer{Prefix: "ord"}
	f, bare := newFormed(t, m, ""), newFormed(t, &servertest.Issuer{IDs: firn.JavaScript}, "")
	for _, tt := range []struct {
		at           formed
		target, says string
	}{
		{f, "POST /api/v1/id?form=base64", `form: no form of IDs is named \"base64\"; want one of decimal, hex`},
		{f, "POST /api/v1/id?form=", `form: no form of IDs is named \"\"`},
		{f, "POST /api/v1/id?form=uuid&form=hex", "form is given 2 times"},
		{
			f, "POST /api/v1/id?form=uuid&ids=number",
			`form is \"uuid\", which is text, and ids is number; want one of them`,
		},
		{f, "POST /api/v1/id?form=uuid&ids=hex", `ids is \"hex\"; want string or number`},
		{f, "POST /api/v1/ids?count=5&form=sealed", "no keys to seal and open IDs; start it with --seal-key-file"},
		{f, "GET /api/v1/ids/5?form=sealed", "no keys to seal and open IDs"},
		{f, "GET /api/v1/ids/1-00000000000", "no keys to seal and open IDs"},
		{bare, "POST /api/v1/id?form=prefixed", `the sequencer \"default\" was created without a prefix`},
		{bare, "GET /api/v1/ids/ord_0000000000005", `the sequencer \"default\" has no prefix`},
		{f, "GET /api/v1/ids/inv_0000000000005", `its prefix is \"inv\", and the sequencer \"default\" has \"ord\"`},
		{f, "GET /api/v1/ids/ord_0000000000005?as=uuid", "is not a UUID ID"},
		{
			f, "GET /api/v1/ids/5-76",
			`\"5-76\" is not a checked ID: its check digits do not fit its number, so a digit is wrong; want the ` +
				"text exactly as it was made",
		},
		{f, "GET /api/v1/ids/ORD5-78", "its check digits do not fit the rest, so a letter or a digit is wrong"},
		{f, "GET /api/v1/ids/INV5", `its prefix is \"INV\", and the sequencer \"default\" has \"ORD\"`},
		{bare, "GET /api/v1/ids/ORD5?as=prefixed-decimal", `the sequencer \"default\" has no prefix`},
		{f, "GET /api/v1/ids/01981e3c-58cf-7cc1-8d5b-4a2e7d9c0f11", "another program or layout made it"},
		{
			f, "GET /api/v1/ids/8aaaaaaaaaa",
			"in base58 (3265042410184970455) and in base62 (7209719142869020940); say which form it has",
		},
		{
			f, "GET /api/v1/ids/1000000000000000",
			"in decimal (1000000000000000) and in hex (1152921504606846976); say which form it has: as=decimal " +
				"or as=hex",
		},
		{bare, "GET /api/v1/ids/9223372036854775807?form=uuid", "its 53 bits hold"},
	} {
		if status, body := tt.at.ask("issue, open", tt.target); status != 400 ||
			!strings.Contains(body, `"code":"bad_request"`) || !strings.Contains(body, tt.says) {
			t.Errorf("%s: %d %s; want 400 with %s", tt.target, status, body, tt.says)
		}
	}
	if n := m.Given(); n != 0 {
		t.Errorf("%d IDs were taken", n)
	}
}

// A scattered ID says something else where it is taken for plain: only its sequencer knows.
func TestAScatteredIDTakenForPlain(t *testing.T) {
	plain, scattered := newFormed(t, &servertest.Issuer{Same: true}, ""),
		newFormed(t, &servertest.Issuer{Same: true, Scattered: true}, "")
	made := firn.ID(117465411174400005)
	id := firn.Scatter(made).String()
	_, want := plain.ask("issue", "GET /api/v1/ids/"+made.String())
	want = want[strings.Index(want, `"time"`):]
	if _, body := scattered.ask("issue", "GET /api/v1/ids/"+id); !strings.HasPrefix(body,
		`{"id":`+id+`,"id_str":"`+id+`",`+want) {
		t.Errorf("%s, want %s", body, want)
	}
	if _, body := plain.ask("issue", "GET /api/v1/ids/"+id); strings.Contains(body, want) {
		t.Errorf("%s is read without its sequencer's definition", id)
	}
}

// Whatever way the IDs of a scattered sequencer come, they are those that its member makes, each once, in the order in
// which they were made; and they are keys all over the 63 bits.
func TestScatteredOverEveryAnswer(t *testing.T) {
	inBubble(t, []string{"a"}, func(t *testing.T, all []*served) {
		a := all[0]
		a.ask("POST /api/v1/sequencers", `{"name":"events","scattered":true,"prefix":"ev",`+before+`}`, 201,
			`"prefix":"ev","scattered":true`)
		var ids []firn.ID
		packedIDs := func(target string, n int) {
			t.Helper()
			method, path, _ := strings.Cut(target, " ")
			r := httptest.NewRequestWithContext(t.Context(), method, "http://localhost"+path, nil)
			r.Header.Set("Accept", packed.Type)
			w := httptest.NewRecorder()
			a.ServeHTTP(w, r)
			some := make([]firn.ID, n)
			if err := packed.Read(some, w.Body.Bytes()); err != nil {
				t.Fatalf("%s: %d %.200s, %v", target, w.Code, w.Body, err)
			}
			ids = append(ids, some...)
		}
		packedIDs("POST /api/v1/sequencers/events/id", 1)
		packedIDs("POST /api/v1/sequencers/events/ids?count=3", 3)
		packedIDs("POST /api/v1/sequencers/events/ids?count=20000", 20_000) // in several turns
		for _, form := range []string{"prefixed", "uuid", "base62"} {
			var many struct {
				IDs []string  `json:"ids"`
				Str []firn.ID `json:"ids_str"`
			}
			w := a.ask("POST /api/v1/sequencers/events/ids?count=700&form="+form, "", 200, "ids_str")
			if err := json.Unmarshal(w.Body.Bytes(), &many); err != nil || len(many.IDs) != 700 ||
				len(many.Str) != 700 {
				t.Fatalf("%s: %v", form, err)
			}
			ids = append(ids, many.Str...)
			a.ask("GET /api/v1/sequencers/events/ids/"+many.IDs[600]+"?as="+form+"&form="+form, "", 200,
				`"id_str":"`+many.Str[600].String()+`",.*"text":"`+many.IDs[600]+`"`)
			if form == "uuid" && !slices.IsSorted(many.IDs) {
				t.Error("the UUIDs of scattered IDs do not sort by time")
			}
		}
		seen, ranges := map[firn.ID]bool{}, [16]int{}
		for i, id := range ids {
			if seen[id] {
				t.Fatalf("%d comes twice", id)
			}
			seen[id] = true
			ranges[id>>59]++
			if i > 0 && firn.Gather(id) <= firn.Gather(ids[i-1]) {
				t.Fatalf("%d was made after %d", firn.Gather(id), firn.Gather(ids[i-1]))
			}
		}
		for i, n := range ranges {
			if mean := len(ids) / len(ranges); n < mean*2/3 || n > mean*4/3 {
				t.Errorf("%d keys are in range %d, about %d are in each", n, i, mean)
			}
		}
	})
}
