package main

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the pages of the reference that are made from the program")

const remake = "<!-- This page is made from the program: go test ./cmd/firn -run TestReference -update -->\n"

// The pages of the reference that are made from the program are those of this program.
func TestReference(t *testing.T) {
	for name, made := range map[string]string{
		"commands.md": commandsPage(), "http.md": httpPage(t), "errors.md": errorsPage(),
	} {
		name := filepath.Join("..", "..", "docs", name)
		if *update {
			if err := os.WriteFile(name, []byte(made), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		there, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		was, is := strings.Split(string(there), "\n"), strings.Split(made, "\n")
		for i := range is {
			if i >= len(was) || was[i] != is[i] {
				t.Errorf("%s:%d is not what the program says; go test ./cmd/firn -run TestReference -update writes it "+
					"again. Want\n%s", name, i+1, is[i])
				break
			}
		}
		if len(was) > len(is) {
			t.Errorf("%s has %d lines more than the program says; go test ./cmd/firn -run TestReference -update "+
				"writes it again", name, len(was)-len(is))
		}
	}
}
