package pages

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A compressed file is decompressed for the first answer that needs its content, and only then.
func TestDecompressedOnce(t *testing.T) {
	text := strings.Repeat("a line of a file\n", 10_000)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	f := New("file.js.gz", zipped.Bytes())
	calls, plain := 0, f.plain
	f.plain = func() []byte {
		calls++
		return plain()
	}
	ask := func(method string, headers ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "/file.js", nil)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		f.Serve(w, r)
		return w
	}
	if w := ask(http.MethodHead); w.Header().Get("Content-Length") != "170000" {
		t.Errorf("its length is %q", w.Header().Get("Content-Length"))
	} else if again := ask(http.MethodGet, "If-None-Match",
		w.Header().Get("ETag")); again.Code != http.StatusNotModified {
		t.Errorf("it has changed: %d", again.Code)
	}
	ask(http.MethodGet, "Accept-Encoding", "gzip")
	if w := ask(http.MethodGet, "Range", "bytes=200000-"); w.Code != http.StatusRequestedRangeNotSatisfiable ||
		calls != 0 {
		t.Errorf("what needs no content: %d, and it was read %d times", w.Code, calls)
	}
	if w := ask(http.MethodGet, "Range", "bytes=169995-"); w.Code != http.StatusPartialContent ||
		w.Body.String() != "file\n" {
		t.Errorf("a part is %d %q", w.Code, w.Body)
	}
	if w := ask(http.MethodGet); w.Body.String() != text {
		t.Errorf("%d bytes", w.Body.Len())
	}
	if a, b := plain(), plain(); &a[0] != &b[0] {
		t.Error("each answer has a copy of its own")
	}
}
