package main

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
)

// Every scenario of membership, as the program prints it.
func TestReplayScenarios(t *testing.T) {
	data, err := os.ReadFile("../../internal/core/cluster/testdata/membership.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Scenarios []struct {
			Name  string
			Start []json.RawMessage
			Steps []struct {
				Entry   json.RawMessage
				Outcome string
				Value   any
			}
		}
	}
	if err := json.Unmarshal(data, &file); err != nil || len(file.Scenarios) == 0 {
		t.Fatalf("%d scenarios: %v", len(file.Scenarios), err)
	}
	for _, s := range file.Scenarios {
		t.Run(s.Name, func(t *testing.T) {
			var in bytes.Buffer
			entry := func(text []byte) {
				if err := json.Compact(&in, text); err != nil {
					t.Fatal(err)
				}
				in.WriteByte('\n')
			}
			for _, e := range s.Start {
				entry(e)
			}
			for _, step := range s.Steps {
				entry(step.Entry)
			}
			var stdout, stderr strings.Builder
			if status := run(t.Context(), []string{"cluster", "replay"}, nil, &in, &stdout, &stderr); status != 0 {
				t.Fatalf("status %d: %s", status, &stderr)
			}
			lines := strings.Split(strings.TrimSuffix(stdout.String(), "\n"), "\n")
			if len(lines) != len(s.Start)+len(s.Steps) {
				t.Fatalf("%d lines for %d entries", len(lines), len(s.Start)+len(s.Steps))
			}
			for i, step := range s.Steps {
				var have, entry map[string]any
				if json.Unmarshal([]byte(lines[len(s.Start)+i]), &have) != nil ||
					json.Unmarshal(step.Entry, &entry) != nil {
					t.Fatal(lines[len(s.Start)+i])
				}
				want := map[string]any{"position": entry["position"], "outcome": step.Outcome, "value": step.Value}
				if !reflect.DeepEqual(have, want) {
					t.Errorf("step %d:\nhave %v\nwant %v", i, have, want)
				}
			}
		})
	}
}
