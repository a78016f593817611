package member

import (
	"context"
	"iter"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/sequencer"
)

// Sequencer makes the IDs of one ID space under the node ID that this member has in it. Member.EnsureSequencer and
// Member.Attach return one. It stays attached until Detach: after the loss of its session or of its node ID, it gets
// another without a call. Its methods are safe for concurrent use.
type Sequencer peer.Sequencer

// Next returns the next ID, scattered if the definition says so. It may wait milliseconds for the clock, until ctx
// ends. It never waits for the store: ErrNotReady is returned when the member can make no ID now.
func (s *Sequencer) Next(ctx context.Context) (firn.ID, error) { return s.peer().Next(ctx) }

// Fill fills ids with the next IDs, in ascending order or, if they are scattered, in the order in which they were made.
// It waits and fails as Next does; on an error it zeroes ids.
func (s *Sequencer) Fill(ctx context.Context, ids []firn.ID) error { return s.peer().Fill(ctx, ids) }

// FillAfter is Fill with IDs that all exceed another one, such as the last of a Fill before, or one that another member
// made: ID time moves ahead of the clock to there, by at most 10 s and a third of the window. A *firn.AheadError is
// returned when it would have to move further. Of scattered IDs those exceed another that exceed it once firn.Gather is
// applied to both.
func (s *Sequencer) FillAfter(ctx context.Context, after firn.ID, ids []firn.ID) error {
	return s.peer().FillAfter(ctx, after, peer.MaxAhead, ids)
}

// Ready returns nil when Next can be expected to return an ID. Otherwise it returns an ErrNotReady that says why not;
// it wraps firn.ErrLifetime when the clock shows a time for which the layout has no IDs.
func (s *Sequencer) Ready() error { return s.peer().Ready() }

// State returns the state of the sequencer now. Ready says why there are no IDs, if there are none.
func (s *Sequencer) State() State { return s.peer().State() }

// Changes yields the state of the sequencer, and then each change of it, until ctx ends. Destroyed and Ended are the
// last. A slow caller misses intermediate states, but never the latest. Any number of callers can watch at once.
func (s *Sequencer) Changes(ctx context.Context) iter.Seq[State] { return s.peer().Changes(ctx) }

// Attach attaches the sequencer again after Detach, and waits for the outcome. It does nothing when the sequencer is
// attached.
//
// ErrNotReady is returned when the member may not use a node ID yet. It wraps ErrWaiting when all are taken and the
// member waits in line for one, and ErrDestroyed when the sequencer was destroyed. When ctx ends first, its error is
// returned, and the member goes on trying.
func (s *Sequencer) Attach(ctx context.Context) error { return s.peer().Attach(ctx) }

// Detach stops making IDs here, releases the node ID, and returns when others can have it. From then on Next returns
// ErrDetached, until Attach. It does nothing when the sequencer is detached.
//
// An ErrNotReady that wraps ErrDestroyed is returned when the sequencer was destroyed, and ErrAttachedAgain when Attach
// is called meanwhile. When ctx ends first, its error is returned, and the member goes on detaching.
func (s *Sequencer) Detach(ctx context.Context) error { return s.peer().Detach(ctx) }

// Name returns the sequencer's name.
func (s *Sequencer) Name() string { return s.peer().Name() }

// Definition returns the definition in force.
func (s *Sequencer) Definition() sequencer.Definition { return s.peer().Definition() }

// Layout returns the layout of the IDs, before they are scattered.
func (s *Sequencer) Layout() firn.Layout { return s.peer().Layout() }

// Parts takes an ID of the sequencer apart. An error is returned when its layout has no such ID.
func (s *Sequencer) Parts(id firn.ID) (firn.Parts, error) { return s.peer().Parts(id) }

func (s *Sequencer) peer() *peer.Sequencer { return (*peer.Sequencer)(s) }

// State is the state of a sequencer on one member: its Phase; while Attached, Node, the node ID in use; while Waiting,
// Place, the place in line, from 1. It is comparable, and prints as "attached, node ID 7".
type State = peer.State

// Phase is the phase of a sequencer on one member.
type Phase = peer.Phase

// The phases.
const (
	Attaching = peer.Attaching // it asks for a node ID, or waits until the clock reaches the floor of its own
	Attached  = peer.Attached  // it has a node ID, and makes IDs
	Waiting   = peer.Waiting   // all node IDs are taken; it waits in line
	Detached  = peer.Detached  // Detach was called
	Drained   = peer.Drained   // an operator keeps it detached
	Destroyed = peer.Destroyed // the sequencer was destroyed; this is final
	Ended     = peer.Ended     // the member has left, or can't go on; this is final
)
