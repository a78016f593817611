package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/server/httpapi/apidoc"
)

// document is what is read of the OpenAPI document.
type document struct {
	Tags  []struct{ Name, Description string }
	Paths map[string]map[string]struct {
		Tags                 []string
		Summary, Description string
		Parameters           []struct {
			Ref string `json:"$ref"`
		}
		Right     string `json:"x-firn-right"`
		Responses map[string]struct {
			Ref         string `json:"$ref"`
			Description string
		}
	}
	Components struct {
		Parameters map[string]struct {
			Name, In, Description string
			Schema                struct {
				Minimum, Maximum, Default any
			}
		}
		Responses map[string]struct{ Description string }
	}
}

const httpHead = `# HTTP calls

` + remake + `
This is the OpenAPI document that a node serves at ` + "`/openapi.json`" + `, in short; ` + "`/docs/`" + ` on a node shows all of it, with schemas and examples, and tries the calls.
A call with the right *issue* is for whoever may take IDs, and one with *admin* for administrators: [who may do what](security.md#who-may-do-what).
`

func httpPage(t *testing.T) string {
	d := readDocument(t)
	var page strings.Builder
	page.WriteString(httpHead)
	for _, tag := range d.Tags {
		fmt.Fprintf(&page, "\n## %s\n\n%s\n\n| call | right | | answers |\n|---|---|---|---|\n", tag.Name, tag.Description)
		for _, path := range pathsInOrder(t) {
			for _, method := range []string{"get", "post", "delete"} {
				o, ok := d.Paths[path][method]
				if !ok || !slices.Contains(o.Tags, tag.Name) {
					continue
				}
				text := []string{o.Summary + "."}
				if about, _, _ := strings.Cut(o.Description, "**Administration:**"); strings.TrimSpace(about) != "" {
					text = append(text, strings.ReplaceAll(strings.TrimSpace(about), "\n", " "))
				}
				for _, p := range o.Parameters {
					in := d.Components.Parameters[filepath.Base(p.Ref)]
					about := fmt.Sprintf("`%s`: %s", in.Name, in.Description)
					if s := in.Schema; s.Minimum != nil && s.Maximum != nil {
						about += fmt.Sprintf(" %.0f to %.0f.", s.Minimum, s.Maximum)
					}
					text = append(text, about)
				}
				var answers []string
				for _, status := range slices.Sorted(func(yield func(string) bool) {
					for status := range o.Responses {
						if !yield(status) {
							return
						}
					}
				}) {
					r := o.Responses[status]
					if status[0] == '2' && r.Description != "" {
						status += ": " + r.Description
					}
					answers = append(answers, status)
				}
				fmt.Fprintf(&page, "| `%s %s` | %s | %s | %s |\n", strings.ToUpper(method), path, o.Right, strings.Join(text, " "), joinAnswers(answers))
			}
		}
	}
	page.WriteString("\nErrors are `{\"error\": {\"code\": \"...\", \"message\": \"...\"}}`; [errors](errors.md) lists the codes. The IDs that one connection gets from one node ascend.\n")
	return page.String()
}

// joinAnswers puts texts on lines of their own, and bare statuses on one.
func joinAnswers(answers []string) string {
	var made strings.Builder
	for i, a := range answers {
		switch {
		case i > 0 && strings.Contains(answers[i-1], ":"):
			made.WriteString("<br>")
		case i > 0:
			made.WriteString(", ")
		}
		made.WriteString(a)
	}
	return made.String()
}

func readDocument(t *testing.T) (d document) {
	t.Helper()
	if err := json.Unmarshal(apidoc.Document(), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// pathsInOrder are the paths as the document has them.
func pathsInOrder(t *testing.T) (paths []string) {
	t.Helper()
	for _, m := range regexp.MustCompile(`(?m)^ {4}"(/[^"]*)": \{`).FindAllStringSubmatch(string(apidoc.Document()), -1) {
		paths = append(paths, m[1])
	}
	if d := readDocument(t); len(paths) != len(d.Paths) {
		t.Fatalf("%d paths were found in the text, and there are %d", len(paths), len(d.Paths))
	}
	return paths
}
