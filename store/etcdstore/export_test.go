package etcdstore

import (
	"context"

	"github.com/firn-id/firn/store"
)

// Revoke ends the lease of a session behind its back.
func Revoke(ctx context.Context, s store.Session) error {
	lost := s.(*session)
	_, err := lost.store.conn.Load().Revoke(ctx, lost.lease)
	return err
}
