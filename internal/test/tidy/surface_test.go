package tidy

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// api/go.txt lists what applications can use of each public package, so that a review sees when that changes:
//
//	go test ./internal/test/tidy -update
func TestTheSurfaceIsKnown(t *testing.T) {
	var b strings.Builder
	b.WriteString("What applications can import, by package, one line each. Written by: go test ./internal/test/tidy " +
		"-update\n\n")
	entries := 0
	for _, pkg := range public {
		if pkg == "api/firnv1" { // is made from api/firn/v1
			continue
		}
		lines := surface(t, pkg)
		entries += len(lines)
		fmt.Fprintf(&b, "# %s\n\n%s\n\n", path.Join(module, pkg), strings.Join(lines, "\n"))
	}
	fmt.Fprintf(&b, "# %d entries\n", entries)
	file := filepath.Join(root, "api", "go.txt")
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, _ := os.ReadFile(file); string(got) != b.String() {
		t.Errorf("%s is not what the public packages export; if that is meant: go test ./internal/test/tidy -update",
			file)
	}
}

// surface returns a line for each exported name, method and field of a package, in order. What an alias stands for in
// this module is listed with it.
func surface(t *testing.T, pkg string) (lines []string) {
	t.Helper()
	fset, files := parsed(t, pkg)
	for _, f := range files {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && (d.Recv == nil || receiver(d).IsExported()) {
					lines = append(lines, signature(fset, d))
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					lines = append(lines, exported(t, fset, f, d.Tok, s)...)
				}
			}
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// parsed returns the files of a package for every system, without tests.
func parsed(t *testing.T, pkg string) (*token.FileSet, []*ast.File) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, pkg, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return fset, files
}

// isReceiver is the beginning of a method, up to the name of its type.
var isReceiver = regexp.MustCompile(`^func \((\w+ )?\*?$`)

func receiver(d *ast.FuncDecl) *ast.Ident {
	of := d.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if index, ok := of.(*ast.IndexExpr); ok {
		of = index.X
	}
	return of.(*ast.Ident)
}

func signature(fset *token.FileSet, d *ast.FuncDecl) string {
	bare := *d
	bare.Body, bare.Doc = nil, nil
	return text(fset, &bare)
}

func text(fset *token.FileSet, node any) string {
	var b bytes.Buffer
	if err := (&printer.Config{Mode: printer.RawFormat}).Fprint(&b, fset, node); err != nil {
		panic(err)
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// exported returns the lines of a constant, a variable or a type.
func exported(t *testing.T, fset *token.FileSet, f *ast.File, kind token.Token, s ast.Spec) (lines []string) {
	switch s := s.(type) {
	case *ast.ValueSpec:
		for _, n := range s.Names {
			if n.IsExported() {
				lines = append(lines, kind.String()+" "+n.Name)
			}
		}
	case *ast.TypeSpec:
		if !s.Name.IsExported() {
			return nil
		}
		sel, ok := s.Type.(*ast.SelectorExpr)
		if pkg := imported(f, sel); ok && s.Assign.IsValid() && pkg != "" {
			for _, line := range surface(t, pkg) { // of the type that it stands for
				if of := "type " + sel.Sel.Name; line == of || strings.HasPrefix(line, of+" ") ||
					strings.HasPrefix(line, of+".") {
					lines = append(lines, "type "+s.Name.Name+strings.TrimPrefix(line, of))
				} else if head, method, ok := strings.Cut(line, sel.Sel.Name+") "); ok && isReceiver.MatchString(head) {
					lines = append(lines, head+s.Name.Name+") "+method)
				}
			}
			return lines
		}
		lines = []string{"type " + s.Name.Name + of(fset, s)}
		switch body := s.Type.(type) {
		case *ast.StructType:
			lines = append(lines, members(fset, s.Name.Name, body.Fields)...)
		case *ast.InterfaceType:
			lines = append(lines, members(fset, s.Name.Name, body.Methods)...)
		}
	}
	return lines
}

// of says what kind of type a type is.
func of(fset *token.FileSet, s *ast.TypeSpec) string {
	switch s.Type.(type) {
	case *ast.StructType:
		return " struct"
	case *ast.InterfaceType:
		return " interface"
	}
	if s.Assign.IsValid() {
		return " = " + text(fset, s.Type)
	}
	return " " + text(fset, s.Type)
}

// members are the exported fields of a struct, or the methods of an interface.
func members(fset *token.FileSet, name string, list *ast.FieldList) (lines []string) {
	for _, field := range list.List {
		what := text(fset, field.Type)
		if embedded := what[strings.LastIndexAny(what, "*.")+1:]; len(field.Names) == 0 && ast.IsExported(embedded) {
			lines = append(lines, fmt.Sprintf("type %s.%s", name, what))
		}
		for _, n := range field.Names {
			if n.IsExported() {
				lines = append(lines, fmt.Sprintf("type %s.%s %s", name, n.Name, what))
			}
		}
	}
	return lines
}

// imported returns the folder of the package that a selector is of, if it is one of this module.
func imported(f *ast.File, sel *ast.SelectorExpr) string {
	if sel == nil {
		return ""
	}
	x, _ := sel.X.(*ast.Ident)
	for _, i := range f.Imports {
		name := strings.Trim(i.Path.Value, `"`)
		if pkg, ours := strings.CutPrefix(name, module+"/"); x != nil && ours && path.Base(pkg) == x.Name {
			return pkg
		}
	}
	return ""
}
