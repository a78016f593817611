package member

import (
	"context"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/peer"
)

// Local makes the IDs of a Sequencer for one goroutine, in less time than Sequencer.Next. It is not safe for concurrent
// use: each goroutine has its own. Sequencer.Local makes a Local; the zero value does not work. There is nothing to
// close.
//
// The IDs of a Local ascend, before they are scattered and while the member keeps its node ID in the sequencer. Within
// a tick, and under saturation within the look-ahead, they can be less than an ID that another caller took before.
type Local peer.Local

// Local returns a Local of the sequencer. It goes on when the member loses its node ID and gets another.
func (s *Sequencer) Local() *Local { return (*Local)(s.peer().Local()) }

// Next returns the next ID. It waits and fails as Sequencer.Next does.
func (l *Local) Next(ctx context.Context) (firn.ID, error) { return (*peer.Local)(l).Next(ctx) }
