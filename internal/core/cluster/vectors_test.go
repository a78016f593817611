package cluster

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

// The scenarios of membership, with the value after every step.
func TestMembershipScenarios(t *testing.T) {
	data, err := os.ReadFile("testdata/membership.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Scenarios []struct {
			Name, Title  string
			Start        []json.RawMessage
			ValueAtStart json.RawMessage `json:"value_at_start"`
			Steps        []struct {
				Entry   json.RawMessage
				Outcome string
				Value   json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(data, &file); err != nil || len(file.Scenarios) != 8 {
		t.Fatalf("%d scenarios: %v", len(file.Scenarios), err)
	}
	for _, s := range file.Scenarios {
		t.Run(s.Name, func(t *testing.T) {
			var v Value
			for _, e := range s.Start {
				v, _ = Apply(v, parse(t, string(e)))
			}
			sameJSON(t, "start", v, s.ValueAtStart)
			for i, step := range s.Steps {
				var out Outcome
				v, out = Apply(v, parse(t, string(step.Entry)))
				if out.Result.String() != step.Outcome {
					t.Errorf("step %d: %v, want %v", i, out.Result, step.Outcome)
				}
				sameJSON(t, string(step.Entry), v, step.Value)
			}
		})
	}
}

func parse(t *testing.T, line string) Entry {
	t.Helper()
	e, err := ParseEntry([]byte(line))
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return e
}

func sameJSON(t *testing.T, at string, v Value, want []byte) {
	t.Helper()
	have, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var a, b any
	if json.Unmarshal(have, &a) != nil || json.Unmarshal(want, &b) != nil || !reflect.DeepEqual(a, b) {
		t.Errorf("%s:\nhave %s\nwant %s", at, have, want)
	}
}

// The fast reader and the JSON parser read the same commands.
func TestPlainCommandsAreReadAlike(t *testing.T) {
	for _, form := range plain {
		readAlike(t, form.make("abc123"), time.Time{})
		readAlike(t, form.make("abc123"), moment)
	}
	for _, why := range []Cause{CauseLeft, CauseSessionEnded, CauseFoundDead} {
		readAlike(t, Leave{"abc123", why, "xyz"}, moment)
	}
}

var moment = time.Date(2026, 11, 22, 3, 12, 0, 123e6, time.UTC)

func readAlike(t *testing.T, c Command, at time.Time) {
	t.Helper()
	data, err := Encode(c, at)
	if err != nil {
		t.Fatal(err)
	}
	e := Entry{At: at, Command: c}
	if fast, ok := decodePlain(data); !ok || fast != e {
		t.Errorf("%s: %v, %v", data, fast, ok)
	}
	spaced := append([]byte(" "), data...)
	if _, ok := decodePlain(spaced); ok {
		t.Errorf("%q is not as Encode writes it", spaced)
	}
	if slow, err := Decode(0, spaced); err != nil || slow != e {
		t.Errorf("%s: %v, %v", spaced, slow, err)
	}
	for _, odd := range []struct{ old, new string }{
		{"abc123", ""},
		{"abc123", `a\"b`},
		{"abc123", "a b"},
		{"abc123", "Ä"},
		{"abc123", strings.Repeat("a", maxName+1)},
		{"xyz", ""},
		{"xyz", "Ä"},
		{"xyz", `","x":"y`},
		{`"why"`, `"Why"`},
		{`-`, `+`},
		{`.123Z`, `Z`},
		{`"at"`, `"At"`},
		{`:2,`, `:1,`},
		{`}}`, `}} `},
		{`}}`, `}`},
	} {
		changed := bytes.Replace(data, []byte(odd.old), []byte(odd.new), 1)
		if fast, ok := decodePlain(changed); ok && !bytes.Equal(changed, data) {
			t.Errorf("%s: read as %v", changed, fast)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	data, err := Encode(AcceptJoin{"abc123"}, moment)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := Decode(1, data); err != nil {
			b.Fatal(err)
		}
	}
}
