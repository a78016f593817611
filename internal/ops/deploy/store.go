package deploy

import "regexp"

// Store is one that others keep.
type Store struct {
	Address string   // as firn serve --store takes it, without a password; empty: none
	Kind    string   // what the names of its flags begin with: "etcd"
	Servers []string // host:port of each
}

// storeAddress has no character that YAML, a shell, docker compose or Kubernetes takes for anything else.
var storeAddress = regexp.MustCompile(`^[a-z]+://[A-Za-z0-9._:/@,?&=%\[\]~+-]{1,1000}$`)

// store is the address of one, or nothing.
func (c *checks) store(s Store) {
	if s.Address == "" {
		return
	}
	c.that(storeAddress.MatchString(s.Address), "store",
		"%.80q has characters that can't stand in this file; want them percent-encoded", s.Address)
	c.that(labelName.MatchString(s.Kind), "store", "%.40q is not a kind of store", s.Kind)
	c.addresses("store", s.Servers)
}
