package node

import (
	"errors"
	"log/slog"
	"maps"
	"slices"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
)

// chosen tells once of each sequencer that Config.Nodes names: that it does not exist yet, or why it has no such node
// ID for this node. The value is the position at which the sequencer was created, or 0.
type chosen map[string]int64

// look tells of the sequencers that a value has. Fit is peer.Member.Fit.
func (c chosen) look(log *slog.Logger, nodes map[string]int64, v cluster.Value,
	fit func(name string, d cluster.Definition) error,
) {
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		q, exists := v.Sequencer(name)
		if told, ok := c[name]; name == peer.DefaultSequencer || ok && told == q.Created() {
			continue
		}
		c[name] = q.Created()
		if !exists {
			log.Info("the sequencer of a chosen node ID does not exist yet", "sequencer", name, "node", nodes[name])
			continue
		}
		err := fit(name, q.Definition())
		if q.Definition().Claimed() {
			err = errors.New("counters, and sequencers in strict order, have no node IDs")
		}
		if err != nil {
			log.Warn("the chosen node ID can't be used", "sequencer", name, "node", nodes[name], "err", err,
				"do", "correct the setting node, and start this node again")
		}
	}
}
