package cluster

import (
	"encoding/json"
	"os"
	"reflect"
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
