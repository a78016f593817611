package main

import (
	"os"
	"path/filepath"

	"github.com/firn-id/firn/internal/secretfile"
)

// keepSecret puts the secret into a file that only this user can read, where it is wanted, until the function it returns
// is called. A node that can't do that serves all the same.
func (n *node) keepSecret(f *fronts) (remove func()) {
	at := f.at(adminDoor)
	if at == "" || n.tokens != nil || n.told {
		return func() {}
	}
	path, err := n.secretPath(at)
	if err == nil {
		err = secretfile.Write(path, n.secret.Token(), []string{at})
	}
	n.secret.Kept(path, err)
	if err != nil {
		n.log.Warn("nobody can administer this node: its secret can't be written to a file; --tokens says who may", "err", err)
		return func() {}
	}
	n.log.Info("who can read this file can administer this node", "secret", path)
	return func() { secretfile.Remove(path, n.secret.Token()) }
}

// adminURL is how to get to the address of administrators: never by a name, or whoever listens at another address of that
// name could have the login.
func adminURL(address string, secure bool) string {
	if secure {
		return "https://" + reachable(address)
	}
	return "http://" + reachable(address)
}

// secretPath is where the node writes its secret: beside its data, or, if it has none, into a directory that only this
// user can read.
func (n *node) secretPath(address string) (string, error) {
	if len(n.etcd.Endpoints) == 0 {
		dir, err := filepath.Abs(n.dataDir)
		if err == nil {
			err = os.MkdirAll(dir, 0o700)
		}
		return filepath.Join(dir, secretfile.Name), err
	}
	return secretfile.RuntimePath(address)
}
