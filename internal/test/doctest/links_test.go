package doctest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)|(?:href|src)="([^"]+)"`)
	heading = regexp.MustCompile(`^#{1,6} +(.*?) *#*$`)
	code    = regexp.MustCompile("`[^`]*`")
	noWord  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// Every link leads to a file that is there, and to a heading in it. What is elsewhere on the network is not looked at.
func TestLinksLeadSomewhere(t *testing.T) {
	decisions, err := filepath.Glob(filepath.Join(root, "docs", "decisions", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	all := pages(t)
	for _, name := range append(decisions, filepath.Join(root, "CHANGELOG.md")) {
		all = append(all, readPage(t, name))
	}
	for _, p := range all {
		for _, problem := range badLinks(p) {
			t.Error(problem)
		}
	}
	wrong := page{
		name: "docs/x.md",
		text: "# A `b` c!\n[a](#a-b-c) [b](#b) [c](none.md) [d](../README.md#nowhere) [e](../README.md#firn) `[f](f)`",
	}
	if problems := badLinks(wrong); len(problems) != 3 {
		t.Errorf("%q, want three", problems)
	}
}

// Every page of docs is in the index, and every picture is on a page.
func TestNothingIsForgotten(t *testing.T) {
	index := readPage(t, filepath.Join(root, "docs", "README.md")).text
	var text strings.Builder
	for _, p := range pages(t) {
		text.WriteString(p.text)
		name, ok := strings.CutPrefix(p.name, "docs/")
		if ok && name != "README.md" && !strings.Contains(index, "("+name) {
			t.Errorf("%s is not in docs/README.md", p.name)
		}
	}
	pictures, err := filepath.Glob(filepath.Join(root, "docs", "pictures", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range pictures {
		if !strings.Contains(text.String(), "pictures/"+filepath.Base(name)) {
			t.Errorf("%s is on no page", name)
		}
	}
}

func badLinks(p page) (problems []string) {
	for i, line := range prose(p.text) {
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(line, ""), -1) {
			to := m[1] + m[2]
			if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
				continue
			}
			if err := leads(p, to); err != nil {
				problems = append(problems, fmt.Sprintf("%s:%d: %s: %v", p.name, i+1, to, err))
			}
		}
	}
	return problems
}

var codeIn = regexp.MustCompile("`([\\w.]+)` in \\[[^]]*\\]\\(([^)#]+)\\)")

// Where a page says `Type.Method` in [file.go](file.go), the file declares it.
func TestCodeIsWhereThePagesSay(t *testing.T) {
	all := pages(t)
	found := 0
	for _, p := range all {
		found += len(codeIn.FindAllString(p.text, -1))
		for _, problem := range notThere(p) {
			t.Error(problem)
		}
	}
	if found < 10 {
		t.Errorf("the pages say of %d names where they are, want the ten of docs/internals.md", found)
	}
	wrong := page{
		name: "docs/x.md",
		text: "`Generator.Next` in [g](../generator.go), `Generator.Nxt` in [g](../generator.go), `Next` in " +
			"[g](../generator.go)",
	}
	if problems := notThere(wrong); len(problems) != 2 {
		t.Errorf("%q, want two", problems)
	}
}

func notThere(p page) (problems []string) {
	for _, m := range codeIn.FindAllStringSubmatch(p.text, -1) {
		receiver, name := "", m[1]
		if of, method, ok := strings.Cut(name, "."); ok {
			receiver, name = `\(\w+ \*?`+of+`\) `, method
		}
		// " ": a method in JavaScript
		declares := regexp.MustCompile(`(?m)^(?:func ` + receiver + `|type |  )` + name + `\b`)
		text, err := os.ReadFile(filepath.Join(root, filepath.Dir(p.name), m[2]))
		if err != nil || !declares.Match(text) {
			problems = append(problems, fmt.Sprintf("%s: %s does not declare %s", p.name, m[2], m[1]))
		}
	}
	return problems
}

func leads(p page, to string) error {
	file, anchor, hasAnchor := strings.Cut(to, "#")
	text := p.text
	if file != "" {
		name := filepath.Join(root, filepath.Dir(p.name), file)
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		if !hasAnchor || info.IsDir() {
			return nil
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		text = string(data)
	}
	if !anchors(text)[anchor] {
		return fmt.Errorf("there is no heading #%s", anchor)
	}
	return nil
}

// anchors are the names that GitHub gives to headings.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	for _, line := range prose(text) {
		m := heading.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		name := link.ReplaceAllString(m[1], "]")
		name = strings.ReplaceAll(noWord.ReplaceAllString(strings.ToLower(name), ""), " ", "-")
		for n := 1; all[name]; n++ {
			if next := fmt.Sprintf("%s-%d", name, n); !all[next] {
				name = next
			}
		}
		all[name] = true
	}
	return all
}

// prose is a text's lines, those in fenced blocks empty.
func prose(text string) []string {
	lines, fenced := strings.Split(text, "\n"), false
	for i, line := range lines {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
			lines[i] = ""
		} else if fenced {
			lines[i] = ""
		}
	}
	return lines
}

// foreign are flags of other programs that the pages speak of without their names.
var foreign = []string{
	"--auto-compaction-mode", "--auto-compaction-retention", "--bump-revision", "--help",
	"--no-block", "--quick",
}

// Every flag in the prose is one of firn's, where it does not follow the name of another program.
func TestFlagsAreThere(t *testing.T) {
	flag := regexp.MustCompile("--[a-z][a-z-]+[a-z]")
	commands := readPage(t, filepath.Join(root, "docs", "commands.md")).text
	for _, p := range pages(t) {
		for i, line := range prose(p.text) {
			for _, span := range code.FindAllString(line, -1) {
				if !strings.HasPrefix(span, "`--") && !strings.HasPrefix(span, "`firn ") {
					continue
				}
				for _, name := range flag.FindAllString(span, -1) {
					if !slices.Contains(foreign, name) && !strings.Contains(commands, "`"+name+"`") {
						t.Errorf("%s:%d: %s: no command of firn has a flag %s", p.name, i+1, span, name)
					}
				}
			}
		}
	}
}
