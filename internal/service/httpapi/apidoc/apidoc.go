// Package apidoc describes the HTTP interface: an OpenAPI document, and a page to read it and to try the calls. All
// files are in the program: the page loads nothing from other servers.
package apidoc

import (
	"embed"
	"net/http"
	"slices"
	"sync"

	"github.com/firn-id/firn/internal/service/pages"
)

// Root is the path below which the page is served.
const Root = "/docs/"

var (
	//go:embed openapi.json
	document []byte

	//go:embed page swagger-ui/*.gz
	embedded embed.FS

	//go:embed swagger-ui/NOTICE
	notice []byte

	//go:embed swagger-ui/LICENSE
	licence []byte

	//go:embed swagger-ui/swagger-ui-bundle.js.LICENSE.txt
	others []byte
)

// The files are read when a browser first asks for them, and not at the start of every command.
var (
	documentFile = sync.OnceValue(func() *pages.File { return pages.New("openapi.json", document) })

	page = sync.OnceValue(func() pages.Files {
		const name = "licence.txt"
		all := pages.Files{name: pages.New(name, slices.Concat(notice, licence, others))}
		all.Read(embedded, "page")
		all.Read(embedded, "swagger-ui")
		return all
	})
)

// Document returns the OpenAPI document. It is written by hand; tests hold it to the handlers.
func Document() []byte { return document }

// ServeDocument answers with the document.
func ServeDocument(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	documentFile().Serve(w, r)
}

// ToPage sends who asks for Root without its last slash on to the page.
var ToPage = pages.Redirect("docs/")

// ServePage answers with the page, or with one of its files, below Root. It returns false, and does not answer, if
// there is no such file.
func ServePage(w http.ResponseWriter, r *http.Request) bool {
	pages.Secure(w.Header(), "'self' data:") // Swagger UI has images in its style sheet
	return page().Serve(w, r, Root)
}
