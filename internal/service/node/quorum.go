package node

import (
	"context"
	"errors"
	"net"

	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/stores"
	"github.com/firn-id/firn/store/quorum"
)

// quorumPart is this process's part in a quorum: a *quorum.Quorum, see its methods, or a fake one in tests.
type quorumPart interface {
	calls.Quorum
	Start() error
	Addr() string
	Open(ctx context.Context) (quorum.Store, error)
	Close()
	Kill()
}

// newQuorum makes this process's part in the quorum: that of one, unless machines are named.
func (n *Node) newQuorum() (*quorum.Quorum, error) {
	c := n.quorumConfig()
	if n.config.StoreKind() == stores.Directory {
		return quorum.One(c)
	}
	return quorum.New(c)
}

// quorumConfig returns the configuration of the quorum with what the node sets.
func (n *Node) quorumConfig() quorum.Config {
	c := n.config.Quorum
	c.Dir, c.Moved, c.Version = n.config.DataDir, n.config.Moved, n.config.Build.Version
	c.Node = func() string { return n.member.Name() } // the member is there before the quorum starts
	c.Logger, c.DialOptions, c.Fatal = n.log, n.traces.asked(), n.config.Fatal
	return c
}

// use makes a quorum the node's store.
func (n *Node) use(q quorumPart) {
	n.quorum = q
	n.open = func(ctx context.Context) (Store, error) {
		s, err := q.Open(ctx)
		if _, ok := errors.AsType[*quorum.DirError](err); ok {
			return nil, &SettingError{"data-dir", err}
		}
		if err != nil {
			return nil, err
		}
		return s, nil
	}
}

// startQuorum opens the data, and has this machine listen for the others. The error is a SettingError if it can't, or
// if it does not know which of the machines it is.
func (n *Node) startQuorum() error {
	err := n.quorum.Start()
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return &SettingError{"quorum-listen", err}
	}
	if _, ok := errors.AsType[*quorum.DirError](err); ok {
		return &SettingError{"data-dir", err}
	}
	if _, ok := errors.AsType[*quorum.SeveralError](err); ok {
		return &SettingError{"quorum-addr", err}
	}
	return err
}

// Kill ends a node with a quorum as kill -9 does: it answers no caller, and gives nothing back to the store. Run
// returns soon after its ctx has ended.
func (n *Node) Kill() {
	n.Stop()
	n.quorum.Kill()
}
