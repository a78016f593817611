package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/firn-id/firn/internal/test/certtest"
	"github.com/firn-id/firn/internal/test/testenv"
)

// unpacked returns the files of a bundle by name, and reports what is wrong with the archive.
func unpacked(t *testing.T, path string) map[string]string {
	t.Helper()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v; want mode 0600", info, err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for archive := tar.NewReader(unzipped); ; {
		h, err := archive.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil || h.FileInfo().Mode() != 0o600 {
			t.Errorf("%s: %v, %v", h.Name, h.FileInfo().Mode(), err)
		}
		all[strings.TrimPrefix(h.Name, "firn-bundle/")] = string(text)
	}
}

var (
	inBase64 = regexp.MustCompile(`[A-Za-z0-9+/_-]{8,}`)
	inHex    = regexp.MustCompile(`[0-9a-fA-F]{12,}`)
)

// revealed returns a text with all that it may hold in other forms.
func revealed(text string) string {
	all := []string{text}
	for _, run := range inBase64.FindAllString(text, -1) {
		for skip := range min(4, len(run)) {
			part := strings.NewReplacer("-", "+", "_", "/").Replace(run[skip:])
			if raw, err := base64.RawStdEncoding.DecodeString(part[:len(part)/4*4]); err == nil {
				all = append(all, string(raw))
			}
		}
	}
	for _, run := range inHex.FindAllString(text, -1) {
		for skip := range 2 {
			if raw, err := hex.DecodeString(run[skip : skip+(len(run)-skip)/2*2]); err == nil {
				all = append(all, string(raw))
			}
		}
	}
	if raw, err := url.QueryUnescape(text); err == nil {
		all = append(all, raw)
	}
	return strings.Join(all, "\n")
}

// Whatever a node says, and however its settings are given, no secret is in a bundle, in any form, nor in what is
// printed.
func TestBundleHasNoSecrets(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var quorumKey strings.Builder
	if status := run(t.Context(), []string{"quorum", "key"}, nil, strings.NewReader(""), &quorumKey,
		io.Discard); status != statusOK {
		t.Fatal("there is no key")
	}
	secrets := map[string]string{
		"password in a URL": "Zx9-postgres", "password of etcd": "Zx9-etcd/pass",
		"password of ZooKeeper": "Zx9 zoo keeper", "token": "Zx9tokentokentokentoken",
		"quorum key": strings.TrimSpace(quorumKey.String()), "seal key": "Zx9 seal key of 32 bytes, exactl",
		"password of PostgreSQL": "Zx9 in a file",
	}
	tlsFiles := certtest.WriteFiles(t, dir)
	key, err := os.ReadFile(tlsFiles.ServerKey)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Fields(string(key)) {
		if len(line) > 30 {
			secrets[fmt.Sprint("line of the TLS key ", i)] = line
		}
	}
	pair, err := tls.LoadX509KeyPair(tlsFiles.ServerCert, tlsFiles.ServerKey)
	if err != nil {
		t.Fatal(err)
	}
	var says strings.Builder
	for _, secret := range secrets {
		raw := []byte("x" + secret)
		fmt.Fprintf(&says, "%s %q %s %s %x %X %s %s\n", secret, secret, url.QueryEscape(secret),
			url.PathEscape(secret), raw, raw,
			base64.StdEncoding.EncodeToString(raw), base64.RawURLEncoding.EncodeToString([]byte(secret)))
	}
	node := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprintf(w, `{"error":{"code":"forbidden","message":%q}}`, says.String())
			return
		}
		fmt.Fprintln(w, says.String(), string(key))
	}))
	node.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	node.StartTLS()
	t.Cleanup(node.Close)
	common := []string{
		"doctor", "--http-addr", "127.0.0.1:0", "--admin-addr", node.Listener.Addr().String(),
		"--tls-cert", tlsFiles.ServerCert, "--tls-key", tlsFiles.ServerKey, "--ca", tlsFiles.CA, "--token-file",
		write("token", secrets["token"]+"\n"),
		"--seal-key-file", write("seal", "1 "+base64.StdEncoding.EncodeToString([]byte(secrets["seal key"]))+"\n"),
	}
	inFile := func(secret string) string { return write(secret, secrets[secret]+"\n") }
	stores := map[string]struct {
		env  []string
		args []string
		own  string // the secret that only this one has
	}{
		"PostgreSQL": {
			[]string{"FIRN_STORE=postgres://firn:" + secrets["password in a URL"] + "@127.0.0.1:1/ids"},
			nil,
			"password in a URL",
		},
		"a file for PostgreSQL": {
			nil, []string{
				"--store", "postgres://firn@127.0.0.1:1/ids", "--postgres-password-file",
				inFile("password of PostgreSQL"),
			}, "password of PostgreSQL",
		},
		"etcd": {nil, []string{
			"--etcd", "127.0.0.1:1", "--etcd-user", "firn", "--etcd-password",
			secrets["password of etcd"],
		}, "password of etcd"},
		"ZooKeeper": {
			nil, []string{
				"--store", "zookeeper://127.0.0.1:1", "--zookeeper-user", "firn", "--zookeeper-password-file",
				inFile("password of ZooKeeper"),
			}, "password of ZooKeeper",
		},
		"a quorum": {
			nil, []string{
				"--quorum", "127.0.0.1:1", "--data-dir", filepath.Join(dir, "data"), "--quorum-key-file",
				inFile("quorum key"),
			}, "quorum key",
		},
	}
	var ofOne []string
	for _, tt := range stores {
		ofOne = append(ofOne, tt.own)
	}
	for name, tt := range stores {
		t.Run(name, func(t *testing.T) {
			if name != "a quorum" { // doctor waits 5 s for a store that is not there
				testenv.Slow(t)
			}
			t.Parallel()
			file := filepath.Join(dir, name+".tar.gz")
			var out, errs strings.Builder
			status := run(t.Context(), slices.Concat(common, tt.args, []string{"--bundle", file}), tt.env,
				strings.NewReader(""), &out, &errs)
			if status != statusOK {
				t.Errorf("status %d, %s%s", status, out.String(), errs.String())
				return
			}
			parts := unpacked(t, file)
			all := revealed(strings.Join(slices.Sorted(maps.Values(parts)), "\n") + out.String() + errs.String())
			for what, secret := range secrets {
				if (what == tt.own || !slices.Contains(ofOne, what)) && strings.Contains(all, secret) {
					t.Errorf("the bundle has the %s", what)
				}
			}
			want := []string{
				"contents.txt", "doctor.json", "goroutines.txt", "history.json", "log.jsonl",
				"status.json", "system.txt", "version.json",
			}
			if name == "a quorum" {
				want = slices.Insert(want, 5, "quorum.json")
			}
			if have := slices.Sorted(maps.Keys(parts)); !slices.Equal(have, want) {
				t.Errorf("it has %q; want %q", have, want)
			}
			if !strings.Contains(out.String(), "not in it:\n  metrics.txt ") ||
				!strings.Contains(parts["contents.txt"], "not in it:\n  metrics.txt ") {
				t.Errorf("it does not say what is missing: %s", out.String())
			}
			status = run(t.Context(), slices.Concat(common, tt.args, []string{"--bundle", file}), tt.env,
				strings.NewReader(""), &out, &errs)
			if status != statusUsage || !strings.Contains(errs.String(), "exists; want the name of a new file") {
				t.Errorf("again: %d %s", status, errs.String())
			}
		})
	}
}
