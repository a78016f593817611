package peer

import (
	"context"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/store"
)

// recordCheckpoint cuts the log at a value where a checkpoint is due, as after every CheckpointEvery entries: the
// member that the value chooses records the value at the previous checkpoint's position. So the log begins with a
// checkpoint and reaches back at least CheckpointEvery entries. If that member is dead, the next one cuts more.
func (p *player) recordCheckpoint(ctx context.Context, v cluster.Value) {
	before := p.anchor
	p.anchor = v
	if before.Position() == 0 || p.incarnation == nil || v.Recorder() != p.incarnation.id {
		return
	}
	p.running.Go(func() {
		if err := p.checkpoint(ctx, before); err != nil {
			p.troubles.note(ctx, "can't cut the log; another member tries next", err)
		}
	})
}

// checkpoint writes a checkpoint and drops the entries that it replaces.
func (m *Member) checkpoint(ctx context.Context, v cluster.Value) error {
	data, err := cluster.EncodeCheckpoint(v)
	if err != nil {
		return err
	}
	if err := m.store.Checkpoint(ctx,
		store.Checkpoint{Position: store.Position(v.Position()), Value: data}); err != nil {
		return err
	}
	if err := m.store.Trim(ctx); err != nil {
		return err
	}
	m.log.Info("cut the log", "checkpoint", v.Position())
	return nil
}
