// Package databases holds programs that keep IDs of firn in a database, one for each way to talk to it, and the test
// that runs them. See docs/databases.md.
package databases

import (
	"context"
	"os"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/client"
	"github.com/firn-id/firn/member"
	"github.com/firn-id/firn/sequencer"
	"github.com/firn-id/firn/store/pgstore"
)

// IDs is what a program in Go takes IDs from. Close is called at its end.
type IDs interface {
	Next(ctx context.Context) (firn.ID, error)
	Close() error
}

// Open takes IDs from the service at FIRN_URL. Without one the program makes them itself.
func Open(ctx context.Context) (IDs, error) {
	if url := os.Getenv("FIRN_URL"); url != "" {
		return client.New([]string{url})
	}
	return join(ctx)
}

// embedded is a member of a cluster that is kept in the program's own database, in the schema firn.
type embedded struct {
	*member.Sequencer
	member *member.Member
	store  *pgstore.Store
}

// join has the program be a member until Close. A program that runs for long gives the member a Logger, too.
func join(ctx context.Context) (IDs, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second) // for the database to answer
	defer cancel()
	s, err := pgstore.Open(pgstore.Config{URL: "postgres://"}) // where PGHOST, PGUSER and PGDATABASE say
	if err != nil {
		return nil, err
	}
	m, err := member.Join(ctx, s, member.Options{})
	if err != nil {
		_ = s.Close()
		return nil, err
	}
	orders, err := m.EnsureSequencer(ctx, "orders", sequencer.Define(firn.Default)) // the first member creates it
	ids := embedded{orders, m, s}
	if err != nil {
		_ = ids.Close()
		return nil, err
	}
	return ids, nil
}

// Close releases the node ID, so that the next member gets it at once.
func (e embedded) Close() error {
	e.member.Leave()
	return e.store.Close()
}
