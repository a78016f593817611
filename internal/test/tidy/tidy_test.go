// Package tidy holds the house rules, as tests: which room may import what, and that every package
// says in one place what it is for.
package tidy

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	module = "github.com/firn-id/firn"
	root   = "../../.."
)

// public are the packages that applications build on. Everything else is internal, a program or an example.
var public = []string{
	".", "api/firnv1", "client", "member", "sequencer",
	"store", "store/etcdstore", "store/memstore", "store/pgstore", "store/quorum", "store/storetest", "store/zkstore",
}

// file is one Go source file of the module.
type file struct {
	name, room string
	parsed     *ast.File
}

func (f file) isTest() bool { return strings.HasSuffix(f.name, "_test.go") }

func sources(t *testing.T) (all []file) {
	t.Helper()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		if d.IsDir() {
			other := rel == "bench" || rel == "tools" || rel == "examples/databases" // modules of their own
			if other || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && rel != "." {
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ".go" {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly|parser.ParseComments)
		all = append(all, file{rel, path.Dir(filepath.ToSlash(rel)), parsed})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A copy of a process may have its random numbers too, so names and secrets are made by internal/base/fresh.
func TestNamesAreFresh(t *testing.T) {
	// certificates of a process
	others := []string{"internal/base/fresh", "internal/test/certtest", "store/quorum/internal/keyring"}
	for _, f := range sources(t) {
		for _, i := range f.parsed.Imports {
			if i.Path.Value == `"crypto/rand"` && !f.isTest() && !slices.Contains(others, f.room) {
				t.Errorf("%s imports crypto/rand; want internal/base/fresh", f.name)
			}
		}
	}
}

func TestTheWallsAreWhereTheyAreSaidToBe(t *testing.T) {
	for _, f := range sources(t) {
		if f.isTest() || f.room == "formal" { // which is nothing but tests
			continue
		}
		closed := f.parsed.Name.Name == "main" || slices.Contains(strings.Split(f.room, "/"), "internal")
		if closed == slices.Contains(public, f.room) {
			t.Errorf("%s can be imported by applications: %v; want that of exactly %v", f.name, !closed, public)
		}
	}
}

func TestEveryPackageHasOneComment(t *testing.T) {
	comments := map[string][]string{}
	for _, f := range sources(t) {
		if strings.HasSuffix(f.parsed.Name.Name, "_test") {
			continue
		}
		if _, ok := comments[f.room]; !ok {
			comments[f.room] = nil
		}
		if f.parsed.Doc != nil {
			comments[f.room] = append(comments[f.room], f.name)
		}
	}
	for room, files := range comments {
		if len(files) != 1 {
			t.Errorf("%s has %d package comments, want 1: %v", room, len(files), files)
		}
	}
}

// deps lists the packages that a package needs.
func deps(t *testing.T, flags ...string) (all []string) {
	t.Helper()
	list := exec.Command("go", append([]string{"list", "-deps"}, flags...)...)
	list.Dir = root
	var messages bytes.Buffer // as of downloads
	list.Stderr = &messages
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v: %s", err, messages.Bytes())
	}
	for line := range strings.Lines(string(out)) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ") // "firn_test [firn.test]" is a test build
		all = append(all, name)
	}
	return all
}

// The root package, with its tests, needs the standard library and nothing else.
func TestTheRootPackageNeedsTheStandardLibraryOnly(t *testing.T) {
	for _, name := range deps(t, "-test", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".") {
		if name != module && name != module+"_test" && name != module+".test" {
			t.Errorf("the root package needs %s", name)
		}
	}
}

// An application that embeds a member and uses an etcd elsewhere links no etcd server, and one whose store is another
// links nothing of etcd.
func TestEmbeddingAMemberLinksNoServer(t *testing.T) {
	const server = "go.etcd.io/etcd/server/"
	linksServer := func(pkg string) (linked bool, packages int) {
		all := deps(t, pkg)
		return slices.ContainsFunc(all, func(name string) bool { return strings.HasPrefix(name, server) }), len(all)
	}
	for pkg, most := range map[string]int{
		"./internal/core/peer": 138, "./store/etcdstore": 375, "./store/pgstore": 215,
		"./store/zkstore": 190, "./examples/orders": 411,
	} {
		if linked, packages := linksServer(pkg); linked || packages > most {
			t.Errorf("%s links %d packages, etcd's server among them: %v; want at most %d without it", pkg,
				packages, linked, most)
		}
	}
	for _, pkg := range []string{"./internal/core/peer", "./store/pgstore", "./store/zkstore"} {
		all := deps(t, pkg)
		if i := slices.IndexFunc(all, func(name string) bool {
			return strings.HasPrefix(name, "go.etcd.io/") || strings.HasPrefix(name, "google.golang.org/grpc")
		}); i >= 0 {
			t.Errorf("%s links %s; want no part of etcd, nor what its client needs", pkg, all[i])
		}
	}
	if linked, _ := linksServer("./store/quorum"); !linked {
		t.Errorf("quorum links no package of %s: this test looks for the wrong name", server)
	}
}
