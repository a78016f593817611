package metrics

import (
	"context"

	"github.com/firn-id/firn/internal/core/cluster"
)

// first reports whether the member is the first that Prometheus can ask of those attached to a sequencer, by their node
// IDs; those that wait come last. So what is true of a whole sequencer is exported once, by one of those that it is
// about, and not by an application that embeds a member. One about which the store does not answer before ctx ends is
// taken for one that can be asked.
func (w *watcher) first(ctx context.Context, self string, s cluster.Sequencer) bool {
	tells := func(id string) bool {
		addresses, err := w.Service.Addresses(ctx, id)
		return len(addresses) > 0 || err != nil
	}
	for _, id := range s.Nodes() {
		if id == self || tells(id) {
			return id == self
		}
	}
	for _, id := range s.Waiting() {
		if id == self || tells(id) {
			return id == self
		}
	}
	return false
}
