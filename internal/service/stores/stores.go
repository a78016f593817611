// Package stores knows every store that a node can use: it reads a store's address, tells which one a configuration
// names, and opens it. Only quorums, of one or several machines, are started elsewhere, by package node.
package stores

import (
	"cmp"
	"fmt"
	"log/slog"
	"strings"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/etcdstore"
	"github.com/firn-id/firn/store/pgstore"
	"github.com/firn-id/firn/store/quorum"
	"github.com/firn-id/firn/store/zkstore"
)

// Kind is a kind of store. It is what the names of the flags for it begin with.
type Kind string

// The kinds of stores.
const (
	Directory Kind = "data-dir"  // a quorum of one
	Etcd      Kind = "etcd"      // an etcd cluster elsewhere
	Quorum    Kind = "quorum"    // machines that each run a node, and keep the data together
	Postgres  Kind = "postgres"  // a schema of a PostgreSQL database
	ZooKeeper Kind = "zookeeper" // an ensemble of ZooKeeper servers
)

// Choice is the store of a node: the first of these that says where it is.
type Choice struct {
	Quorum    quorum.Config
	Etcd      etcdstore.Config
	Postgres  pgstore.Config
	ZooKeeper zkstore.Config
	DataDir   string // of this machine of the quorum
	Moved     bool   // the directory was moved, see quorum.Config

	EtcdPasswordFile string // where the password in Etcd comes from; empty: no file
}

// Use makes the store with an address the chosen one. What else the configuration says of a store stays.
func (c *Choice) Use(a Address) {
	switch a.Kind {
	case Directory:
		c.DataDir = a.path
	case Quorum:
		c.Quorum.Machines = a.Servers()
	case Postgres:
		c.Postgres.URL = a.text
	case ZooKeeper:
		c.ZooKeeper.Servers, c.ZooKeeper.TLS, c.ZooKeeper.Chroot = a.Servers(), a.secure, a.path
		if a.User() {
			c.ZooKeeper.Username = a.user
		}
	case Etcd:
		c.Etcd.Endpoints = a.Servers()
		if a.secure {
			for i, server := range c.Etcd.Endpoints {
				c.Etcd.Endpoints[i] = "https://" + server
			}
		}
		if a.User() {
			c.Etcd.Username = a.user
		}
		if a.Path() {
			c.Etcd.Prefix = a.path
		}
	}
}

// StoreKind returns which store is chosen.
func (c Choice) StoreKind() Kind {
	switch {
	case len(c.Quorum.Machines) > 0:
		return Quorum
	case len(c.Etcd.Endpoints) > 0:
		return Etcd
	case c.Postgres.URL != "":
		return Postgres
	case len(c.ZooKeeper.Servers) > 0:
		return ZooKeeper
	default:
		return Directory
	}
}

// StoreAddress returns the address of the chosen store, without a password.
func (c Choice) StoreAddress() string {
	switch c.StoreKind() {
	case Quorum:
		return "quorum://" + strings.Join(c.Quorum.Machines, ",")
	case Etcd:
		return c.etcdAddress()
	case ZooKeeper:
		z := c.ZooKeeper
		return address("zookeeper", z.TLS || z.CAFile != "" || z.CertFile != "", z.Username, z.Servers,
			cmp.Or(z.Chroot, zkstore.DefaultChroot))
	case Postgres:
		return Redact(c.Postgres.URL)
	default:
		return c.DataDir
	}
}

func (c Choice) etcdAddress() string {
	secure := c.Etcd.CAFile != "" || c.Etcd.CertFile != ""
	var servers []string
	for _, server := range c.Etcd.Endpoints {
		if rest, ok := strings.CutPrefix(server, "https://"); ok {
			secure, server = true, rest
		}
		servers = append(servers, strings.TrimPrefix(server, "http://"))
	}
	return address("etcd", secure, c.Etcd.Username, servers, cmp.Or(c.Etcd.Prefix, etcdstore.DefaultPrefix))
}

func address(scheme string, secure bool, user string, servers []string, path string) string {
	if secure {
		scheme += "s"
	}
	if user != "" {
		user += "@"
	}
	return scheme + "://" + user + strings.Join(servers, ",") + path
}

// Keeps reports whether this machine may keep the data of the chosen store, in DataDir.
func (c Choice) Keeps() bool {
	kind := c.StoreKind()
	return kind == Directory || kind == Quorum
}

// File is one that a setting names.
type File struct{ Setting, Path string }

// Secrets are the files of the chosen store that others should not read.
func (c Choice) Secrets() (all []File) {
	for _, f := range []File{
		{"etcd-key", c.Etcd.KeyFile},
		{"etcd-password-file", c.EtcdPasswordFile},
		{"postgres-key", c.Postgres.KeyFile},
		{"postgres-password-file", c.Postgres.PasswordFile},
		{"zookeeper-key", c.ZooKeeper.KeyFile},
		{"zookeeper-password-file", c.ZooKeeper.PasswordFile},
	} {
		if f.Path != "" {
			all = append(all, f)
		}
	}
	return all
}

// Open returns a client of a store that other processes keep. No server need be reachable. It returns an error for
// a configuration that is wrong, and for a store that this machine keeps.
func (c Choice) Open(log *slog.Logger) (store.Store, error) {
	switch kind := c.StoreKind(); kind {
	case Etcd:
		c.Etcd.Logger = log
		return etcdstore.Open(c.Etcd)
	case Postgres:
		c.Postgres.Logger = log
		return pgstore.Open(c.Postgres)
	case ZooKeeper:
		c.ZooKeeper.Logger = log
		return zkstore.Open(c.ZooKeeper)
	default:
		return nil, fmt.Errorf("the store %s is not kept by other processes", c.StoreAddress())
	}
}
