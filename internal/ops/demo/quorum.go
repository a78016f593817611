package demo

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/firn-id/firn/internal/service/node"
	"github.com/firn-id/firn/store/quorum"
)

// machines are those of a quorum: each node is one, and keeps its data in a directory below that of the demo.
type machines struct {
	dir       string
	key       string // file
	addresses []string
}

// newMachines makes a key, and finds free ports.
func newMachines(count int) (m *machines, err error) {
	m = new(machines)
	if m.dir, err = os.MkdirTemp("", "firn-demo-"); err != nil {
		return nil, err
	}
	m.key = filepath.Join(m.dir, "firn.key")
	err = os.WriteFile(m.key, []byte(quorum.NewKey()+"\n"), 0o600)
	for range count {
		l, failed := net.Listen("tcp", "127.0.0.1:0")
		if failed != nil {
			err = errors.Join(err, failed)
			break
		}
		defer func() { _ = l.Close() }() // nobody has connected
		m.addresses = append(m.addresses, l.Addr().String())
	}
	if err != nil {
		_ = os.RemoveAll(m.dir)
		return nil, err
	}
	return m, nil
}

// configure makes a node, numbered from 1, a machine of the quorum.
func (m *machines) configure(c *node.Config, number int) {
	c.Quorum = quorum.Config{Machines: slices.Clone(m.addresses), Self: m.addresses[number-1], KeyFile: m.key}
	c.DataDir = filepath.Join(m.dir, strconv.Itoa(number))
}

// majority reports whether so many of the machines can keep the store.
func (m *machines) majority(running int) bool { return 2*running > len(m.addresses) }
