package stores

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Address is the address of a store. Make it with Parse; the zero value is no address.
type Address struct {
	Kind Kind

	text    string
	servers []string // host:port of each; none: of a directory
	secure  bool     // the servers use TLS
	user    string
	path    string // with its leading slash; empty: there is none
}

// schemes are those that an address may begin with.
var schemes = map[string]Kind{
	"etcd": Etcd, "etcds": Etcd, "quorum": Quorum, "postgres": Postgres,
	"postgresql": Postgres, "zookeeper": ZooKeeper, "zookeepers": ZooKeeper,
}

// whyNot says of services that people ask for why firn keeps nothing in them. docs/stores.md has the sources.
var whyNot = map[string]string{
	"redis": "Redis acknowledges writes before its replicas have them, and a failover loses those",
	"nats": "JetStream acknowledges writes before they are on disk, and its key-value store changes one key " +
		"at a time",
	"mysql": "firn has no adapter for MySQL",
	"k8s": "objects of Kubernetes change one at a time, and firn needs transactions of several; its etcd is not " +
		"for applications",
	"consul": "firn has no adapter for Consul",
}

// others are further names of those services.
var others = map[string]string{
	"rediss": "redis", "valkey": "redis", "tls": "nats", "mariadb": "mysql",
	"kubernetes": "k8s",
}

// Parse reads the address of a store: quorum://HOST:PORT,..., etcd://HOST:PORT,.../PREFIX,
// zookeeper://HOST:PORT,.../PATH, etcds:// and zookeepers:// for TLS, postgres://USER@HOST:PORT/DATABASE as
// PostgreSQL's own programs take it, or the path of a directory for a quorum of one. Its error shows no password.
func Parse(text string) (Address, error) {
	scheme, rest, ok := strings.Cut(text, "://")
	if !ok {
		return parseDirectory(text)
	}
	a := Address{text: text, Kind: schemes[scheme], secure: scheme == "etcds" || scheme == "zookeepers"}
	if a.Kind == "" {
		why := whyNot[others[scheme]]
		if why == "" {
			why = whyNot[scheme]
		}
		if why == "" {
			why = "firn knows no such store"
		}
		return Address{}, fmt.Errorf("%.80q: %s; want %s", Redact(text), why, wanted)
	}
	parse := a.parse
	if a.Kind == Postgres {
		parse = a.parsePostgres
	}
	if err := parse(rest); err != nil {
		return Address{}, fmt.Errorf("%.200q %w", Redact(text), err)
	}
	return a, nil
}

// wanted lists the addresses that there are.
const wanted = "postgres://user@host:5432/database, zookeeper://host:2181/firn, etcd://host:2379/firn, " +
	"quorum://host:7420 or a directory"

func parseDirectory(text string) (Address, error) {
	switch _, port, err := net.SplitHostPort(text); {
	case text == "":
		// a variable of a shell that is not set must not begin a new cluster
		return Address{}, errors.New("it is empty; want " + wanted)
	case err == nil && !strings.Contains(text, "/") && strings.Trim(port, "0123456789") == "":
		return Address{}, fmt.Errorf("%.80q does not say what the server is; want %s", text, wanted)
	}
	return Address{Kind: Directory, text: text, path: text}, nil
}

// parse reads what follows the scheme. Package url does not know several hosts with ports.
func (a *Address) parse(rest string) (err error) {
	rest, query, asks := strings.Cut(rest, "?")
	if asks || strings.Contains(rest, "#") {
		return fmt.Errorf("has more than servers and a path (%q); flags such as --%s-ca say the rest",
			"?"+parameterNames(query), a.Kind)
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 { // before the path: a password may have slashes
		name, _, secret := strings.Cut(rest[:at], ":")
		if rest = rest[at+1:]; a.Kind == Quorum {
			return errors.New("has a user; the machines of a quorum know each other by --quorum-key-file")
		}
		if secret {
			return fmt.Errorf("has a password, which other users of this machine can see; want it in the file that "+
				"--%s-password-file names", a.Kind)
		}
		if a.user, err = url.PathUnescape(name); err != nil || name == "" {
			return fmt.Errorf("has the user name %.80q; want one such as firn", name)
		}
	}
	if at := strings.IndexByte(rest, '/'); at >= 0 {
		rest, a.path = rest[:at], strings.TrimSuffix(rest[at:], "/")
	}
	for server := range strings.SplitSeq(rest, ",") {
		host, port, err := net.SplitHostPort(server)
		if n, notNumber := strconv.ParseUint(port, 10, 16); err != nil || host == "" ||
			strings.ContainsAny(host, " /=") || notNumber != nil || n == 0 {
			return fmt.Errorf("has the server %.80q; want host:port, with commas between", server)
		}
		if slices.Contains(a.servers, server) {
			return fmt.Errorf("has the server %s twice; want each once", server)
		}
		a.servers = append(a.servers, server)
	}
	switch {
	case a.Kind == Quorum && a.path != "":
		return fmt.Errorf("has the path %.80q; want the machines alone, and --data-dir for the directory", a.path)
	case a.path != "" && path.Clean(a.path) != a.path:
		return fmt.Errorf("has the path %.80q; want one such as /firn", a.path)
	}
	return nil
}

// parsePostgres reads what follows the scheme of a PostgreSQL address: the servers, for those who must know them. The
// client checks the rest.
func (a *Address) parsePostgres(rest string) error {
	rest, _, _ = strings.Cut(rest, "?")
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		a.user, rest = rest[:at], rest[at+1:]
		a.user, _, _ = strings.Cut(a.user, ":")
	}
	hosts, _, _ := strings.Cut(rest, "/")
	for host := range strings.SplitSeq(hosts, ",") {
		if host == "" { // it is elsewhere: in ?host= or PGHOST
			continue
		}
		if _, port, err := net.SplitHostPort(host); err != nil || port == "" {
			host = net.JoinHostPort(strings.Trim(host, "[]:"), "5432")
		}
		a.servers = append(a.servers, host)
	}
	return nil
}

// parameterNames are the names in a query, without the values.
func parameterNames(query string) string {
	var names []string
	for pair := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(pair, "=")
		names = append(names, name)
	}
	return strings.Join(names, "&")
}

// String is the address without a password.
func (a Address) String() string { return Redact(a.text) }

// Password reports whether the address has a password.
func (a Address) Password() bool { return Redact(a.text) != a.text }

// User reports whether the address names a user.
func (a Address) User() bool { return a.user != "" }

// Path reports whether the address says below which path the keys are.
func (a Address) Path() bool { return a.path != "" }

// Servers are the host:port of each server; none: of a directory.
func (a Address) Servers() []string { return slices.Clone(a.servers) }

// Redact returns an address in which *** stands for a password, if it has one.
func Redact(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return address
	}
	rest, query, asks := strings.Cut(rest, "?")
	hosts, path := rest, ""
	if at := strings.LastIndexByte(rest, '@'); at >= 0 { // what is before it may have slashes
		user, _, secret := strings.Cut(rest[:at], ":")
		hosts = rest[at+1:]
		if secret {
			user += ":***"
		}
		hosts = user + "@" + hosts
	}
	if asks {
		pairs := strings.Split(query, "&")
		for i, pair := range pairs {
			if name, _, _ := strings.Cut(pair, "="); strings.Contains(strings.ToLower(name), "password") {
				pairs[i] = name + "=***"
			}
		}
		path = "?" + strings.Join(pairs, "&")
	}
	return scheme + "://" + hosts + path
}
