package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/grpcapi"
	"github.com/firn-id/firn/internal/service/httpapi"
	"github.com/firn-id/firn/internal/service/respapi"
)

const errorsHead = `# Errors

` + remake + `
Every protocol has the same codes: in the body over HTTP (` + "`error.code`" + `), as the ` + "`reason`" + ` of a
` + "`google.rpc.ErrorInfo`" + ` with the domain ` + "`firn`" + ` over gRPC, and as the first word of an error to Redis
clients. A message beside the code says what was given and what would be right. Where a retry may
help, the answer says when: ` + "`Retry-After`" + ` in seconds, or a ` + "`google.rpc.RetryInfo`" + `.

| code | HTTP | gRPC | Redis | when |
|---|---|---|---|---|
`

func errorsPage(t *testing.T) string {
	page, onlyHTTP := errorsHead, ""
	for _, file := range []string{"calls/code.go", "httpapi/refuse.go"} {
		for _, c := range codesOf(t, filepath.Join("..", "..", "internal", "service", file)) {
			switch status := httpapi.StatusOf(c.code); {
			case status == 0: // callers never get it
			case grpcapi.StatusOf(c.code) != 0:
				page += fmt.Sprintf("| `%s` | %d | `%s` | `%s` | %s |\n", c.code, status, grpcapi.StatusOf(c.code), respapi.WordOf(c.code), c.about)
			default:
				onlyHTTP += fmt.Sprintf("| `%s` | %d | %s |\n", c.code, status, c.about)
			}
		}
	}
	if onlyHTTP == "" {
		t.Error("no codes are only for HTTP")
	}
	return page + "\nOnly over HTTP:\n\n| code | HTTP | when |\n|---|---|---|\n" + onlyHTTP + `
Redis clients also get ` + "`ERR`" + ` for anything that is not a command, ` + "`WRONGPASS`" + ` for an unknown
token, and ` + "`NOPROTO`" + ` for an unsupported protocol version.
`
}

type documented struct {
	code  calls.Code
	about string
}

// codesOf returns the codes that a file declares, with their comments.
func codesOf(t *testing.T, name string) (all []documented) {
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || len(v.Values) != 1 || v.Comment == nil {
			return true
		}
		text, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, documented{calls.Code(text), strings.TrimSpace(v.Comment.Text())})
		return true
	})
	return all
}
