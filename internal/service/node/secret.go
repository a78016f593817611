package node

import (
	"os"
	"path/filepath"

	"github.com/firn-id/firn/internal/service/admit/secretfile"
)

// keepSecret writes the secret, if the node made one, to a file that only this user can read. The function it
// returns removes the file. A node that can't write the file serves anyway.
func (n *Node) keepSecret() (remove func()) {
	at := n.Addr(Admin)
	if at == "" || n.tokens != nil || n.config.Secret != nil {
		return func() {}
	}
	path, err := n.secretPath(at)
	if err == nil {
		err = secretfile.Write(path, n.secret.Token(), []string{at})
	}
	n.secret.Kept(path, err)
	if err != nil {
		n.log.Warn("nobody can administer this node, because it can't write its secret to a file; give it a file of "+
			"tokens instead", "err", err)
		return func() {}
	}
	n.log.Info("anyone who can read this file can administer this node", "secret", path)
	return func() { secretfile.Remove(path, n.secret.Token()) }
}

// secretPath returns the path of the secret's file: beside the data, or without data in a directory that only
// this user can read.
func (n *Node) secretPath(address string) (string, error) {
	hasData := n.config.Keeps()
	if n.quorum != nil && !n.isOne() {
		hasData = n.quorum.Addr() != ""
	}
	if hasData {
		dir, err := filepath.Abs(n.config.DataDir)
		if err == nil {
			err = os.MkdirAll(dir, 0o700)
		}
		return filepath.Join(dir, secretfile.Name), err
	}
	return secretfile.RuntimePath(address)
}
