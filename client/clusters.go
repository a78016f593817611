package client

import (
	"errors"
	"net/http"
	"sync"

	"github.com/firn-id/firn/internal/base/clusterid"
)

// MixedError is returned when a node answers that is not of the cluster of the nodes that answered before. Nodes of
// different clusters know nothing of each other and give the same IDs, so whoever takes IDs from both gets duplicates.
// The IDs of the answer are dropped, and no other node is asked instead: name the nodes of one cluster.
//
// Every answer of a node names its cluster. The client remembers the first one. When a node that was of the remembered
// cluster is of another, its cluster was founded again: the client remembers that one, and from then on refuses the
// former.
type MixedError struct {
	Node, Cluster       string // that answered, its URL, and its cluster
	Other, OtherCluster string // the node that answered last before, its URL, and its cluster, of which all should be
}

// Error names both nodes and both clusters.
func (e *MixedError) Error() string { return (*clusterid.MixedError)(e).Error() }

// clusters compares the clusters in all answers. It is safe for concurrent use.
type clusters struct {
	mu    sync.Mutex // guards what follows
	known clusterid.Known
}

// take takes note of the cluster in an answer. A *MixedError is returned when the answer is to be dropped.
func (c *clusters) take(node string, r *http.Response) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if mixed := c.known.Take(node, r.Header.Get(clusterid.Header)); mixed != nil {
		return (*MixedError)(mixed)
	}
	return nil
}

func isMixed(err error) bool {
	_, ok := errors.AsType[*MixedError](err)
	return ok
}
