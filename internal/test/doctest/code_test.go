package doctest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/firn-id/firn/internal/test/testenv"
)

// declared is what each block of Go has around it.
const declared = `ctx context.Context, store storepkg.Store, m *member.Member, s *member.Sequencer, g *firn.Generator,
	c *client.Client, nodes []string, ids []firn.ID, db *sql.DB`

// packages are what blocks of Go may import, by name.
var packages = map[string]string{
	"firn": "github.com/firn-id/firn", "client": "github.com/firn-id/firn/client",
	"member": "github.com/firn-id/firn/member", "sequencer": "github.com/firn-id/firn/sequencer",
	"etcdstore": "github.com/firn-id/firn/store/etcdstore", "memstore": "github.com/firn-id/firn/store/memstore",
	"pgstore":  "github.com/firn-id/firn/store/pgstore",
	"storepkg": "github.com/firn-id/firn/store",
	"context":  "context", "errors": "errors", "fmt": "fmt", "http": "net/http", "log": "log", "os": "os",
	"signal": "os/signal", "slog": "log/slog", "sql": "database/sql", "time": "time",
}

// Every block of Go compiles.
func TestGoCompiles(t *testing.T) {
	var blocks []block
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if b.language == "go" {
				blocks = append(blocks, b)
			}
		}
	}
	for _, problem := range compile(t, blocks) {
		t.Error(problem)
	}
	wrong := block{page: "here.md", line: 1, lines: []string{"id, err := g.Nxt(ctx)"}}
	if problems := compile(t, []block{wrong}); len(problems) != 1 || !strings.Contains(problems[0], "here.md:2:") {
		t.Errorf("a mistake gave %q, want one in here.md on line 2", problems)
	}
}

// compile compiles each block as a function, and returns what the compiler says, except that variables are not used.
func compile(t *testing.T, blocks []block) (problems []string) {
	t.Helper()
	dir := t.TempDir()
	overlay := map[string]map[string]string{"Replace": {}}
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range blocks {
		body := fmt.Sprintf("func block%d(%s) error {\n{\n//line %s:%d\n%s}\nreturn nil\n}\n", i, declared, b.page,
			b.line+1, b.text())
		var source strings.Builder
		source.WriteString("package main\n")
		for name, path := range packages {
			if regexp.MustCompile(`\b` + name + `\.`).MatchString(body) {
				fmt.Fprintf(&source, "import %s %q\n", name, path)
			}
		}
		name := filepath.Join(dir, fmt.Sprintf("block%d.go", i))
		if err := os.WriteFile(name, []byte(source.String()+body), 0o644); err != nil {
			t.Fatal(err)
		}
		overlay["Replace"][filepath.Join(top, "docs", "code", filepath.Base(name))] = name
	}
	data, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(name, data, 0o644); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("go", "build", "-overlay", name, "-gcflags=-e", "-o", os.DevNull, "./docs/code")
	c.Dir = root
	out, err := c.CombinedOutput()
	if err == nil {
		t.Fatalf("there was nothing to complain about, not even main: %s", out)
	}
	problems = linesOf(string(out))
	return slices.DeleteFunc(problems, func(line string) bool {
		return strings.HasPrefix(line, "#") || strings.Contains(line, "declared and not used") ||
			strings.Contains(line, "function main is undeclared")
	})
}

// JSON is JSON, and YAML is what firn serve reads.
func TestDataCanBeRead(t *testing.T) {
	testenv.Slow(t)
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if err := readable(t, b); err != nil {
				t.Errorf("%v: %v", b, err)
			}
		}
	}
	for _, wrong := range []block{
		{language: "json", lines: []string{`{"a": 1,}`}},
		{language: "yaml", lines: []string{"http-adr: :8080"}},
		{language: "yaml", lines: []string{"- name: a", "  sha256: 12"}},
		{language: "yaml", lines: []string{"a: b: c"}},
	} {
		if readable(t, wrong) == nil {
			t.Errorf("nothing is wrong with %q", wrong.lines)
		}
	}
}

func readable(t *testing.T, b block) error {
	t.Helper()
	switch b.language {
	case "json":
		var any any
		return json.Unmarshal([]byte(b.text()), &any)
	case "yaml":
		var top yaml.Node
		if err := yaml.Unmarshal([]byte(b.text()), &top); err != nil || len(top.Content) == 0 {
			return fmt.Errorf("nothing in it, or an error: %w", err)
		}
		name := filepath.Join(t.TempDir(), "file.yaml")
		if err := os.WriteFile(name, []byte(b.text()), 0o600); err != nil {
			t.Fatal(err)
		}
		switch content := top.Content[0].Content; {
		case top.Content[0].Kind == yaml.SequenceNode:
			return firnReads(t, "--tokens", name)
		case !slices.ContainsFunc(content, func(n *yaml.Node) bool { return slices.Contains(others, n.Value) }):
			return firnReads(t, "--config", name)
		}
	}
	return nil
}

// others are keys in files of Kubernetes, Prometheus and Docker.
var others = []string{"kind", "groups", "scrape_configs", "services"}

// firnReads has firn serve read a file. It can't serve afterwards, because the data directory can't exist.
func firnReads(t *testing.T, flag, name string) error {
	t.Helper()
	bin, err := programs()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(filepath.Join(bin, "firn"), "serve", flag, name, "--http-addr=127.0.0.1:0", "--admin-addr=none",
		"--data-dir=/dev/null/none")
	out, err := c.CombinedOutput()
	if c.ProcessState == nil {
		t.Fatal(err)
	}
	const wrongConfiguration = 78
	if c.ProcessState.ExitCode() == wrongConfiguration {
		return fmt.Errorf("firn serve %s: %s", flag, out)
	}
	return nil
}
