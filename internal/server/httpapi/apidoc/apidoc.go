// Package apidoc describes the HTTP interface: an OpenAPI document, and a page to read it and to try the calls. All of
// it is in the program: the page asks nobody but the server that it comes from.
package apidoc

import (
	_ "embed"
	"net/http"
	"sync"
)

//go:embed openapi.json
var document []byte

var documentFile = sync.OnceValue(func() *file { return newFile("application/json", document) })

// Document returns the OpenAPI document. It is written by hand; the tests of the handlers hold both to each other.
func Document() []byte { return document }

// ServeDocument answers with the document.
func ServeDocument(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	documentFile().serve(w, r)
}
