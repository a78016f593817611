package member

import (
	"context"

	"github.com/firn-id/firn/internal/fence"
)

// Owner is who owns a node ID, or owned it last, and how far it may go.
type Owner = fence.Owner

// Owners reads, at one moment, what is written down about the node IDs of a sequencer: about each that was ever used
// under its name, in ascending order. Any member can read it, attached or not. The error is one of the store.
func (m *Member) Owners(ctx context.Context, name string) ([]Owner, error) {
	s, err := m.opened()
	if err != nil {
		return nil, err
	}
	return fence.Owners(ctx, s, fencePrefix(name))
}
