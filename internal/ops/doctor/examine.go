package doctor

import (
	"context"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/service/admit/conns"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/stores"
	"github.com/firn-id/firn/store/quorum"
)

// Config is the configuration of the node to examine. The caller has checked it: its files can be read.
type Config struct {
	Layout         firn.Layout // of the default sequencer
	Window         time.Duration
	TLS            conns.TLSFiles
	TokensFile     string    // empty: no tokens
	SealKeyFile    string    // empty: IDs are not sealed
	MaxConnections int64     // of callers; 0: the default
	Addresses      []Address // to listen on; the public one first
	stores.Choice
}

// Address is an address to listen on.
type Address struct {
	Flag   string // that sets it, without its dashes
	At     string // host:port, or unix:PATH
	URL    string // to reach it from this machine
	Passed bool   // systemd passes the socket
}

// Examine examines everything that a node with this configuration needs, and the node if it runs already. It
// writes only a small file in the data directory, which it removes.
func Examine(ctx context.Context, c Config) Seen {
	seen := Seen{
		Now: time.Now(), Clock: seeClock(), Layout: Layout{Name: c.Layout.String(), Until: calls.Until(c.Layout)},
		Files: c.seeCertificates(), Limit: c.seeLimit(), Ports: c.seePorts(ctx),
	}
	if seen.Ports[0].Firn {
		seen.Node = c.seeNode(ctx)
	}
	switch c.StoreKind() {
	case stores.Quorum:
		seen.Quorum = c.seeQuorum(ctx)
		if seen.Quorum.Self != "" {
			seen.Data = c.seeDataDir()
			seen.Data.Place = quorum.CheckPlace(c.DataDir, seen.Quorum.Self, c.Moved)
			seen.Ports = append(seen.Ports, seen.Quorum.seePort())
		}
	case stores.Directory:
		seen.Data = c.seeDataDir()
		seen.Data.Alone, seen.Data.Place = quorum.CheckOne(c.DataDir), quorum.CheckPlace(c.DataDir, "", c.Moved)
	default:
		c.seeStore(ctx, &seen)
	}
	return seen
}
