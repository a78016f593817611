package pgstore

import (
	"context"

	"github.com/firn-id/firn/store"
)

// ID is a session's in the table of sessions.
func ID(s store.Session) int64 { return s.(*session).id }

// Setting is what the server says of a setting, over the connection of a client.
func Setting(s *Store, name string) (string, error) {
	found, err := s.read(context.Background(), "show", "SELECT current_setting('"+name+"')")
	if err != nil {
		return "", err
	}
	return found[1].text(0, 0), nil
}
