package peer

import (
	"context"

	"github.com/firn-id/firn/internal/core/fence"
	"github.com/firn-id/firn/store"
)

// Owner is the present or last owner of a node ID, and its horizon.
type Owner = fence.Owner

// Owners reads, at one moment, what the store knows about each node ID that was ever used under a sequencer's
// name, in ascending order. The member need not be attached. The error is one of the store.
func (m *Member) Owners(ctx context.Context, name string) ([]Owner, error) {
	s, err := m.opened()
	if err != nil {
		return nil, err
	}
	return OwnersIn(ctx, s, name)
}

// OwnersIn is Member.Owners for one that is no member.
func OwnersIn(ctx context.Context, s store.Store, name string) ([]Owner, error) {
	return fence.Owners(ctx, s, fencePrefix(name))
}
