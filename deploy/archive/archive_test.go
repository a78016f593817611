package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Two directories with the same files, made at other times with other permissions, become the same bytes, which have
// all that is in them.
func TestSameDirectorySameBytes(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1795407078")
	want := []string{
		"firn_1/ drwxr-xr-x ", "firn_1/README.md -rw-r--r-- read me", "firn_1/firn -rwxr-xr-x \x7fELF",
		"firn_1/man/ drwxr-xr-x ", "firn_1/man/firn.1 -rw-r--r-- .TH",
	}
	for kind, list := range map[string]func(t *testing.T, file []byte) []string{".tar.gz": listTar, ".zip": listZip} {
		var first []byte
		for i, modes := range [][2]os.FileMode{{0o755, 0o644}, {0o700, 0o600}} {
			at := t.TempDir()
			dir := filepath.Join(at, "firn_1")
			for _, err := range []error{
				os.MkdirAll(filepath.Join(dir, "man"), modes[0]),
				os.WriteFile(filepath.Join(dir, "firn"), []byte("\x7fELF"), modes[0]),
				os.WriteFile(filepath.Join(dir, "man", "firn.1"), []byte(".TH"), modes[1]),
				os.WriteFile(filepath.Join(dir, "README.md"), []byte("read me"), modes[1]),
				os.Chtimes(filepath.Join(dir, "README.md"), time.Time{}, time.Unix(int64(i), 0)),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			file := filepath.Join(at, "out"+kind)
			if err := run([]string{dir, file}); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if first == nil {
				first = got
			}
			if !bytes.Equal(got, first) {
				t.Errorf("%s: the second has other bytes", kind)
			}
			if listed := list(t, got); !slices.Equal(listed, want) {
				t.Errorf("%s has\n%q\nwant\n%q", kind, listed, want)
			}
		}
	}
}

func entry(name string, mode os.FileMode, at time.Time, content io.Reader) string {
	text, err := io.ReadAll(content)
	if err != nil || at.Unix() != 1795407078 {
		return fmt.Sprintf("%s: %v, of %v", name, err, at)
	}
	return fmt.Sprintf("%s %v %s", name, mode, text)
}

func listTar(t *testing.T, file []byte) (all []string) {
	unzipped, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, entry(header.Name, header.FileInfo().Mode(), header.ModTime, archive))
	}
}

func listZip(t *testing.T, file []byte) (all []string) {
	archive, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.File {
		content, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, entry(f.Name, f.Mode(), f.Modified, content))
		_ = content.Close() // it was only read
	}
	return all
}

func TestWrongUse(t *testing.T) {
	for _, tt := range []struct {
		epoch, want string
		args        []string
	}{
		{"1", "want it as in: archive DIRECTORY FILE", []string{"."}},
		{"", "want the time of the source in seconds since 1970", []string{".", "x.zip"}},
		{"1", "x.rar is a file of another kind; want .tar.gz or .zip", []string{".", "x.rar"}},
	} {
		t.Setenv("SOURCE_DATE_EPOCH", tt.epoch)
		if err := run(tt.args); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %q", tt.args, err, tt.want)
		}
	}
}
