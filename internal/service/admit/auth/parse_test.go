package auth

import (
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// Hashes for entries.
var (
	hashA = Hash("token-a")
	hashB = Hash("token-b")
)

// entry is a valid entry, with more lines below it.
func entry(name, token string, more ...string) string {
	lines := append([]string{"- name: " + name, "sha256: " + Hash(token), "allow: [issue]"}, more...)
	return strings.Join(lines, "\n  ") + "\n"
}

func TestParseTokens(t *testing.T) {
	got, err := parseTokens([]byte(`# Who may come in.
- name: orders-service
  sha256: ` + hashA + `
  allow: [issue]
  sequencers: [orders, "invoices-*", 2024]
  rate: 10000
- {name: 12, allow: [admin, issue], sha256: '` + strings.ToUpper(hashB) + `', rate: 0.5}
- name: digits
  sha256: ` + strings.Repeat("1234567890", 6) + `12e4
  allow:
    - admin
`))
	want := []Entry{
		{
			Name: "orders-service", SHA256: hashA, Allow: []string{"issue"},
			Sequencers: []string{"orders", "invoices-*", "2024"}, Rate: 10000,
		},
		{Name: "12", SHA256: hashB, Allow: []string{"admin", "issue"}, Rate: 0.5},
		{Name: "digits", SHA256: strings.Repeat("1234567890", 6) + "12e4", Allow: []string{"admin"}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

func TestWhatIsWrongWithTokens(t *testing.T) {
	secret := NewToken()
	const (
		none      = "no tokens; want at least one, as `firn token` prints it"
		nameWant  = "; want 1 to 100 printable characters without spaces"
		hashWant  = "; want the 64 hex digits that `firn token` prints"
		rateWant  = " is not a valid rate; want IDs per second, above 0 and at most 1000000000"
		keysWant  = "; want name, sha256, allow, sequencers, prefixes, quota and rate"
		wantList  = `; want a list of entries that begin with "- name: "`
		wantTexts = "; want a list such as [a, b]"
	)
	var long []string // patterns, each short enough
	for c := range 17 {
		long = append(long, strings.Repeat(string(rune('a'+c)), 965-c/16*6))
	}
	for _, tt := range []struct{ file, want string }{
		{"", none},
		{"# nobody yet\n", none},
		{"---\n", none},
		{"null", none},
		{"[]", none},
		{"tokens: []", "line 1: it is a mapping" + wantList},
		{"\nhello", `line 2: it is "hello"` + wantList},
		{secret, "line 1: it is text of 48 bytes (not shown, as it may be a secret)" + wantList},
		{secret + "\n\n" + entry("a", "a"), "line 3: not YAML: mapping values are not allowed in this context"},
		{entry("a", "a") + "---\n" + entry("b", "b"), "line 4: another document begins; want one"},
		{entry("a", "a") + "---\n[", "line 5: not YAML: did not find expected node content"},
		{"- [", "line 1: not YAML: did not find expected node content"},
		{"- name: *" + secret, "an alias, which begins with *; quote the text if it is not meant as one"},
		{"- &a name", `line 1: the entry is "name"; want keys and values such as "name: orders-service"`},
		{"- []", `line 1: the entry is an empty list; want keys and values such as "name: orders-service"`},
		{
			"- " + secret,
			`line 1: the entry is text of 48 bytes (not shown, as it may be a secret); want keys and values such as ` +
				`"name: orders-service"`,
		},
		{"- a: &x b\n- *x", `line 1: there is no key "a"` + keysWant},
		{entry("a", "a") + "- name: b", "line 4: the entry has no sha256; want name, sha256 and allow in each"},
		{"- sha256: " + hashA, "line 1: the entry has no name; want name, sha256 and allow in each"},
		{"- name: a\n  sha256: " + hashA, "line 1: the entry has no allow; want name, sha256 and allow in each"},
		{entry("a", "a", "hash: 12"), `line 4: there is no key "hash"` + keysWant},
		{
			entry("a", "a", secret+": 12"),
			`line 4: there is no key text of 48 bytes (not shown, as it may be a secret)` + keysWant,
		},
		{entry("a", "a", "? [b]\n  : c"), `line 4: there is no key a list` + keysWant},
		{entry("a", "a", "name: b"), "line 4: name: already given on line 1; want it once"},
		{entry("a", "a") + entry("a", "b"), `line 4: name: "a" is that of the entry on line 1; want another`},
		{
			entry("a", "a") + entry("b", "a"),
			"line 4: sha256: the token is that of the entry on line 1; want another, or one entry",
		},
		{
			"- name: a\n  allow: [issue]\n  sha256: " + hashA + "\n- name: b\n  allow: [issue]\n  sha256: " +
				strings.ToUpper(hashA),
			"line 4: sha256: the token is that of the entry on line 1; want another, or one entry",
		},

		{"- name:", "line 1: name: it is empty; want text"},
		{"- name: ''", "line 1: name: it is empty" + nameWant},
		{"- name: [a]", "line 1: name: it is a list; want text"},
		{"- name: {a: b}", "line 1: name: it is a mapping; want text"},
		{"- name: !!binary YQ==", "line 1: name: it is a value with a tag; want text"},
		{"- name: the orders", `line 1: name: "the orders" is not a valid name` + nameWant},
		{`- name: "a\tb"`, `line 1: name: "a\tb" is not a valid name` + nameWant},
		{"- name: " + strings.Repeat("é", 101), "line 1: name: it has 101 characters" + nameWant},
		{
			"- name: " + secret,
			"line 1: name: the name looks like a token, which must stay secret; want a name that logs may show",
		},

		{"- sha256: " + secret, "line 1: sha256: a token, which must stay secret" + hashWant},
		{"- sha256: " + hashA[1:], "line 1: sha256: it has 63 characters" + hashWant},
		{"- sha256: " + hashA + "0", "line 1: sha256: it has 65 characters" + hashWant},
		{"- sha256: g" + hashA[1:], "line 1: sha256: characters that are not hex digits" + hashWant},
		{"- sha256: ", "line 1: sha256: it is empty; want text"},

		{"- allow: issue", `line 1: allow: it is "issue"` + wantTexts},
		{"- allow: []", "line 1: allow: it is an empty list" + wantTexts},
		{"- allow: {issue: true}", "line 1: allow: it is a mapping" + wantTexts},
		{
			"- allow:\n  - issue\n  - all",
			`line 3: allow: "all" is not a right; want issue, open, import, order, attach or admin`,
		},
		{
			"- allow: [" + secret + "]",
			"line 1: allow: text of 48 bytes (not shown, as it may be a secret) is not a right; want issue, open, " +
				"import, order, attach or admin",
		},
		{"- allow:\n  - issue\n  - issue", `line 3: allow: "issue" is already given on line 2; want it once`},
		{"- allow: [[issue]]", "line 1: allow: it is a list; want text"},

		{"- sequencers:", "line 1: sequencers: it is empty" + wantTexts},
		{"- sequencers: []", "line 1: sequencers: it is an empty list" + wantTexts},
		{
			"- sequencers: ['a[b']",
			`line 1: sequencers: "a[b" is not a pattern; want the name of a sequencer, or a pattern such as orders-*`,
		},
		{
			"- sequencers: ['a b']",
			`line 1: sequencers: "a b" is not a pattern; want the name of a sequencer, or a pattern such as orders-*`,
		},
		{
			"- sequencers: ['']",
			`line 1: sequencers: it is empty; want the name of a sequencer, or a pattern such as orders-*`,
		},
		{"- sequencers: [a, b, a]", `line 1: sequencers: "a" is already given on line 1; want it once`},
		{
			"- sequencers: [" + strings.Repeat("a", 1001) + "]",
			"line 1: sequencers: it has 1001 bytes; want at most 1000",
		},

		{
			"- sequencers: [" + strings.Join(long, ", ") + "]",
			"line 1: sequencers: they have 16399 bytes together; want at most 16384",
		},
		{"- prefixes: inv", `line 1: prefixes: it is "inv"` + wantTexts},
		{
			"- prefixes: ['a[b']",
			`line 1: prefixes: "a[b" is not a pattern; want a prefix such as inv, or a pattern such as inv*`,
		},
		{"- quota: many", `line 1: quota: it is "many"; want a whole number`},
		{"- quota: 2.5", `line 1: quota: it is "2.5"; want a whole number`},
		{"- quota: 0", "line 1: quota: 0 is not a valid quota; want 1 to 1000000 sequencers"},
		{"- quota: -1", "line 1: quota: -1 is not a valid quota; want 1 to 1000000 sequencers"},
		{"- quota: 1000001", "line 1: quota: 1000001 is not a valid quota; want 1 to 1000000 sequencers"},
		{"- rate: fast", `line 1: rate: it is "fast"; want a number`},
		{"- rate: '5'", `line 1: rate: it is "5"; want a number`},
		{"- rate: " + secret, "line 1: rate: it is text of 48 bytes (not shown, as it may be a secret); want a number"},
		{"- rate:", "line 1: rate: it is empty; want a number"},
		{"- rate: [5]", "line 1: rate: it is a list; want a number"},
		{"- rate: 0", "line 1: rate: 0" + rateWant},
		{"- rate: -5", "line 1: rate: -5" + rateWant},
		{"- rate: .nan", "line 1: rate: NaN" + rateWant},
		{"- rate: .inf", "line 1: rate: +Inf" + rateWant},
		{"- rate: -.inf", "line 1: rate: -Inf" + rateWant},
		{"- rate: 2e9", "line 1: rate: 2e+09" + rateWant},
	} {
		_, err := parseTokens([]byte(tt.file))
		if text(err) != tt.want {
			t.Errorf("%s\nis wrong in that %v\n          want %s", tt.file, err, tt.want)
		}
		if strings.Contains(text(err), secret[5:13]) {
			t.Errorf("%s\nits error tells a token: %v", tt.file, err)
		}
	}
}

// Whatever the file says, nothing panics; and what is accepted is the same when it is written and read again.
func FuzzParseTokens(f *testing.F) {
	for _, seed := range []string{
		"", "[]", "- name: a", entry("a", "a"), entry("a", "a") + entry("b", "b"),
		entry("12", "a", "sequencers: [a, 'b-*', '*', '?', '[a-z]', '!x', '#', 'a: b']", "rate: 10000"),
		entry("null", "a", "rate: 0x10"), entry("'~'", "a", "rate: 1e-300"), entry("'- a'", "a", "rate: 999_999"),
		"- {name: '*', sha256: " + strings.Repeat("0", 64) + ", allow: [admin, issue]}",
		"- &x {name: a}\n- *x", "- <<: {name: a}", "%YAML 1.1\n---\n- name: a",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := parseTokens(data)
		if err != nil {
			return
		}
		if len(entries) == 0 {
			t.Fatalf("%q has no tokens", data)
		}
		written, err := yaml.Marshal(entries)
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseTokens(written)
		if err != nil || !reflect.DeepEqual(again, entries) {
			t.Fatalf("%+v is written as\n%s\nand read as %+v, %v", entries, written, again, err)
		}
		if known := newCallers(entries, nil); len(known) != len(entries) {
			t.Fatalf("%+v has %d callers", entries, len(known))
		}
	})
}
