package node

import (
	"context"
	"log/slog"
	"time"

	"github.com/firn-id/firn/internal/base/retry"
	"github.com/firn-id/firn/internal/service/calls"
	"github.com/firn-id/firn/internal/service/codes"
)

// outage tells of a node that stops giving IDs, once, and once more when it gives them again. The zero value is of a
// node that has given none yet.
type outage struct {
	gave  bool      // it has been ready
	since time.Time // since when it is not; zero: it is
	told  bool
}

// settling is how long a node must give no IDs before it tells: one that begins anew as a member is not ready for a
// moment.
const settling = 2 * time.Second

// look notes whether the node is ready, nil, or why not.
func (o *outage) look(log *slog.Logger, now time.Time, why error) {
	switch {
	case why == nil:
		if o.told {
			log.Info("this node gives IDs again", "after", now.Sub(o.since).Round(time.Second))
		}
		*o = outage{gave: true}
	case !o.gave:
	case o.since.IsZero():
		o.since = now
	case !o.told && now.Sub(o.since) >= settling:
		o.told = true
		level := slog.LevelError
		if calls.CodeOf(why) == codes.Detached {
			level = slog.LevelWarn // somebody wanted that
		}
		log.Log(context.Background(), level, "this node gives no IDs", "since", o.since.UTC().Format(time.RFC3339),
			"code", calls.CodeOf(why), "why", calls.Why(why))
	}
}

// watchReady tells of outages, and of node IDs that can't be used, until ctx ends.
func (n *Node) watchReady(ctx context.Context) {
	var o outage
	c := chosen{}
	for retry.Sleep(ctx, time.Second) == nil {
		o.look(n.log, time.Now(), n.Ready())
		if n.member.Ready() == nil {
			c.look(n.log, n.config.Nodes, n.member.Value(), n.member.Fit)
		}
	}
}
