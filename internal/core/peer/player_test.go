package peer

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
)

// What the player owns needs no lock, since nobody but its goroutine, and those that it starts, can name it: no field,
// variable, parameter or result is a player, but for what makes one and runs it at once.
func TestNobodyElseHasThePlayer(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var named []string // where, besides receivers, somebody names the type or makes one
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			where := "a declaration"
			if fn, ok := d.(*ast.FuncDecl); ok {
				where = fn.Name.Name
				fn.Recv = nil
			}
			ast.Inspect(d, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok && (id.Name == "player" || id.Name == "newPlayer") {
					named = append(named, where+" in "+f.Name()+": "+id.Name)
				}
				return true
			})
		}
	}
	want := []string{
		"Start in member.go: newPlayer", "a declaration in player.go: player",
		"newPlayer in player.go: newPlayer", "newPlayer in player.go: player", "newPlayer in player.go: player",
	}
	if slices.Sort(named); !slices.Equal(named, want) {
		t.Errorf("the player is named by\n%s\nwant\n%s", strings.Join(named, "\n"), strings.Join(want, "\n"))
	}
}
