package doctest

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// form is what a file in .github/ISSUE_TEMPLATE may have: an issue form, or the config of their page.
type form struct {
	Name, Description string
	Labels            []string
	Body              []struct {
		Type, ID    string
		Attributes  struct{ Label, Description, Placeholder, Value string }
		Validations struct{ Required bool }
	}

	Blank    bool                                `yaml:"blank_issues_enabled"`
	Contacts []struct{ Name, URL, About string } `yaml:"contact_links"`
}

// GitHub leaves out a form that is wrong. Vulnerabilities are reported where SECURITY.md says, not in an issue.
func TestIssueForms(t *testing.T) {
	private := regexp.MustCompile(`https://\S+/advisories/new`).
		FindString(readPage(t, filepath.Join(root, "SECURITY.md")).text)
	here := regexp.MustCompile(`https://github\.com/firn-id/firn/blob/main/([\w./-]*\w)`)
	for name, contacts := range map[string]bool{"bug.yml": false, "feature.yml": false, "config.yml": true} {
		data, err := os.ReadFile(filepath.Join(root, ".github", "ISSUE_TEMPLATE", name))
		if err != nil {
			t.Fatal(err)
		}
		var f form
		d := yaml.NewDecoder(bytes.NewReader(data))
		d.KnownFields(true)
		if err := d.Decode(&f); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if contacts != (len(f.Contacts) > 0) || contacts == (f.Name != "" && f.Description != "" && len(f.Body) > 0) {
			t.Errorf("%s: want contact links, or a name, a description and a body: %+v", name, f)
		}
		ids := map[string]bool{}
		for i, b := range f.Body {
			text := b.Type == "markdown" && b.ID == "" && b.Attributes.Value != ""
			field := (b.Type == "input" || b.Type == "textarea") && b.ID != "" && !ids[b.ID] && b.Attributes.Label != ""
			if !text && !field {
				t.Errorf("%s: body[%d] is %+v; want markdown with a value, or an input or a textarea with an id of "+
					"its own and a label", name, i, b)
			}
			ids[b.ID] = true
		}
		for _, m := range here.FindAllStringSubmatch(string(data), -1) {
			if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if name != "feature.yml" && (private == "" || !strings.Contains(string(data), private)) {
			t.Errorf("%s does not have %q, where SECURITY.md has vulnerabilities reported", name, private)
		}
	}
}
