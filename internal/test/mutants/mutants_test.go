package main

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/test/overlay"
)

// Every fault has its place in the code, and compiles. This takes seconds; running all mutants takes minutes.
func TestEveryMutantCompiles(t *testing.T) {
	t.Chdir(filepath.Join("..", "..", ".."))
	all := every()
	c := newChecker(t, all)
	for _, m := range all {
		text, err := overlay.Edit(m.file, m.old, m.change)
		if err == nil {
			err = c.check(m.file, text)
		}
		if err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
	}
}

// checker checks packages in which one file is replaced.
type checker struct {
	files    map[string][]string // by the package's directory
	fset     *token.FileSet
	importer types.Importer // of what the compiler wrote
}

func newChecker(t *testing.T, mutants []mutant) *checker {
	list := []string{"list", "-export", "-deps", "-json=Dir,ImportPath,Export,GoFiles"}
	for _, m := range mutants {
		if dir := "./" + filepath.Dir(m.file); !slices.Contains(list, dir) {
			list = append(list, dir)
		}
	}
	cmd := exec.Command("go", list...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	c := &checker{files: map[string][]string{}, fset: token.NewFileSet()}
	exports := map[string]string{}
	packages := json.NewDecoder(out)
	for {
		var p struct {
			Dir, ImportPath, Export string
			GoFiles                 []string
		}
		if err := packages.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		c.files[p.Dir] = p.GoFiles
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	c.importer = importer.ForCompiler(c.fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	return c
}

// check returns the first error of the package of a file that is replaced by a text.
func (c *checker) check(file, text string) error {
	file, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	var files []*ast.File
	for _, name := range c.files[filepath.Dir(file)] {
		name = filepath.Join(filepath.Dir(file), name)
		var src any
		if name == file {
			src = text
		}
		f, err := parser.ParseFile(c.fset, name, src, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	config := types.Config{Importer: c.importer}
	_, err = config.Check(strings.TrimSuffix(filepath.Base(file), ".go"), c.fset, files, nil)
	return err
}
