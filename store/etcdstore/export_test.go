package etcdstore

import (
	"context"
	"time"

	"github.com/firn-id/firn/store"
)

// Revoke ends the lease of a session behind its back.
func Revoke(ctx context.Context, s store.Session) error {
	lost := s.(*session)
	_, err := lost.store.conn.Load().Revoke(ctx, lost.lease)
	return err
}

// Recheck sets how often the log is read though the watch is silent. It must be
// called before anything is followed.
func (s *Store) Recheck(every time.Duration) { s.recheck = every }

// Piece sets how many entries are read at once by those who follow the log. It must be called before
// anything is followed.
func (s *Store) Piece(entries int64) { s.piece = entries }
