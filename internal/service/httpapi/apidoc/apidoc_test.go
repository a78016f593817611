package apidoc_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/service/httpapi/apidoc"
)

func get(path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	switch {
	case path == "/openapi.json":
		apidoc.ServeDocument(w, r)
	case !apidoc.ServePage(w, r):
		w.WriteHeader(http.StatusNotFound)
	}
	return w
}

// Whatever the page loads is there, for browsers and for those that don't read gzip, and is asked for again only when
// it has changed. No other site may show the page, and none is asked by it.
func TestEveryFile(t *testing.T) {
	names := regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(get(apidoc.Root).Body.String(), -1)
	if len(names) < 6 {
		t.Fatalf("the page names %v", names)
	}
	paths := []string{apidoc.Root}
	for _, name := range names {
		if path, above := strings.CutPrefix(name[1], ".."); above {
			paths = append(paths, path)
		} else {
			paths = append(paths, apidoc.Root+name[1])
		}
	}
	for _, path := range paths {
		plain, zipped := get(path), get(path, "Accept-Encoding", "br, gzip")
		if plain.Code != 200 || zipped.Code != 200 || plain.Body.Len() == 0 {
			t.Fatalf("%s: %d with %d bytes, and %d", path, plain.Code, plain.Body.Len(), zipped.Code)
		}
		if plain.Header().Get("Content-Encoding") != "" || !bytes.Equal(unpacked(t, zipped), plain.Body.Bytes()) {
			t.Errorf("%s: the two answers differ, %v and %v", path, plain.Header(), zipped.Header())
		}
		for _, w := range []*httptest.ResponseRecorder{plain, zipped} {
			h := w.Header()
			if h.Get("Cache-Control") != "no-cache" || h.Get("X-Content-Type-Options") != "nosniff" ||
				h.Get("Content-Type") == "" {
				t.Errorf("%s: %v", path, h)
			}
			csp := h.Get("Content-Security-Policy")
			if path != "/openapi.json" &&
				(!strings.HasPrefix(csp, "default-src 'none';") || strings.Contains(csp, "unsafe") ||
					h.Get("X-Frame-Options") != "DENY" || h.Get("Referrer-Policy") != "no-referrer") {
				t.Errorf("%s: %v", path, h)
			}
			again := get(path, "Accept-Encoding", w.Header().Get("Content-Encoding"), "If-None-Match", h.Get("ETag"))
			if again.Code != http.StatusNotModified || again.Body.Len() > 0 {
				t.Errorf("%s again: %d with %d bytes", path, again.Code, again.Body.Len())
			}
		}
	}
	for _, path := range []string{"/docs/nothing", "/docs/page/index.html", "/elsewhere"} {
		if w := get(path); w.Code != 404 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

func unpacked(t *testing.T, w *httptest.ResponseRecorder) []byte {
	if w.Header().Get("Content-Encoding") != "gzip" {
		return w.Body.Bytes()
	}
	z, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestGzipIsForThoseWhoTakeIt(t *testing.T) {
	for accept, zipped := range map[string]bool{
		"gzip": true, "br, gzip": true, "deflate,gzip;q=0.5": true, " gzip ; q=1": true,
		"": false, "br": false, "gzip;q=0": false, "gzip; q=0.0": false, "x-gzip": false, "gzip;q=much": false,
	} {
		w := get(apidoc.Root+"swagger-ui.css", "Accept-Encoding", accept)
		if got := w.Header().Get("Content-Encoding") == "gzip"; got != zipped ||
			w.Header().Get("Vary") != "Accept-Encoding" {
			t.Errorf("Accept-Encoding: %s has %v", accept, w.Header())
		}
	}
}

// The files of Swagger UI are those of its package: nobody changed them here.
func TestSwaggerUIIsUnchanged(t *testing.T) {
	sums, err := os.ReadFile("swagger-ui/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	licence := get(apidoc.Root + "licence.txt").Body.String()
	for line := range strings.Lines(string(sums)) {
		fields := strings.Fields(line)
		want, name := fields[0], fields[1]
		data, err := os.ReadFile("swagger-ui/" + name)
		if os.IsNotExist(err) {
			data = get(apidoc.Root + name).Body.Bytes()
		} else if err != nil {
			t.Fatal(err)
		} else if !strings.Contains(licence, string(data)) {
			t.Errorf("licence.txt is without %s", name)
		}
		sum := sha256.Sum256(data)
		if have := hex.EncodeToString(sum[:]); have != want {
			t.Errorf("%s has the sum %s, want %s", name, have, want)
		}
	}
}
