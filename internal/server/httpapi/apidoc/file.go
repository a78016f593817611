package apidoc

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// file is what is served at a path. It does not change.
type file struct {
	contentType string
	etag        string // within quotes
	data        []byte
	zipped      bool // data is compressed by gzip
}

func newFile(contentType string, data []byte) *file {
	sum := sha256.Sum256(data)
	return &file{contentType: contentType, etag: hex.EncodeToString(sum[:8]), data: data}
}

func newZipped(contentType string, data []byte) *file {
	f := newFile(contentType, data)
	f.zipped = true
	return f
}

// serve answers with the file. Browsers keep it, and ask each time whether it is still the same.
func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	h, data, etag := w.Header(), f.data, f.etag
	h.Set("Content-Type", f.contentType)
	h.Set("Cache-Control", "no-cache")
	if f.zipped {
		h.Set("Vary", "Accept-Encoding")
		if takesGzip(r) {
			h.Set("Content-Encoding", "gzip")
		} else {
			data, etag = unzip(data), etag+"-plain"
		}
	}
	h.Set("ETag", `"`+etag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
}

// takesGzip tells whether a client says that it reads gzip, as browsers do.
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
