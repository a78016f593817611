package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/firn-id/firn/store"
)

// ID is a session's in the table of sessions.
func ID(s store.Session) int64 { return s.(*session).id }

// Setting is what the server says of a setting, over the connection of a client.
func Setting(s *Store, name string) (string, error) {
	var found struct{ Setting string }
	_, err := s.read(context.Background(), "show", func(m *message) {
		one(m, &found, "SELECT current_setting(@name) AS setting", args{"name": name})
	})
	return found.Setting, err
}

// OpenOver opens a client that connects by dial.
func OpenOver(config Config, dial pgconn.DialFunc) (*Store, error) {
	settings, err := config.settings()
	if err != nil {
		return nil, err
	}
	settings.dial = dial
	return open(settings), nil
}
