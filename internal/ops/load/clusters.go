package load

import (
	"sync"

	"github.com/firn-id/firn/internal/base/clusterid"
)

// Clusters compares the clusters in the answers to all connections. The zero value knows none. It is safe for
// concurrent use.
type Clusters struct {
	mu    sync.Mutex // guards what follows
	known clusterid.Known
	mixed *clusterid.MixedError // the first
}

// take takes note of the cluster in an answer of a server. A *CodeError is returned when the answer is to be dropped.
// Without Clusters nothing is compared.
func (c *Clusters) take(server, cluster string) error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	mixed := c.known.Take(server, cluster)
	if mixed == nil {
		return nil
	}
	if c.mixed == nil {
		c.mixed = mixed
	}
	return &CodeError{"mixed", mixed.Error()}
}

// Err returns an error when servers were of different clusters.
func (c *Clusters) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mixed == nil {
		return nil
	}
	return c.mixed
}

// first returns the first of the values of metadata; empty: there is none.
func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}
