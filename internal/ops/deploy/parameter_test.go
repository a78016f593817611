package deploy

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/sequencer"
	"github.com/firn-id/firn/store/pgstore"
)

type kind interface{ Text(Origin) (string, error) }

// testImage is an image by the SHA-256 of nothing.
const testImage = "registry.example.com/firn@sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// testStore is one that others keep.
var testStore = Store{
	Address: "etcd://me@etcd:2379,[2001:db8::1]:2379/firn", Kind: "etcd",
	Servers: []string{"etcd:2379", "[2001:db8::1]:2379"},
}

var origin = Origin{Version: "v0", Command: "firn gen"}

// samples are parameters of every kind that are right, with every text filled in.
func samples() map[string]kind {
	haproxy := NewHAProxy()
	haproxy.Cluster, haproxy.Sequencer = "k3fq7x2m", "orders"
	haproxy.Nodes, haproxy.GRPCNodes, haproxy.RedisNodes = []string{"10.0.0.1:8080", "node2:8080"},
		[]string{"10.0.0.1:9090", "node2:9090"}, []string{"10.0.0.1:6379", "node2:6379"}
	nginx := NewNginx()
	nginx.Nodes, nginx.GRPCNodes = haproxy.Nodes, haproxy.GRPCNodes
	keepalived := NewKeepalived()
	keepalived.VIP, keepalived.Source, keepalived.Peers = "10.0.0.100/24", "10.0.0.8", []string{"10.0.0.9"}
	kubernetes := NewKubernetes()
	kubernetes.Namespace, kubernetes.Etcd, kubernetes.TokensSecret = "ids", []string{"etcd:2379"}, "tokens"
	kubernetes.EtcdTLSSecret, kubernetes.EtcdLoginSecret, kubernetes.TLSSecret = "etcd-tls", "etcd-login", "firn-tls"
	kubernetes.Image, kubernetes.OTLPEndpoint = testImage, "https://otlp:4317"
	prometheus := NewPrometheus()
	prometheus.Nodes, prometheus.TokenFile = haproxy.Nodes, "/etc/prometheus/firn.token"
	socket := NewSystemdSocket()
	socket.Listen = "/run/firn.sock"
	postgres, mysql, sqlite := NewSQL(), NewSQL(), NewSQL()
	postgres.Dialect, mysql.Dialect, sqlite.Dialect = "postgres", "mysql", "sqlite"
	sqlite.Table = "orders"
	stored, composed := kubernetes, NewCompose()
	stored.Etcd, stored.EtcdTLSSecret, stored.EtcdLoginSecret = nil, "", ""
	stored.Store, stored.StorePasswordSecret, stored.StoreCASecret = testStore, "password", "ca"
	composed.Store, composed.StorePassword = testStore, true
	next := nextSample()
	next.Database = "ids"
	return map[string]kind{
		"functions that claim": next,
		"tables of a store": StoreTables{SQL: func(schema string) string {
			return schema
		}, Schema: "firn", Role: "firn"},
		"kubernetes on a store": stored, "compose on a store": composed, "systemd-socket": socket, "postgres": postgres,
		"mysql": mysql, "sqlite": sqlite,
		"haproxy": haproxy, "nginx": nginx, "keepalived": keepalived, "systemd": NewSystemd(), "kubernetes": kubernetes,
		"docker": Docker{}, "compose": NewCompose(), "prometheus": prometheus,
	}
}

// No text of any kind can put anything into a file but itself.
func TestHostileTextsAreRefused(t *testing.T) {
	hostile := []string{
		"a\nb", "firn\n", "\nfirn", "a\rb", "a\x00b", "a\tb", "a b", " firn", "a\"b", "a'b", "a`b", "a;b", "a{b", "a}b",
		"a#b", "$a", "${a}",
		"$(a)", "%n", "a\\b", "a|b", "a&b", "a<b", "-a\nb", "{{.}}", "é", "a\u2028b", "10.0.0.1:80\n80",
		"10.0.0.1:8080;", "10.0.0.1/24\n", "/etc/x\ny", "/etc/../x;", "firn:1\nRUN x", strings.Repeat("a", 5000),
	}
	for name, right := range samples() {
		if _, err := right.Text(origin); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		fields := reflect.TypeOf(right)
		for i := range fields.NumField() {
			for _, text := range hostile {
				wrong := reflect.New(fields).Elem()
				wrong.Set(reflect.ValueOf(right))
				switch f := wrong.Field(i); f.Interface().(type) {
				case string:
					f.SetString(text)
				case []string:
					if f.Len() == 0 { // the sample has the other of two
						continue
					}
					list := append([]string(nil), f.Interface().([]string)...)
					list[len(list)-1] = text
					f.Set(reflect.ValueOf(list))
				default:
					continue
				}
				made, err := wrong.Interface().(kind).Text(origin)
				var e *ParameterError
				if !errors.As(err, &e) || made != "" {
					t.Errorf("%s: %s = %.40q: %v, want an error", name, fields.Field(i).Name, text, err)
				} else if strings.ContainsAny(err.Error(), "\n\x00") {
					t.Errorf("%s: the error %q is more than a line", name, err)
				}
			}
		}
	}
	if made, err := (Docker{}).Text(Origin{Version: "v0", Command: "firn\nRUN x"}); err == nil {
		t.Errorf("a command of two lines: %s", made)
	}
	if made, err := (Config{Keys: []Key{{Name: "a", YAML: "b\nc: d"}}}).Text(origin); err == nil {
		t.Errorf("a value of two lines: %s", made)
	}
}

// What is wrong is told by the parameter's name, with the value, and with what would be right.
func TestWrongParameters(t *testing.T) {
	for _, tt := range []struct {
		kind kind
		want string
	}{
		{with(func(h *HAProxy) { h.Nodes = nil }), "nodes: there is none; want host:port of each"},
		{with(func(h *HAProxy) {
			h.Nodes = []string{"10.0.0.1"}
		}), `nodes: "10.0.0.1" is not an address; want one such as 10.0.0.1:8080`},
		{with(func(h *HAProxy) { h.Nodes = []string{"10.0.0.1:0"} }), `nodes: "10.0.0.1:0" is not an address`},
		{with(func(h *HAProxy) { h.Nodes = []string{"10.0.0.1:65536"} }), `nodes: "10.0.0.1:65536" is not an address`},
		{with(func(h *HAProxy) { h.Nodes = []string{"10.0.0.1:080"} }), `nodes: "10.0.0.1:080" is not an address`},
		{with(func(h *HAProxy) {
			h.Nodes = []string{"10.0.0.256:80"}
		}), `nodes: "10.0.0.256:80" has no host that can be reached`},
		{with(func(h *HAProxy) { h.Nodes = []string{"::1:80"} }), `nodes: "::1:80" is not an address`},
		{with(func(h *HAProxy) {
			h.Nodes = []string{"[10.0.0.1]:80"}
		}), `nodes: "[10.0.0.1]:80" has no host that can be reached`},
		{with(func(h *HAProxy) {
			h.Nodes = []string{"[fe80::1%eth0]:80"}
		}), `nodes: "[fe80::1%eth0]:80" has no host that can be reached`},
		{with(func(h *HAProxy) { h.Nodes = []string{":80"} }), `nodes: ":80" has no host that can be reached`},
		{with(func(h *HAProxy) { h.Nodes = []string{"a:1", "a:1"} }), "nodes: a:1 is there twice"},
		{with(func(h *HAProxy) {
			h.GRPCNodes = []string{"a:1", "b:1"}
		}), "grpc-nodes: there are 2 of them and 1 nodes; want one of each node"},
		{with(func(h *HAProxy) {
			h.RedisNodes = []string{"a:1", "b:1"}
		}), "redis-nodes: there are 2 of them and 1 nodes"},
		{with(func(h *HAProxy) {
			h.GRPCNodes, h.GRPCListen = []string{"a:9090"}, ":8080"
		}), "grpc-listen: :8080 is taken already, by listen"},
		{with(func(h *HAProxy) { h.StatusListen = h.Listen }), "listen: :8080 is taken already, by status-listen"},
		{with(func(h *HAProxy) {
			h.Sequencer = "No Name"
		}), `sequencer: the sequencer's name "No Name"; want 1 to 100 of a-z`},
		{with(func(h *HAProxy) {
			h.Cluster = "k3-7"
		}), `cluster: the cluster ID is "k3-7"; want 1 to 64 letters and digits`},
		{with(func(h *HAProxy) {
			h.Balance = "source"
		}), `balance: "source" is not right; want one of [roundrobin leastconn random]`},
		{with(func(h *HAProxy) { h.CheckInterval = 0 }), "check-interval: 0s is too short; want at least 10ms"},
		{with(func(h *HAProxy) {
			h.CheckInterval = 200*time.Millisecond + 1
		}), "check-interval: 200.000001ms is finer than a millisecond"},
		{with(func(h *HAProxy) { h.Timeout = 48 * time.Hour }), "timeout: 48h0m0s is too long"},
		{with(func(h *HAProxy) { h.Fall = 0 }), "fall: 0 is not right; want a whole number from 1 to 100"},
		{with(func(h *HAProxy) { h.Retries = -1 }), "retries: -1 is not right; want a whole number from 0 to 100"},

		{with(func(s *SystemdSocket) {
			s.Name = "https"
		}), `name: "https" is not an address of firn serve; want one of http, admin, grpc, redis, metrics`},
		{with(func(s *SystemdSocket) {
			s.Service = "firn"
		}), `service: "firn" is not the name of a service; want one such as firn.service`},
		{with(func(s *SystemdSocket) {
			s.Listen = "localhost:80"
		}), `listen: "localhost:80" has a name; systemd wants an IP address`},
		{with(func(s *SystemdSocket) {
			s.Listen = "/run/" + strings.Repeat("a", 103)
		}), "listen: /run/" + strings.Repeat("a", 103) + " has 108 bytes; a Unix socket's path can have at most 107"},
		{with(func(s *SystemdSocket) {
			s.Listen, s.Mode = "/run/s", "660"
		}), `mode: "660" is not a mode; want four octal digits such as 0660`},
		{with(func(s *SystemdSocket) { s.Listen, s.Group = "/run/s", "" }), `group: "" is not a name of a user`},

		{with(func(k *Keepalived) {
			k.VIP = ""
		}), `vip: "" is not an address with its prefix; want one such as 10.0.0.100/24`},
		{with(func(k *Keepalived) { k.VIP = "10.0.0.100" }), `vip: "10.0.0.100" is not an address with its prefix`},
		{with(func(k *Keepalived) { k.VIP = "127.0.0.1/8" }), `vip: "127.0.0.1/8" is not an address`},
		{with(func(k *Keepalived) {
			k.Interface = "a-very-long-interface"
		}), `interface: "a-very-long-interface" is not a network interface`},
		{with(func(k *Keepalived) { k.Router = 256 }), "router: 256 is not right; want a whole number from 1 to 255"},
		{with(func(k *Keepalived) {
			k.Advert = 15 * time.Millisecond
		}), "advert: 15ms is not right; want hundredths of a second"},
		{with(func(k *Keepalived) {
			k.CheckInterval = 1500 * time.Millisecond
		}), "check-interval: 1.5s is not right; keepalived wants whole seconds"},
		{with(func(k *Keepalived) { k.Source = "10.0.0.8" }), `source: "10.0.0.8" has no effect without peers`},
		{with(func(k *Keepalived) { k.Peers = []string{"10.0.0.9"} }), `source: "" is not an IP address of a balancer`},
		{with(func(k *Keepalived) {
			k.Source, k.Peers = "10.0.0.8", []string{"::1"}
		}), `peers: "::1" is not an IP address of a balancer; want one of the family of 10.0.0.100`},
		{with(func(k *Keepalived) {
			k.Source, k.Peers = "10.0.0.8", []string{"10.0.0.8"}
		}), "peers: 10.0.0.8 is the source"},

		{with(func(s *Systemd) { s.Binary = "firn" }), `binary: "firn" is not a path that can be used`},
		{with(func(s *Systemd) { s.Binary = "/usr/../bin/firn" }), `binary: "/usr/../bin/firn" is not a path`},
		{with(func(s *Systemd) { s.User = "0" }), `user: "0" is not a name of a user`},
		{with(func(s *Systemd) { s.Watchdog = time.Millisecond }), "watchdog: 1ms is too short; want at least 1s"},
		{with(func(s *Systemd) { s.DrainDelay = -1 }), "drain-delay: -1ns is too short"},

		{with(func(k *Kubernetes) { k.Replicas = 2 }), "replicas: a quorum of one has one pod"},
		{with(func(k *Kubernetes) {
			k.Quorum = 2
		}), "quorum: 2 machines are no quorum; want 1, 3 or 5: with an even number"},
		{with(func(k *Kubernetes) {
			k.Quorum, k.Etcd = 3, []string{"etcd:2379"}
		}), "quorum: it is a store of its own, and etcd is another; want one of the two"},
		{with(func(k *Kubernetes) {
			k.Quorum, k.Replicas = 3, 2
		}), "replicas: 2 is fewer than the 3 pods of the quorum"},
		{with(func(k *Kubernetes) {
			k.Quorum, k.QuorumSecret = 3, ""
		}), `quorum-secret: "" is not a name in Kubernetes`},
		{with(func(k *Kubernetes) {
			k.EtcdTLSSecret = "etcd"
		}), "etcd: there is a secret for an etcd cluster, and no cluster; want"},
		{with(func(k *Kubernetes) {
			k.EtcdLoginSecret = "etcd"
		}), "etcd: there is a secret for an etcd cluster, and no cluster; want"},
		{with(func(k *Kubernetes) {
			k.Store.Address = "etcd://$(a):1"
		}), `store: "etcd://$(a):1" has characters that can't stand in this file`},
		{with(func(k *Kubernetes) {
			k.Store, k.Quorum = testStore, 3
		}), "store: it is one store, and etcd or quorum another; want one of them"},
		{with(func(k *Kubernetes) {
			k.StoreCASecret = "ca"
		}), "store: there is a secret for a store, and no store; want its address"},
		{with(func(k *Kubernetes) { k.Name = "Firn" }), `name: "Firn" is not a name in Kubernetes`},
		{with(func(k *Kubernetes) { k.Namespace = "null" }), `namespace: "null" is not a name in Kubernetes`},
		{with(func(k *Kubernetes) {
			k.Image = ""
		}), `image: "" names no image by its digest; want one such as registry.example.com/firn@sha256: and 64 ` +
			`hex digits`},
		{with(func(k *Kubernetes) {
			k.Image = "registry.example.com/firn:1.0"
		}), `image: "registry.example.com/firn:1.0" names no image by its digest`},
		{with(func(k *Kubernetes) {
			k.Image = testImage[:len(testImage)-1]
		}), `image: "registry.example.com/firn@sha256:e3b0c4`},
		{with(func(k *Kubernetes) { k.TLSSecret = "Firn" }), `tls-secret: "Firn" is not a name in Kubernetes`},
		{with(func(k *Kubernetes) {
			k.OTLPEndpoint = "otlp:4317"
		}), `otlp-endpoint: "otlp:4317" is not an address of an OTLP receiver; want http://host:port`},
		{with(func(k *Kubernetes) { k.Memory = "lots" }), `memory: "lots" is not a quantity; want one such as 256Mi`},
		{with(func(k *Kubernetes) {
			k.Etcd = []string{"http://etcd:2379"}
		}), `etcd: "http://etcd:2379" is not an address`},

		{with(func(s *SQL) {
			s.Dialect = "oracle"
		}), `dialect: "oracle" is not a dialect; want one of postgres, mysql, mariadb, sqlite`},
		{with(func(s *SQL) {
			s.Name = "firn; DROP TABLE orders"
		}), `name: "firn; DROP TABLE orders" can't begin the name of a function; want up to 40 of a-z, 0-9 and _`},
		{with(func(s *SQL) { s.Name = "current" }), `name: "current" can't begin the name of a function`},
		{with(func(s *SQL) {
			s.Table = "orders"
		}), `table: "orders": only SQLite needs a table; postgres has functions for all tables`},
		{with(func(s *SQL) { s.Column = "key" }), `column: "key": only SQLite needs a column`},
		{with(func(s *SQL) {
			s.Dialect = "sqlite"
		}), `table: "" is not a table; want the one with the IDs, such as orders`},
		{with(func(s *SQL) {
			s.Dialect, s.Table, s.Column = "sqlite", "orders", "id]"
		}), `column: "id]" is not a column`},
		{with(func(s *SQL) { s.Layout.TimeBits = 0 }), "layout: layout has 0 time bits; want 1 to 62"},

		{with(func(d *Compose) { d.Quorum = 4 }), "quorum: 4 machines are no quorum; want 1, 3 or 5"},
		{with(func(d *Compose) {
			d.StorePassword = true
		}), "store-password: there is a password for a store, and no store"},
		{with(func(d *Compose) { d.Image = "Firn" }), `image: "Firn" names no image; want one such as firn`},
		{with(func(d *Compose) { d.Port = 65534 }), "port: 65534 is not right; want a whole number from 1 to 65533"},
	} {
		made, err := tt.kind.Text(origin)
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) || made != "" {
			t.Errorf("%v\nwant %s", err, tt.want)
		}
	}
}

// with is a kind with its defaults, an address, and a change.
func with[T any](change func(*T)) kind {
	p := new(T)
	switch p := any(p).(type) {
	case *HAProxy:
		*p = NewHAProxy()
		p.Nodes = []string{"10.0.0.1:8080"}
	case *Keepalived:
		*p = NewKeepalived()
		p.VIP = "10.0.0.100/24"
	case *Systemd:
		*p = NewSystemd()
	case *SystemdSocket:
		*p = NewSystemdSocket()
	case *Kubernetes:
		*p = NewKubernetes()
		p.Image = testImage
	case *SQL:
		*p = NewSQL()
		p.Dialect = "postgres"
	case *Compose:
		*p = NewCompose()
	}
	change(p)
	return any(*p).(kind)
}

// Addresses of every family are right, and names.
func TestAddresses(t *testing.T) {
	for _, address := range []string{
		"10.0.0.1:1", "[2001:db8::1]:65535", "[::1]:80", "localhost:80",
		"node-1.example.com:80", "a_b:80", "1node:80",
	} {
		if err := checkAddress(address, false); err != nil {
			t.Error(err)
		}
	}
	for _, address := range []string{":80", "0.0.0.0:80", "[::]:80", "localhost:80"} {
		if err := checkAddress(address, true); err != nil {
			t.Error(err)
		}
	}
}

// nextSample are functions that claim a node ID.
func nextSample() SQLNext {
	s := SQLNext{
		SQL: NewSQL(), Sequencer: "orders", Definition: sequencer.Define(firn.Default), Schema: pgstore.DefaultSchema,
		Enter: pgstore.EnterSQL, Count: pgstore.CountSQL,
	}
	s.Dialect = "postgres"
	return s
}
