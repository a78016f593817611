// Command pauses tests a process that is paused between any two statements of its hot path, the way from a caller to an
// ID. It builds the code with a call before each of those statements, in which a test can hold the caller. Run it in
// the module's root:
//
//	go run ./internal/test/pauses
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"slices"

	"github.com/firn-id/firn/internal/test/overlay"
)

// The hot path: functions by file, and the name of the call there.
var hotPath = []struct {
	file, call string
	functions  []string
}{
	{
		"generator.go", "PausePoint",
		[]string{"Next", "TryNext", "Fill", "TryFill", "quick", "reserve", "enter", "read", "now"},
	},
	{"coarse_clock.go", "PausePoint", []string{"Now", "Sync", "look", "wake"}},
	{"local.go", "PausePoint", []string{"Next", "TryNext", "has", "take"}},
	{"internal/core/peer/local.go", "firn.PausePoint", []string{"Next", "use"}},
	{"internal/core/peer/sequencer.go", "firn.PausePoint", []string{"Next", "Fill", "FillAfter", "take"}},
}

const declaration = `package firn

// PausePoint is called before every statement of the hot path.
var PausePoint = func(point string) {}
`

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "pauses:", err)
		os.Exit(1)
	}
}

func run() error {
	files := map[string]string{"pause_point.go": declaration}
	for _, part := range hotPath {
		text, err := os.ReadFile(part.file)
		if err != nil {
			return err
		}
		files[part.file], err = withPoints(part.file, string(text), part.call, part.functions)
		if err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp("", "firn-pauses")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	argument, err := overlay.Write(dir, files)
	if err != nil {
		return err
	}
	test := exec.Command("go", "test", argument, "-tags=pausepoints", "-v", "-run=^TestPausedAtEveryPoint$",
		"./internal/core/peer")
	test.Stdout, test.Stderr = os.Stdout, os.Stderr
	return test.Run()
}

// withPoints returns the source text with a call before each statement of the functions.
func withPoints(name, text, call string, functions []string) (string, error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, name, text, 0)
	if err != nil {
		return "", err
	}
	type insertion struct {
		at   int
		text string
	}
	var insertions []insertion
	for _, d := range parsed.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || !slices.Contains(functions, f.Name.Name) {
			continue
		}
		before := func(list []ast.Stmt) {
			for _, s := range list {
				if _, ok := s.(*ast.CaseClause); ok {
					continue
				}
				p := files.Position(s.Pos())
				insertions = append(insertions,
					insertion{p.Offset, fmt.Sprintf("%s(%q); ", call, fmt.Sprintf("%s line %d", f.Name.Name, p.Line))})
			}
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BlockStmt:
				before(n.List)
			case *ast.CaseClause:
				before(n.Body)
			}
			return true
		})
	}
	if len(insertions) == 0 {
		return "", fmt.Errorf("%s has none of the functions %v", name, functions)
	}
	slices.SortFunc(insertions, func(a, b insertion) int { return b.at - a.at })
	for _, i := range insertions {
		text = text[:i.at] + i.text + text[i.at:]
	}
	return text, nil
}
