package etcdstore_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn/store/etcdstore"
)

// A wrong configuration is told with what was wrong and what would be right.
func TestConfigErrors(t *testing.T) {
	junk := filepath.Join(t.TempDir(), "junk.pem")
	if err := os.WriteFile(junk, []byte("junk"), 0o600); err != nil {
		t.Fatal(err)
	}
	https := []string{"https://a:1"}
	tests := []struct {
		name   string
		config etcdstore.Config
		want   []string // all of these are in the message
	}{
		{"no endpoints", etcdstore.Config{}, []string{"no endpoints", "127.0.0.1:2379"}},
		{"no port", etcdstore.Config{Endpoints: []string{"a:1", "b"}}, []string{`"b"`, "no port", "host:port"}},
		{"no host", etcdstore.Config{Endpoints: []string{":2379"}}, []string{`":2379"`, "no host"}},
		{"empty endpoint", etcdstore.Config{Endpoints: []string{""}}, []string{`""`, "no port"}},
		{"other scheme", etcdstore.Config{Endpoints: []string{"ftp://a:1"}}, []string{`"ftp://a:1"`, `"ftp"`}},
		{"no URL", etcdstore.Config{Endpoints: []string{"http://a b:1"}}, []string{"not a URL"}},
		{"a path", etcdstore.Config{Endpoints: []string{"http://a:1/v3"}}, []string{"more than a host and a port"}},
		{"a socket without a path", etcdstore.Config{Endpoints: []string{"unix://"}}, []string{`"unix"`}},
		{
			"half of them secure",
			etcdstore.Config{Endpoints: []string{"https://a:1", "http://b:1"}},
			[]string{"https://a:1", "http://b:1", "or none"},
		},
		{
			"TLS files without TLS",
			etcdstore.Config{Endpoints: []string{"http://a:1"}, CAFile: junk},
			[]string{"http://a:1", "want https"},
		},
		{
			"no CA file",
			etcdstore.Config{Endpoints: https, CAFile: "/no/such/file"},
			[]string{"CA file", "/no/such/file"},
		},
		{"junk for a CA", etcdstore.Config{Endpoints: https, CAFile: junk}, []string{junk, "PEM"}},
		{
			"a certificate without a key",
			etcdstore.Config{Endpoints: https, CertFile: junk},
			[]string{junk, "both or neither"},
		},
		{
			"junk for a certificate",
			etcdstore.Config{Endpoints: https, CertFile: junk, KeyFile: junk},
			[]string{junk, "no pair"},
		},
		{
			"user without password",
			etcdstore.Config{Endpoints: []string{"a:1"}, Username: "u"},
			[]string{`"u"`, "both or neither"},
		},
		{
			"password without user",
			etcdstore.Config{Endpoints: []string{"a:1"}, Password: "secret"},
			[]string{"6 characters", "both or neither"},
		},
		{
			"relative prefix",
			etcdstore.Config{Endpoints: []string{"a:1"}, Prefix: "firn"},
			[]string{`"firn"`, `"/firn"`},
		},
		{
			"prefix that ends in a slash",
			etcdstore.Config{Endpoints: []string{"a:1"}, Prefix: "/firn/"},
			[]string{`"/firn/"`},
		},
		{"prefix of a slash", etcdstore.Config{Endpoints: []string{"a:1"}, Prefix: "/"}, []string{`"/"`}},
		{
			"negative deadline",
			etcdstore.Config{Endpoints: []string{"a:1"}, CallDeadline: -time.Second},
			[]string{"-1s", "5s"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := etcdstore.Open(tt.config)
			if err == nil {
				t.Fatal("Open took it")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("%q tells the password", err)
			}
		})
	}
}

// What is right is taken, though no server is there.
func TestConfigs(t *testing.T) {
	for _, config := range []etcdstore.Config{
		{Endpoints: []string{"127.0.0.1:1", "localhost:1", "[::1]:1"}},
		{Endpoints: []string{"http://127.0.0.1:1/"}, Prefix: "/a/b"},
		{Endpoints: []string{"https://127.0.0.1:1", "https://b:1"}},
		{Endpoints: []string{"unix:///no/such/socket"}},
		{Endpoints: []string{"127.0.0.1:1"}, Username: "u", Password: "p"},
	} {
		s, err := etcdstore.Open(config)
		if err != nil {
			t.Errorf("Open(%+v): %v", config, err)
			continue
		}
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
}
