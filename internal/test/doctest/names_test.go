package doctest

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// fromRegistry is what takes a client by a name in a public registry. Nobody holds these names there yet: whoever
// registers one owns all who follow the page.
var fromRegistry = regexp.MustCompile(
	`(?m)(?:\b(?:install|add|i|npx|require)\s+["']?(?:firn-id|firn-client|firn)["']?(?:[@=<>~]\S*)?\s*$|` +
		`<artifactId>firn-client</artifactId>|io\.github\.firn-id:)`)

func TestNobodyInstallsByANameThatNobodyHolds(t *testing.T) {
	var names []string
	for _, pattern := range []string{"*.md", "docs/*.md", "clients/*/README.md", "examples/*/README.md"} {
		some, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, some...)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if at := fromRegistry.FindString(string(text)); at != "" {
			t.Errorf("%s says %q", name, at)
		}
	}
	for text, want := range map[string]bool{
		"npm install firn-id\n": true, "pip install firn-id": true, "pip install 'firn-id'": true,
		"npm i firn-id@0.1.0": true, "uv add firn-id": true,
		"npm install firn/clients/typescript/firn-id-0.1.0.tgz": false, "pip install ./firn/clients/python": false,
	} {
		if got := fromRegistry.MatchString(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
