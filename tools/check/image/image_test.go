package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const dockerfile = `FROM scratch
COPY --chmod=0755 firn /usr/bin/firn
USER 65532:65532
WORKDIR /var/lib/firn
VOLUME ["/var/lib/firn"]
EXPOSE 8080 53/udp
HEALTHCHECK --interval=10s CMD ["/usr/bin/firn", "health"]
ENTRYPOINT ["/usr/bin/firn"]
CMD ["serve"]
`

// made is the image of a Dockerfile, whose firn has four bytes.
func made(t *testing.T, dockerfile string) ([]byte, error) {
	t.Helper()
	t.Setenv("SOURCE_DATE_EPOCH", "1795407078")
	binary := filepath.Join(t.TempDir(), "firn")
	if err := os.WriteFile(binary, []byte("\x7fELF"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err := run([]string{"firn:0.1.0", "linux/arm64", "v0.1.0", "663a986", binary}, strings.NewReader(dockerfile), &out)
	return out.Bytes(), err
}

// files are those in a tar, by their names.
func files(t *testing.T, in io.Reader) (names []string, contents map[string][]byte) {
	t.Helper()
	contents = map[string][]byte{}
	for archive := tar.NewReader(in); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return names, contents
		} else if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, fmt.Sprintf("%v %d:%d %s", header.FileInfo().Mode(), header.Uid, header.Gid, header.Name))
		contents[header.Name] = content
	}
}

// What the Dockerfile says is in the image, and nothing else; a second image has the same bytes.
func TestImage(t *testing.T) {
	image, err := made(t, dockerfile)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := made(t, dockerfile); err != nil || !bytes.Equal(again, image) {
		t.Errorf("a second image has other bytes: %v", err)
	}
	_, saved := files(t, bytes.NewReader(image))
	var manifest []struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	if err := json.Unmarshal(saved["manifest.json"], &manifest); err != nil || len(manifest) != 1 ||
		len(manifest[0].Layers) != 1 || !slices.Equal(manifest[0].RepoTags, []string{"firn:0.1.0", "firn:latest"}) {
		t.Fatalf("%v: %s", err, saved["manifest.json"])
	}
	config := string(saved[manifest[0].Config])
	for _, want := range []string{
		`"architecture":"arm64","os":"linux"`, `"User":"65532:65532"`, `"ExposedPorts":{"53/udp":{},"8080/tcp":{}}`,
		`"Volumes":{"/var/lib/firn":{}}`,
		`"Entrypoint":["/usr/bin/firn"],"Cmd":["serve"]`, `"WorkingDir":"/var/lib/firn"`,
		`"Healthcheck":{"Test":["CMD","/usr/bin/firn","health"],"Interval":10000000000}`,
		`"org.opencontainers.image.revision":"663a986"`, `"org.opencontainers.image.version":"v0.1.0"`,
		`"created":"2026-11-23T`,
	} {
		if !strings.Contains(config, want) {
			t.Errorf("the configuration lacks %s:\n%s", want, config)
		}
	}
	layer, err := gzip.NewReader(bytes.NewReader(saved[manifest[0].Layers[0]]))
	if err != nil {
		t.Fatal(err)
	}
	names, contents := files(t, layer)
	if want := []string{
		"drwxr-xr-x 0:0 usr/", "drwxr-xr-x 0:0 usr/bin/", "-rwxr-xr-x 0:0 usr/bin/firn",
		"drwxr-xr-x 0:0 var/", "drwxr-xr-x 0:0 var/lib/", "drwxr-xr-x 65532:65532 var/lib/firn/",
	}; !slices.Equal(names, want) || string(contents["usr/bin/firn"]) != "\x7fELF" {
		t.Errorf("the layer has\n%q\nwant\n%q", names, want)
	}
}

// A Dockerfile with anything that this program would make another image of than Docker is refused.
func TestRefusesWhatItDoesNotKnow(t *testing.T) {
	for _, tt := range [][2]string{
		{"FROM debian:12\n", "want one stage, FROM scratch"},
		{"FROM scratch\nRUN [\"true\"]\n", "this instruction is not known here"},
		{"FROM scratch\nCOPY firn /usr/bin/firn\n", "want COPY --chmod=MODE FILE FILE"},
		{"FROM scratch\nCOPY --chmod=0755 firn /usr/bin/\n", "want COPY --chmod=MODE FILE FILE"},
		{"FROM scratch\nCOPY --chmod=0755 other /other\n", "there is no file other"},
		{"FROM scratch\nUSER firn\nWORKDIR /x\n", "want numbers as in 65532:65532"},
		{"FROM scratch\nCMD serve\n", "the image has no shell"},
	} {
		if _, err := made(t, tt[0]); err == nil || !strings.Contains(err.Error(), tt[1]) {
			t.Errorf("%q: %v, want %q", tt[0], err, tt[1])
		}
	}
}

// The authorities are many, and PEM.
func TestRoots(t *testing.T) {
	all, err := roots()
	if n := bytes.Count(all, []byte("-----BEGIN CERTIFICATE-----\n")); err != nil || n < 50 {
		t.Errorf("%d authorities, %v", n, err)
	}
}
