package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/service/httpapi/apidoc"
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
A node serves the whole description, with schemas and examples, as OpenAPI at
` + "`/openapi.json`" + `, and at ` + "`/docs/`" + ` as a page to try the calls. The column
*right* says [who may make a call](security.md#who-may-do-what).

`

const httpTail = `
Errors are ` + "`{\"error\": {\"code\": \"...\", \"message\": \"...\"}}`" + ` with one of the
[codes](errors.md). Unless their sequencer
[scatters](sequencers.md#keys-that-must-not-land-on-one-shard) them, the IDs of one answer ascend;
those of one connection to one node, too, if the node has one node ID of the sequencer, as by
default.
`

func httpPage(t *testing.T) string {
	d := readDocument(t)
	always, shared := d.everywhere(t)
	var page strings.Builder
	page.WriteString(httpHead)
	fmt.Fprintf(&page, "Besides the answers shown, each call under `/api/v1` can have %s.\n",
		strings.Join(always, ", "))
	for _, tag := range d.Tags {
		fmt.Fprintf(&page, "\n## %s\n\n%s\n\n| call | right | | answers |\n|---|---|---|---|\n", tag.Name,
			tag.Description)
		for _, path := range pathsInOrder(t) {
			for _, method := range methods {
				o, ok := d.Paths[path][method]
				if !ok || !slices.Contains(o.Tags, tag.Name) {
					continue
				}
				text := []string{o.Summary + "."}
				if about := aboutRights.ReplaceAllString(o.Description, ""); about != "" {
					text = append(text, strings.ReplaceAll(about, "\n", " "))
				}
				for _, p := range o.Parameters {
					if !slices.Contains(shared, p.Ref) {
						text = append(text, d.parameter(p.Ref))
					}
				}
				var answers []string
				for _, status := range slices.Sorted(maps.Keys(o.Responses)) {
					if strings.HasPrefix(path, "/api/v1/") && slices.Contains(always, status) {
						continue
					}
					r := o.Responses[status]
					if status[0] == '2' && r.Description != "" {
						status += ": " + r.Description
					}
					answers = append(answers, status)
				}
				fmt.Fprintf(&page, "| `%s %s` | %s | %s | %s |\n", strings.ToUpper(method), path, o.Right,
					strings.Join(text, " "), joinAnswers(answers))
			}
		}
	}
	page.WriteString("\n## Parameters\n\n")
	for _, ref := range shared {
		fmt.Fprintf(&page, "- %s\n", d.parameter(ref))
	}
	page.WriteString(httpTail)
	return page.String()
}

// aboutRights is the part of a description that the column of rights says, too.
var aboutRights = regexp.MustCompile(`(?s)\s*\*\*(Administration|Attaching):\*\*.*`)

var methods = []string{"get", "post", "delete"}

// everywhere returns the statuses that every call under /api/v1 can have, and the parameters that several calls have.
func (d document) everywhere(t *testing.T) (always, shared []string) {
	statuses, parameters, calls := map[string]int{}, map[string]int{}, 0
	for _, path := range pathsInOrder(t) {
		for _, method := range methods {
			o, ok := d.Paths[path][method]
			if !ok || !strings.HasPrefix(path, "/api/v1/") {
				continue
			}
			calls++
			for status := range o.Responses {
				statuses[status]++
			}
			for _, p := range o.Parameters {
				if parameters[p.Ref]++; parameters[p.Ref] == 2 {
					shared = append(shared, p.Ref)
				}
			}
		}
	}
	for _, status := range slices.Sorted(maps.Keys(statuses)) {
		if statuses[status] == calls && status[0] != '2' {
			always = append(always, status)
		}
	}
	return always, shared
}

// parameter describes a parameter by its reference.
func (d document) parameter(ref string) string {
	in := d.Components.Parameters[filepath.Base(ref)]
	about := fmt.Sprintf("`%s`: %s", in.Name, in.Description)
	if s := in.Schema; s.Minimum != nil && s.Maximum != nil {
		about += fmt.Sprintf(" %.0f to %.0f.", s.Minimum, s.Maximum)
	}
	return about
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
	for _, m := range regexp.MustCompile(`(?m)^ {4}"(/[^"]*)": \{`).
		FindAllStringSubmatch(string(apidoc.Document()), -1) {
		paths = append(paths, m[1])
	}
	if d := readDocument(t); len(paths) != len(d.Paths) {
		t.Fatalf("%d paths were found in the text, and there are %d", len(paths), len(d.Paths))
	}
	return paths
}
