package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn/internal/ops/deploy"
	"github.com/firn-id/firn/internal/ops/setting"
)

// serveFlags are those of firn serve.
func serveFlags() *pflag.FlagSet {
	var o serveOptions
	c := &cobra.Command{}
	o.add(c, c.Flags())
	return c.Flags()
}

// Every line of the config file that is a comment can be made a setting by taking two characters away, and then says
// what holds without it.
func TestEveryLineOfTheConfigFile(t *testing.T) {
	made, err := configFile(serveFlags())
	if err != nil {
		t.Fatal(err)
	}
	text, err := made.Text(deploy.Origin{Version: "v0", Command: "firn gen config"})
	if err != nil {
		t.Fatal(err)
	}
	if _, from, err := configure(t, nil, nil, text); err != nil || len(from) > 0 {
		t.Errorf("nothing was given, and it sets %v, %v", from, err)
	}
	count := 0
	for _, m := range regexp.MustCompile(`(?m)^#- (([a-z0-9-]+): .*)$`).FindAllStringSubmatch(text, -1) {
		count++
		line, name := m[1], m[2]
		_, from, err := configure(t, nil, nil, line)
		if err != nil || len(from) != 1 {
			t.Errorf("%s: %v, it sets %v", line, err, from)
			continue
		}
		without, with := serveFlags().Lookup(name), serveFlags()
		if err := (setting.Sources{}).FromFile(with, written(t, line)); err != nil {
			t.Error(err)
		} else if without.DefValue != "" && with.Lookup(name).Value.String() != without.DefValue {
			t.Errorf("%s: the default is %s", line, without.DefValue)
		}
	}
	if want := len(made.Keys); count != want || want < 20 {
		t.Errorf("%d keys are comments; there are %d", count, want)
	}
}

// What is given comes back out of the config file, whatever it looks like.
func TestConfigFileKeepsValues(t *testing.T) {
	for name, texts := range map[string][]string{
		"etcd-user": {
			"firn", "true", "5", "2026-01-01", "null", "~", "a: b", "# a", "'", `"`, "- a", "{a}", "é",
			" a ", "*a", "&a", "!a", "%", "@", "a,b",
		},
		"http-addr":        {":8080", "[::1]:80", "127.0.0.1:0"},
		"epoch":            {"2026-01-01", "2026-01-01T00:00:00Z"},
		"etcd":             {"a:1", "a:1,b:2", "https://[::1]:2379"},
		"node":             {"0", "7", "7,orders=9", "0x=1,-=2,1.5=3"},
		"random-start":     {"true", "false"},
		"window":           {"1m30s"},
		"log-level":        {"debug"},
		"if-ids-are-ahead": {"wait", "go-on"},
		"etcd-password":    {strings.Repeat("long ", 100)},
	} {
		for _, text := range texts {
			flags := serveFlags()
			if err := flags.Set(name, text); err != nil {
				t.Fatal(err)
			}
			file, err := configFile(flags)
			if err != nil {
				t.Fatal(err)
			}
			made, err := file.Text(deploy.Origin{})
			if err != nil {
				t.Errorf("%s %q: %v", name, text, err)
				continue
			}
			back := serveFlags()
			if err := (setting.Sources{}).FromFile(back, written(t, made)); err != nil {
				t.Errorf("%s %q: %v\n%s", name, text, err, made)
			} else if got := back.Lookup(name).Value.String(); got != text {
				t.Errorf("%s: %q comes back as %q", name, text, got)
			}
		}
	}
	flags := serveFlags()
	if err := flags.Set("etcd-user", "a\nb: c"); err != nil {
		t.Fatal(err)
	}
	file, err := configFile(flags)
	if err != nil {
		t.Fatal(err)
	}
	if made, err := file.Text(deploy.Origin{}); err == nil {
		t.Errorf("a name of two lines is taken: %s", made)
	}
}

// What the pods of Kubernetes, and the services of docker compose, are started with is what firn serve takes.
func TestPodsStartFirnServe(t *testing.T) {
	alone := deploy.NewKubernetes()
	alone.Image = "firn@sha256:" + strings.Repeat("0", 64)
	whole := alone
	whole.Etcd, whole.GRPC, whole.Redis = []string{"etcd-0:2379", "etcd-1:2379"}, true, true
	whole.TokensSecret, whole.SealKeySecret, whole.TLSSecret, whole.EtcdTLSSecret, whole.EtcdLoginSecret = "tokens",
		"seal", "firn-tls", "etcd-tls", "etcd-login"
	whole.OTLPEndpoint = "http://otlp:4317"
	quorum := alone
	quorum.Quorum = 3
	for _, k := range []interface {
		Text(o deploy.Origin) (string, error)
	}{alone, whole, quorum, deploy.NewCompose()} {
		made, err := k.Text(deploy.Origin{})
		if err != nil {
			t.Fatal(err)
		}
		var args []string
		for _, m := range regexp.MustCompile(`(?m)^ +- "?(--[^"\n]+)"?$`).FindAllStringSubmatch(made, -1) {
			args = append(args, m[1])
		}
		env := map[string]string{}
		for _, m := range regexp.MustCompile(`(?m)^ +- name: (FIRN_.+)$`).FindAllStringSubmatch(made, -1) {
			env[m[1]] = "x"
		}
		if _, from, err := configure(t, args, env, ""); err != nil || len(args) < 2 || len(from) != len(env) {
			t.Errorf("%v with %v: it sets %v, %v", args, env, from, err)
		}
	}
}

// What deploy takes for firn serve's own times are these.
func TestStopTimesAreThoseOfServe(t *testing.T) {
	var o serveOptions
	c := &cobra.Command{}
	o.add(c, c.Flags())
	if s := deploy.NewSystemd(); s.DrainDelay != o.DrainDelay || s.ShutdownTimeout != o.ShutdownTimeout {
		t.Errorf("the unit is for %v and %v; firn serve takes %v and %v", s.DrainDelay, s.ShutdownTimeout, o.DrainDelay,
			o.ShutdownTimeout)
	}
	h := deploy.NewHAProxy()
	if notices := time.Duration(h.Fall) * h.CheckInterval; o.DrainDelay < 2*notices {
		t.Errorf("a node serves on for %v, and HAProxy needs %v to notice", o.DrainDelay, notices)
	}
}

// written is the path of a file with this text.
func written(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "firn.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
