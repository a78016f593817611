package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/server"
	"github.com/firn-id/firn/internal/server/grpcapi"
	"github.com/firn-id/firn/internal/server/httpapi"
	"github.com/firn-id/firn/internal/server/respapi"
)

const errorsHead = `# Errors

` + remake + `
The same codes come in every protocol: in the body over HTTP (` + "`error.code`" + `), as the ` + "`reason`" + ` of a ` + "`google.rpc.ErrorInfo`" + ` with the domain ` + "`firn`" + ` over gRPC, and as the first
word of an error to Redis clients. A message beside it says what was given and what would be right, or why it is so. Where another try may help, it says when: ` + "`Retry-After`" + ` in seconds, or a
` + "`google.rpc.RetryInfo`" + `.

| code | HTTP | gRPC | Redis | when |
|---|---|---|---|---|
`

func errorsPage(t *testing.T) string {
	page := errorsHead
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", "internal", "server", "code.go"), nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || len(v.Values) != 1 || v.Comment == nil {
			return true
		}
		kind, ok := v.Type.(*ast.Ident)
		if !ok || kind.Name != "Code" {
			return true
		}
		text, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		code := server.Code(text)
		if httpapi.StatusOf(code) != 0 { // others are not told to callers
			page += fmt.Sprintf("| `%s` | %d | `%s` | `%s` | %s |\n", code, httpapi.StatusOf(code), grpcapi.StatusOf(code), respapi.WordOf(code), strings.TrimSpace(v.Comment.Text()))
		}
		return true
	})
	return page + "\nOnly over HTTP:\n\n| code | HTTP | when |\n|---|---|---|\n" + onlyHTTP(t) + `
Redis clients also get ` + "`ERR`" + ` for what is no command, ` + "`WRONGPASS`" + ` for a token that is unknown, and ` + "`NOPROTO`" + ` for a version of the protocol that there is not.
`
}

// onlyHTTP are the rows of codes that the HTTP interface has for itself.
func onlyHTTP(t *testing.T) string {
	about := map[string]string{
		"cross_origin":       "a browser sent it from another site's page",
		"method_not_allowed": "the path takes other methods: `Allow` says which",
		"not_found":          "there is no such path",
		"too_large":          "a body of more than 64 KiB",
		"unknown_position":   "the log does not go back, or has not come, that far; the message says from where to where it goes",
	}
	statuses := map[string]int{
		"StatusForbidden": http.StatusForbidden, "StatusMethodNotAllowed": http.StatusMethodNotAllowed, "StatusNotFound": http.StatusNotFound,
		"StatusRequestEntityTooLarge": http.StatusRequestEntityTooLarge,
	}
	names, err := filepath.Glob(filepath.Join("..", "..", "server", "httpapi", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`writeError\(w, http\.(\w+), (?:"(\w+)"|(unknownPosition))`).FindAllStringSubmatch(string(data), -1) {
			code := m[2]
			if m[3] != "" {
				code = "unknown_position"
			}
			if statuses[m[1]] == 0 || about[code] == "" {
				t.Errorf("%s: %s: a status or code that this test does not know", name, m[0])
			}
			rows = append(rows, fmt.Sprintf("| `%s` | %d | %s |\n", code, statuses[m[1]], about[code]))
		}
	}
	slices.Sort(rows)
	return strings.Join(slices.Compact(rows), "")
}
