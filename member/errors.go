package member

import (
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/counter"
	"github.com/firn-id/firn/internal/core/peer"
)

// The errors that callers of a Member or a Sequencer tell apart with errors.Is.
var (
	// ErrNotReady is returned when no ID can be given now: the member has no node ID, it has reached the horizon,
	// or it has left. The condition passes by itself, unless the member has ended or the error wraps one that
	// says otherwise.
	ErrNotReady = peer.ErrNotReady

	// ErrWaiting is wrapped in an ErrNotReady while all node IDs are taken. The member waits in line for one; the
	// text says in which place.
	ErrWaiting = peer.ErrWaiting

	// ErrDetached is wrapped in an ErrNotReady after Detach, until Attach.
	ErrDetached = peer.ErrDetached

	// ErrDrained is wrapped in an ErrNotReady while an operator keeps the member detached.
	ErrDrained = peer.ErrDrained

	// ErrDestroyed is wrapped in an ErrNotReady when the sequencer was destroyed. It is final: a sequencer
	// created later under the same name has another handle.
	ErrDestroyed = peer.ErrDestroyed

	// ErrExpelled is why a member has ended that an operator has expelled from the cluster.
	ErrExpelled = peer.ErrExpelled

	// ErrCopied is wrapped in an ErrNotReady when a copy of this process may use what it has reserved: the process was
	// copied, or set back to an earlier state, as by the snapshot of a virtual machine. The member starts over as a new
	// one.
	ErrCopied = peer.ErrCopied

	// ErrNoSequencer is returned when no sequencer has the name.
	ErrNoSequencer = peer.ErrNoSequencer

	// ErrAttachedAgain is returned by Detach when Attach is called before it is done.
	ErrAttachedAgain = peer.ErrAttachedAgain

	// ErrUnfit is returned when the member's options do not fit the definition of an existing sequencer: the
	// window is too short for the tick, or Options.Nodes asks for node IDs that do not exist.
	ErrUnfit = peer.ErrUnfit

	// ErrSequencerExists is returned when a sequencer of this name exists with another definition. The error is
	// an *ExistsError.
	ErrSequencerExists = peer.ErrSequencerExists
)

// ClockError is wrapped in an ErrNotReady while most of the other members agree with each other about the time, and not
// with this machine's wall clock: Of of the Others agree, and the clock is Ahead of their median by at least that much
// (negative: behind). It passes once the clocks agree.
type ClockError = peer.ClockError

// EarlyError is returned when the IDs of a definition do not exceed After, an ID that they must exceed:
// Definition.After, or one of an earlier generation of the name. They will from the instant From on; zero: never. Mixed
// says that the reason is that only one of the two generations is scattered.
type EarlyError = peer.EarlyError

// ExistsError is an ErrSequencerExists that says which definition of the sequencer Name is InForce, and which was
// Wanted.
type ExistsError = peer.ExistsError

// ExhaustedError is wrapped in an ErrNotReady when a counter has fewer numbers left than are wanted: Last is the
// greatest that there is, and Until when greater ones come; zero: never.
type ExhaustedError = counter.ExhaustedError

// FloorError is wrapped in an ErrNotReady while members may not make IDs yet after the store has lost data, or may
// have: From is the instant from which they may (zero: not known yet), By the member or machine that found the loss,
// Why what it found. It passes by that time, or when an operator resumes.
type FloorError = peer.FloorError

// KindError is returned when the sequencer Name is of the kind Is and not of that which is Wanted, or was before it was
// Destroyed. Claimed says that it is a counter or in strict order.
type KindError = peer.KindError

// AheadError is wrapped in an ErrNotReady while somebody has reserved numbers, up to Reserved, of a time that this
// member's clock has not reached, which allows no numbers above Last.
type AheadError = counter.AheadError

// SmallerError is returned when a definition would give numbers that are not above all before: After is the greatest of
// those, and Last the greatest of the present time.
type SmallerError = counter.SmallerError

// LostError is wrapped in an ErrNotReady after the store has lost data, so that numbers of a counter could come again,
// until an operator resumes it: Last is the greatest number that this member knows to be reserved.
type LostError = counter.LostError

// OrderError is wrapped in an ErrNotReady while a member waits because its IDs would be smaller than existing ones, see
// Options.Order: the node ID Node was used up to Until, which is Ahead of the clock.
type OrderError = peer.OrderError

// PrefixError is returned when a sequencer would have the prefix of another one.
type PrefixError = cluster.PrefixError

// RegionError is why a member has ended whose Options.Region, Wanted, is not that of the sequencers in the store,
// InForce. It changes nothing there.
type RegionError = peer.RegionError

// UsedUntilError is returned by Destroy when the sequencer Name is destroyed, but others may make IDs of it until an
// instant (zero: unknown), since ctx ended before all owners had released their node IDs. Unwrap returns why it stopped
// waiting.
type UsedUntilError = peer.UsedUntilError
