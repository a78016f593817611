package main

import (
	"context"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/internal/test/certtest"
)

// No command relies on what another user owns, whatever its mode says: each file and directory that a setting names,
// and what lies in a data directory. The error says so before anything else, and firn doctor says the same as firn
// serve.
func TestNothingOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	const nobody = 65534
	ca := certtest.NewAuthority(t, "all")
	cert, key := ca.Issue("127.0.0.1", x509.ExtKeyUsageServerAuth, time.Now().Add(time.Hour))
	// NAME stands for the path of a file, CERT and KEY for files of root
	for _, tt := range []struct{ name, content, args string }{
		{"config", "", "--config NAME"},
		{"tokens", "", "--tokens NAME"},
		{"seal keys", "", "--seal-key-file NAME"},
		{"certificate", string(cert), "--tls-cert NAME --tls-key KEY"},
		{"key", string(key), "--tls-cert CERT --tls-key NAME"},
		{"authorities", string(ca.PEM), "--tls-cert CERT --tls-key KEY --tls-client-ca NAME"},
		{"quorum's key", "", "--quorum ids-1:7420,ids-2:7420,ids-3:7420 --quorum-key-file NAME"},
		{
			"quorum's authority", string(ca.PEM),
			"--quorum ids-1:7420,ids-2:7420,ids-3:7420 --quorum-ca NAME --quorum-cert CERT --quorum-cert-key KEY",
		},
		{
			"quorum's certificate", string(cert),
			"--quorum ids-1:7420,ids-2:7420,ids-3:7420 --quorum-ca CERT --quorum-cert NAME --quorum-cert-key KEY",
		},
		{"etcd's authority", string(ca.PEM), "--etcd https://127.0.0.1:1 --etcd-ca NAME"},
		{"etcd's certificate", string(cert), "--etcd https://127.0.0.1:1 --etcd-cert NAME --etcd-key KEY"},
		{"etcd's key", string(key), "--etcd https://127.0.0.1:1 --etcd-cert CERT --etcd-key NAME"},
		{"etcd's password", "p", "--etcd https://127.0.0.1:1 --etcd-user u --etcd-password-file NAME"},
		{"PostgreSQL's password", "p", "--store postgres://u@127.0.0.1:1/ids --postgres-password-file NAME"},
		{"PostgreSQL's authority", string(ca.PEM), "--store postgres://u@127.0.0.1:1/ids --postgres-ca NAME"},
		{
			"PostgreSQL's key", string(key),
			"--store postgres://u@127.0.0.1:1/ids --postgres-cert CERT --postgres-key NAME",
		},
		{
			"ZooKeeper's password", "p",
			"--store zookeeper://127.0.0.1:1/ids --zookeeper-user u --zookeeper-password-file NAME",
		},
		{"ZooKeeper's authority", string(ca.PEM), "--store zookeeper://127.0.0.1:1/ids --zookeeper-ca NAME"},
		{"journal", "", "--journal NAME"},
		{"data/", "", "--data-dir NAME"},
		{"data/run/", "", "--data-dir DATA"},
		{"data/quorum.json", "{}", "--data-dir DATA"},
		{"journal to be made", "", "--journal NAME/new"},
		{"above/", "", "--tokens NAME/tokens"},
		{"token", "firn_x", "id --token-file NAME"},
		{"authority of a server", string(ca.PEM), "id --server https://127.0.0.1:1 --ca NAME"},
		{"key of a caller", string(key), "id --server https://127.0.0.1:1 --cert CERT --key NAME"},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, strings.ReplaceAll(tt.name, " ", "-"))
		at := map[string]string{
			"CERT": filepath.Join(dir, "cert.pem"), "KEY": filepath.Join(dir, "key.pem"),
			"DATA": filepath.Join(dir, "data"), "NAME": path,
		}
		write := func(name string, content []byte) {
			if err := os.WriteFile(name, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write(at["CERT"], cert)
		write(at["KEY"], key)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(tt.name, "/") || strings.Contains(tt.args, "NAME/") {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		} else {
			write(path, []byte(tt.content))
		}
		if err := os.Chown(path, nobody, nobody); err != nil {
			t.Fatal(err)
		}
		commands := [][]string{nil}
		if strings.HasPrefix(tt.args, "--") {
			common := []string{"--http-addr", "127.0.0.1:0"}
			if !strings.Contains(tt.args, "--store") && !strings.Contains(tt.args, "--etcd") &&
				!strings.Contains(tt.args, "--data-dir") {
				common = append(common, "--data-dir", filepath.Join(dir, "other"))
			}
			commands = [][]string{append([]string{"serve"}, common...), append([]string{"doctor"}, common...)}
		}
		for _, command := range commands {
			for word := range strings.FieldsSeq(tt.args) {
				for name, is := range at {
					word = strings.Replace(word, name, is, 1)
				}
				command = append(command, word)
			}
			ctx, stop := context.WithTimeout(t.Context(), time.Minute) // a node that starts ends then
			var b strings.Builder
			status := run(ctx, command, nil, strings.NewReader(""), &b, &b)
			stop()
			out := b.String()
			if want := "its owner nobody can write " + path + " "; status != statusUsage ||
				!strings.Contains(out, want) {
				t.Errorf("%s: firn %s ends with %d: %s; want %d, and %q", tt.name, strings.Join(command, " "), status,
					out, statusUsage, want)
			}
		}
	}
}
