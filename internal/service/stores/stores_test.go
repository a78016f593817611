package stores

import (
	"slices"
	"strings"
	"testing"

	"github.com/firn-id/firn/store/etcdstore"
	"github.com/firn-id/firn/store/pgstore"
	"github.com/firn-id/firn/store/quorum"
	"github.com/firn-id/firn/store/zkstore"
)

// An address chooses a store, whose own address is the same.
func TestParse(t *testing.T) {
	for text, want := range map[string]struct {
		kind    Kind
		servers []string
		address string // empty: the text
	}{
		"etcd://10.0.0.1:2379,10.0.0.2:2379/firn": {Etcd, []string{"10.0.0.1:2379", "10.0.0.2:2379"}, ""},
		"etcd://etcd:2379":                        {Etcd, []string{"etcd:2379"}, "etcd://etcd:2379/firn"},
		"etcd://etcd:2379/":                       {Etcd, []string{"etcd:2379"}, "etcd://etcd:2379/firn"},
		"etcds://[::1]:2379/a/b":                  {Etcd, []string{"https://[::1]:2379"}, ""},
		"etcd://me@etcd:2379/firn":                {Etcd, []string{"etcd:2379"}, ""},
		"quorum://a:7420,b:7420,c:7420":           {Quorum, []string{"a:7420", "b:7420", "c:7420"}, ""},
		"./firn-data":                             {Directory, nil, ""},
		"/var/lib/firn":                           {Directory, nil, ""},
		"C:/firn":                                 {Directory, nil, ""},
	} {
		a, err := Parse(text)
		if err != nil || a.Kind != want.kind || a.String() != text {
			t.Errorf("%s is %v, %v; want the kind %s", text, a, err, want.kind)
			continue
		}
		var c Choice
		c.Use(a)
		servers := slices.Concat(c.Etcd.Endpoints, c.Quorum.Machines)
		if want.address == "" {
			want.address = text
		}
		if c.StoreKind() != want.kind || !slices.Equal(servers, want.servers) || c.StoreAddress() != want.address {
			t.Errorf("%s chooses %s with the servers %v, %s; want %v, %s", text, c.StoreKind(), servers,
				c.StoreAddress(), want.servers, want.address)
		}
	}
}

// An error says what is wrong and what would be right, and shows no password.
func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "it is empty; want postgres://",
		"localhost:2379":                   "does not say what the server is; want postgres://",
		"redis://u:hush@h:6379":            "a failover loses those; want postgres://",
		"rediss://h:6379":                  "a failover loses those; want postgres://",
		"nats://h:4222":                    "changes one key at a time",
		"mariadb://h/db":                   "no adapter for MySQL",
		"kubernetes://firn":                "its etcd is not for applications",
		"smb://h/db":                       "firn knows no such store; want postgres://",
		"etcd://":                          `the server ""; want host:port`,
		"etcd://h":                         `the server "h"; want host:port`,
		"etcd://h:0":                       `the server "h:0"; want host:port`,
		"etcd://h:1,h:1":                   "the server h:1 twice",
		"etcd://h:1//x":                    `the path "//x"; want one such as /firn`,
		"etcd://h:1?tls=1":                 `"?tls"); flags such as --etcd-ca say the rest`,
		"etcd://u:hush@h:1":                "want it in the file that --etcd-password-file names",
		"etcd://u:hush/x@h:1":              "has a password",
		"etcd://@h:1":                      "the user name",
		"quorum://a:1,b:1,c:1/firn":        "--data-dir for the directory",
		"quorum://me@a:1":                  "--quorum-key-file",
		"etcd://h:1?password=hush&user=me": "",
	} {
		a, err := Parse(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%q is %v, %v; want an error with %q, and no password", text, a, err, want)
		}
	}
}

func TestRedact(t *testing.T) {
	for address, want := range map[string]string{
		"/var/lib/firn":                           "/var/lib/firn",
		"postgres://me:hush@h:5432/db?sslmode=x":  "postgres://me:***@h:5432/db?sslmode=x",
		"postgres://me@h/db":                      "postgres://me@h/db",
		"postgres://me:hu@sh:/x@h/db":             "postgres://me:***@h/db",
		"postgres://h/db?password=hush&user=me":   "postgres://h/db?password=***&user=me",
		"postgres://h/db?user=me&sslpassword=hus": "postgres://h/db?user=me&sslpassword=***",
	} {
		if got := Redact(address); got != want {
			t.Errorf("%s is shown as %s, want %s", address, got, want)
		}
	}
}

// The flags of a store have the same address as it would be given.
func TestAddressOfAChoice(t *testing.T) {
	for want, c := range map[string]Choice{
		"./d":                    {DataDir: "./d"},
		"postgres://me:***@h/db": {Postgres: pgstore.Config{URL: "postgres://me:hush@h/db"}},
		"zookeepers://h:1/firn":  {ZooKeeper: zkstore.Config{Servers: []string{"h:1"}, CAFile: "ca.pem"}},
		"quorum://a:1":           {DataDir: "./d", Quorum: quorum.Config{Machines: []string{"a:1"}}},
		"etcd://a:1,b:1/firn":    {Etcd: etcdstore.Config{Endpoints: []string{"a:1", "http://b:1"}}},
		"etcds://a:1/x":          {Etcd: etcdstore.Config{Endpoints: []string{"https://a:1"}, Prefix: "/x"}},
		"etcds://me@a:1/firn": {Etcd: etcdstore.Config{
			Endpoints: []string{"a:1"}, CAFile: "ca.pem",
			Username: "me", Password: "hush",
		}},
		"etcd://unix:///run/etcd/firn": {Etcd: etcdstore.Config{Endpoints: []string{"unix:///run/etcd"}}},
	} {
		if got := c.StoreAddress(); got != want {
			t.Errorf("%+v is %s, want %s", c, got, want)
		}
	}
}

// Nobody but package node opens a store that this machine keeps.
func TestOpen(t *testing.T) {
	for _, c := range []Choice{{DataDir: "./d"}, {Quorum: quorum.Config{Machines: []string{"a:1"}}}} {
		if s, err := c.Open(nil); err == nil || !c.Keeps() {
			t.Errorf("%s is opened: %v; want an error", c.StoreAddress(), s)
		}
	}
	for _, c := range []Choice{
		{Etcd: etcdstore.Config{Endpoints: []string{"127.0.0.1:1"}}},
		{Postgres: pgstore.Config{URL: "postgres://me@127.0.0.1:1/db"}},
		{ZooKeeper: zkstore.Config{Servers: []string{"127.0.0.1:1"}}},
	} {
		s, err := c.Open(nil)
		if err != nil || c.Keeps() {
			t.Fatalf("%s: %v", c.StoreAddress(), err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
