package apidoc

import (
	"embed"
	"net/http"
	"strings"
	"sync"
)

// Root is the path below which the page is served.
const Root = "/docs/"

// policy lets the page load and ask its own server only, and nobody else show it. Swagger UI has pictures in its style
// sheet, which are data.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

//go:embed page swagger-ui/*.gz swagger-ui/LICENSE swagger-ui/NOTICE swagger-ui/*.txt
var embedded embed.FS

// page has the files of the page by their names below Root. They are read when they are first asked for, and not at the
// start of every command.
var page = sync.OnceValue(func() map[string]*file {
	return map[string]*file{
		"":                     newFile("text/html; charset=utf-8", read("page/index.html")),
		"page.js":              newFile("text/javascript; charset=utf-8", read("page/page.js")),
		"page.css":             newFile("text/css; charset=utf-8", read("page/page.css")),
		"icon.svg":             newFile("image/svg+xml", read("page/icon.svg")),
		"swagger-ui-bundle.js": newZipped("text/javascript; charset=utf-8", read("swagger-ui/swagger-ui-bundle.js.gz")),
		"swagger-ui.css":       newZipped("text/css; charset=utf-8", read("swagger-ui/swagger-ui.css.gz")),
		"licence.txt": newFile("text/plain; charset=utf-8",
			read("swagger-ui/NOTICE", "swagger-ui/LICENSE", "swagger-ui/swagger-ui-bundle.js.LICENSE.txt")),
	}
})

// read returns embedded files, one after the other.
func read(names ...string) (all []byte) {
	for _, name := range names {
		data, err := embedded.ReadFile(name)
		if err != nil {
			panic(err) // the program would not have been built without it
		}
		all = append(all, data...)
	}
	return all
}

// ServePage answers with the page, or with a file of it, at the paths below Root. It returns false, and answers
// nothing, when there is no such file.
func ServePage(w http.ResponseWriter, r *http.Request) bool {
	name, below := strings.CutPrefix(r.URL.Path, Root)
	f, ok := page()[name]
	if !below || !ok {
		return false
	}
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	f.serve(w, r)
	return true
}
