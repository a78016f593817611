// Package pages serves web pages whose files are in the program. A page can load files from its own server only and run
// no other script, and no other site can show it in a frame.
package pages

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Secure sets the headers that protect a page. Images are the sources that it may show images from, such as 'self'.
func Secure(h http.Header, images string) {
	h.Set("Content-Security-Policy",
		"default-src 'none'; script-src 'self'; style-src 'self'; img-src "+images+"; connect-src 'self'; "+
			"base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
}

// Redirect sends browsers on to a path relative to the one that they asked for. A proxy may have taken a prefix off
// that one.
func Redirect(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusSeeOther)
	}
}

// types are set here, as the system's tables differ between machines.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".json": "application/json",
	".svg":  "image/svg+xml",
	".txt":  "text/plain; charset=utf-8",
}

// Files are the files of a page by their names.
type Files map[string]*File

// Read adds the files in a directory. It panics if that fails, as fsys is embedded in the program.
func (all Files) Read(fsys fs.FS, dir string) {
	entries, err := fs.ReadDir(fsys, dir)
	for _, e := range entries {
		var data []byte
		if data, err = fs.ReadFile(fsys, path.Join(dir, e.Name())); err != nil {
			break
		}
		f := New(e.Name(), data)
		all[f.name] = f
	}
	if err != nil {
		panic(err)
	}
}

// Serve answers with a file below a root; its index.html is at the root itself. It returns false, and does not answer,
// if there is no such file.
func (all Files) Serve(w http.ResponseWriter, r *http.Request, root string) bool {
	name, below := strings.CutPrefix(r.URL.Path, root)
	switch name {
	case "":
		name = "index.html"
	case "index.html":
		return false
	}
	f, ok := all[name]
	if !below || !ok {
		return false
	}
	f.Serve(w, r)
	return true
}

// File is a file. It does not change. Make it with New.
type File struct {
	name  string
	etag  string
	data  []byte
	plain func() []byte // data, decompressed at the first call; nil: data is not compressed
}

// New returns a file; the end of its name tells its type. Data is compressed by gzip if the name ends in .gz, which the
// file is then served without.
func New(name string, data []byte) *File {
	sum := sha256.Sum256(data)
	name, zipped := strings.CutSuffix(name, ".gz")
	f := &File{name: name, etag: hex.EncodeToString(sum[:8]), data: data}
	if zipped {
		f.plain = sync.OnceValue(func() []byte { return unzip(data) })
	}
	return f
}

// Serve answers with the file. Browsers keep it, and ask each time whether it is still the same.
func (f *File) Serve(w http.ResponseWriter, r *http.Request) {
	h, etag := w.Header(), f.etag
	var data io.ReadSeeker = bytes.NewReader(f.data)
	h.Set("Content-Type", types[path.Ext(f.name)])
	h.Set("Cache-Control", "no-cache")
	if f.plain != nil {
		h.Set("Vary", "Accept-Encoding")
		if takesGzip(r) {
			h.Set("Content-Encoding", "gzip")
		} else {
			data, etag = &unzipped{file: f}, etag+"-plain"
		}
	}
	h.Set("ETag", `"`+etag+`"`)
	http.ServeContent(w, r, "", time.Time{}, data)
}

// takesGzip tells whether a client accepts gzip, as browsers do.
func takesGzip(r *http.Request) bool {
	for coding := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		name, quality, weighted := strings.Cut(coding, ";")
		if strings.TrimSpace(name) != "gzip" {
			continue
		}
		q, err := strconv.ParseFloat(strings.TrimPrefix(strings.TrimSpace(quality), "q="), 64)
		return !weighted || err == nil && q > 0
	}
	return false
}

// unzipped reads a compressed file as it was before. It is decompressed when it is read: an answer without a body needs
// only its length.
type unzipped struct {
	file *File
	at   int64
}

// Seek implements [io.Seeker].
func (u *unzipped) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += u.at
	case io.SeekEnd:
		offset += int64(binary.LittleEndian.Uint32(u.file.data[len(u.file.data)-4:])) // RFC 1952: ISIZE
	}
	u.at = offset
	return offset, nil
}

// Read implements [io.Reader].
func (u *unzipped) Read(b []byte) (int, error) {
	data := u.file.plain()
	if u.at >= int64(len(data)) {
		return 0, io.EOF
	}
	n := copy(b, data[u.at:])
	u.at += int64(n)
	return n, nil
}

// unzip panics when the file is damaged: a test reads each.
func unzip(data []byte) []byte {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err == nil {
		data, err = io.ReadAll(z)
	}
	if err != nil {
		panic(err)
	}
	return data
}
