package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/firn-id/firn/internal/ops/console"
	"github.com/firn-id/firn/internal/ops/deploy"
	"github.com/firn-id/firn/internal/ops/setting"
)

const genConfigHelp = `Config prints a file for firn serve --config, with the settings that you give,
and all others with their defaults as comments.

It takes the flags of firn serve, and does not read the files that they name.`

const genConfigExamples = `  firn gen config > /etc/firn/firn.yaml
  firn gen config --etcd 10.0.0.1:2379,10.0.0.2:2379 --grpc-addr :9090`

func (p *program) genConfig() *cobra.Command {
	var o serveOptions
	var c *cobra.Command
	flags := func(made *cobra.Command) {
		c = made
		p.borrows(c, o.apart())
		must(c.Flags().MarkHidden("config")) // it can't be in the file
	}
	return p.genKind("config", "Print a config file for firn serve", genConfigHelp, genConfigExamples, flags,
		func(o deploy.Origin) (string, error) {
			if c.Flags().Changed("config") {
				return "", usagef("--config: a config file can't name another one")
			}
			made, err := configFile(c.Flags())
			if err != nil {
				return "", err
			}
			return made.Text(o)
		})
}

// configFile has a key for each flag of firn serve.
func configFile(flags *pflag.FlagSet) (made deploy.Config, err error) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name == "config" || f.Name == "help" || f.Name == "output" || err != nil {
			return
		}
		var text string
		if text, err = setting.YAML(f.Value.Type(), exampled(f)); err == nil {
			made.Keys = append(made.Keys,
				deploy.Key{Name: f.Name, About: console.Wrap(f.Usage, 110), YAML: text, Set: f.Changed})
		}
	})
	return made, err
}

// exampled is the value of a flag, or an example where it has none.
func exampled(f *pflag.Flag) string {
	if f.Changed || f.DefValue != "" {
		return f.Value.String()
	}
	if example, ok := exampleKeys[f.Name]; ok {
		return example
	}
	return exampleKinds[f.Value.Type()]
}

// exampleKeys and exampleKinds stand in a config file for flags that have no default.
var (
	exampleKeys = map[string]string{
		"store":      "postgres://firn@10.0.0.1:5432/ids",
		"admin-addr": "127.0.0.1:9080", "tokens": "/etc/firn/tokens.yaml", "seal-key-file": "/etc/firn/seal.keys",
		"tls-cert": "/etc/firn/server.pem", "tls-key": "/etc/firn/server.key", "tls-client-ca": "/etc/firn/clients.pem",
		"compat":  "leaf",
		"etcd-ca": "/etc/firn/etcd-ca.pem", "etcd-cert": "/etc/firn/etcd-client.pem",
		"etcd-key":           "/etc/firn/etcd-client.key",
		"etcd-password-file": "/etc/firn/etcd-password", "postgres-password-file": "/etc/firn/postgres-password",
		"zookeeper-user": "firn", "zookeeper-password-file": "/etc/firn/zookeeper-password",
		"zookeeper-ca":   "/etc/firn/zookeeper-ca.pem",
		"zookeeper-cert": "/etc/firn/zookeeper-client.pem", "zookeeper-key": "/etc/firn/zookeeper-client.key",
		"postgres-ca": "/etc/firn/postgres-ca.pem", "postgres-cert": "/etc/firn/postgres-client.pem",
		"postgres-key": "/etc/firn/postgres-client.key", "etcd-user": "firn",
		"quorum": "ids-1:7420,ids-2:7420,ids-3:7420", "quorum-key-file": "/etc/firn/firn.key",
		"quorum-addr": "ids-1:7420", "quorum-listen": ":7420",
		"quorum-ca": "/etc/firn/quorum-ca.pem", "quorum-cert": "/etc/firn/quorum-cert.pem",
		"quorum-cert-key": "/etc/firn/quorum-cert.key",
	}
	exampleKinds = map[string]string{
		"address": "127.0.0.1:8080", "directory": "/var/lib/firn", setting.KindList: "10.0.0.1:2379,10.0.0.2:2379",
		"file": "/etc/firn/file",
		"name": "name", "text": "text", "path": "/path", "layout": "default", "time": "2026-01-01",
		setting.KindNumber: "1", setting.KindNumbers: "7,orders=9", setting.KindBool: "false",
		"duration": "1s", "format": "text", "level": "info", "URL": "http://127.0.0.1:4317",
	}
)
