package cluster

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
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
		c := form.make("abc123")
		data, err := Encode(c)
		if err != nil {
			t.Fatal(err)
		}
		if fast, ok := decodePlain(data); !ok || fast != c {
			t.Errorf("%s: %v, %v", data, fast, ok)
		}
		spaced := append([]byte(" "), data...)
		if _, ok := decodePlain(spaced); ok {
			t.Errorf("%q is not as Encode writes it", spaced)
		}
		if slow, err := Decode(spaced); err != nil || slow != c {
			t.Errorf("%s: %v, %v", spaced, slow, err)
		}
		for _, id := range []string{"", `a\"b`, "a b", "Ä", strings.Repeat("a", maxName+1)} {
			odd := bytes.Replace(data, []byte("abc123"), []byte(id), 1)
			if fast, ok := decodePlain(odd); ok {
				t.Errorf("%s: read as %v", odd, fast)
			}
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	data, err := Encode(AcceptJoin{"abc123"})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := Decode(data); err != nil {
			b.Fatal(err)
		}
	}
}
