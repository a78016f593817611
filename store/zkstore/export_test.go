package zkstore

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/firn-id/firn/store"
	"github.com/firn-id/firn/store/zkstore/internal/wire"
)

// Expire ends a session at the service, behind its client's back, as a stranger would who knows its password. A server
// may end connections in place of an answer.
func Expire(ctx context.Context, server string, s store.Session) error {
	mine := s.(*session)
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		conn, err := mine.store.reach(ctx, server, mine.known, mine.ttl, mine.ttl, nil)
		if errors.Is(err, wire.ErrExpired) {
			return nil
		}
		switch {
		case err == nil:
			_ = conn.Close(ctx)
		case ctx.Err() != nil:
			return err
		}
	}
}

// Address is the host:port of a server.
func Address(given string, secure bool) (string, error) { return address(given, secure) }

// Children are the names of the nodes below one of the store's.
func Children(ctx context.Context, s *Store, name string) ([]string, error) {
	replies, err := s.read(ctx, wire.Children(s.root+name, false))
	if err != nil {
		return nil, err
	}
	return replies[0].Children, nil
}

// Losses is how often a client has found that its service has lost data.
func Losses(s *Store) int { return s.lossesNow() }

// OpenOver opens a client that connects by dial.
func OpenOver(config Config, dial func(ctx context.Context, network, address string) (net.Conn, error)) (*Store,
	error,
) {
	s, err := Open(config)
	if err == nil {
		s.settings.dial = dial
	}
	return s, err
}
