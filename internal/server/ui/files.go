package ui

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"
)

// policy lets the page load and ask its own server only, run no script and use no style that is not a file of it, and
// nobody else show it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func secure(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
}

//go:embed page
var embedded embed.FS

// file is a file of the page. It does not change.
type file struct {
	data []byte
	etag string
}

// files are the files of the page, by name. They are read when the first is asked for, and not at the start of every command.
var files = sync.OnceValue(func() map[string]file {
	all := map[string]file{}
	err := fs.WalkDir(embedded, "page", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := embedded.ReadFile(name)
		sum := sha256.Sum256(data)
		all[strings.TrimPrefix(name, "page/")] = file{data, `"` + hex.EncodeToString(sum[:8]) + `"`}
		return err
	})
	if err != nil {
		panic(err) // the program would not have been built without them
	}
	return all
})

// types are told here, as the system's tables differ from machine to machine.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// serveFile answers with a file of the page. It returns false, and answers nothing, when there is no such file. Browsers
// keep files, and ask each time whether they are still the same.
func serveFile(w http.ResponseWriter, r *http.Request) bool {
	name, below := strings.CutPrefix(r.URL.Path, Root)
	switch name {
	case "":
		name = "index.html"
	case "index.html":
		return false // it has one address
	}
	f, ok := files()[name]
	if !below || !ok {
		return false
	}
	w.Header().Set("Content-Type", types[path.Ext(name)])
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("ETag", f.etag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.data))
	return true
}
