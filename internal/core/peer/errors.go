package peer

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/base/reason"
	"github.com/firn-id/firn/internal/core/cluster"
)

var (
	// ErrNotReady is returned when no ID can be given now: the member has no node ID, it has reached the horizon,
	// or it has left. The condition passes by itself, unless the member has ended or the error wraps one that
	// says otherwise.
	ErrNotReady = errors.New("not ready to make IDs")

	// ErrWaiting is wrapped in an ErrNotReady while all node IDs are taken. The member waits in line for one; the
	// text says in which place.
	ErrWaiting = reason.New("waiting", "no node ID is free")

	// ErrDetached is wrapped in an ErrNotReady after Detach, until Attach.
	ErrDetached = reason.New("detached", "the sequencer is detached; Attach attaches it again")

	// ErrDrained is wrapped in an ErrNotReady while an operator keeps the member detached, see Member.Drain.
	ErrDrained = reason.New("detached",
		"an operator has drained this member of the sequencer; it attaches again once that is undone")

	// ErrDestroyed is wrapped in an ErrNotReady when the sequencer was destroyed. It is final: a sequencer
	// created later under the same name has another handle.
	ErrDestroyed = reason.New("unknown_sequencer",
		"the sequencer was destroyed; one that is created again needs a new handle")

	// ErrExpelled is why a member has ended that an operator has expelled from the cluster, see Member.Expel.
	ErrExpelled = errors.New("an operator has expelled this member from the cluster; it can come back once it is " +
		"started again")

	// ErrCopied is wrapped in an ErrNotReady when a copy of this process may use what it has reserved: the process was
	// copied, or set back to an earlier state, as by the snapshot of a virtual machine. The member starts over as a new
	// one.
	ErrCopied = reason.New("copied",
		"this process was copied, or set back to an earlier state; it starts over as a new member")

	// ErrNoSequencer is returned when no sequencer has the name.
	ErrNoSequencer = reason.New("unknown_sequencer", "there is no such sequencer; it has to be created")

	// ErrAttachedAgain is returned by Detach when Attach is called before it is done.
	ErrAttachedAgain = reason.New("attached_again", "the sequencer was attached again while it was being detached")

	// ErrExplicit is returned by AttachOnDemand when the sequencer's definition says cluster.AttachExplicit.
	ErrExplicit = errors.New("the sequencer was created to be attached to explicitly")

	// ErrUnfit is returned when the member's options do not fit the definition of an existing sequencer: the
	// window is too short for the tick, or Options.Nodes asks for node IDs that do not exist.
	ErrUnfit = reason.New("unfit", "this member can't take part in the sequencer")

	// ErrSequencerExists is returned when a sequencer of this name exists with another definition. The error is
	// an *ExistsError.
	ErrSequencerExists = errors.New("the sequencer exists with another definition")
)

// ExistsError is an ErrSequencerExists that says which definition is in force.
type ExistsError struct {
	Name            string
	InForce, Wanted cluster.Definition
}

func (e *ExistsError) Error() string {
	var fields []string
	for _, d := range e.InForce.Differences(e.Wanted) {
		fields = append(fields, d.String())
	}
	return fmt.Sprintf("%v: %q: %s; ask for the one in force, or take another name", ErrSequencerExists, e.Name,
		strings.Join(fields, "; "))
}

// Is reports whether target is ErrSequencerExists.
func (e *ExistsError) Is(target error) bool { return target == ErrSequencerExists }

// Reason returns the code of the error, as docs/errors.md has it.
func (*ExistsError) Reason() string { return "exists" }

// RegionError is why a member has ended whose Options.Region is not that of the sequencers in the store. It changes
// nothing there.
type RegionError struct {
	InForce, Wanted cluster.Region
}

func (e *RegionError) Error() string {
	return fmt.Sprintf("the region of this store is %v, and that of this member %v; want that of the store, or "+
		"another store: the region of one with sequencers can't change",
		e.InForce, e.Wanted)
}

// KindError is returned when a sequencer of a name is, or was before it was destroyed, of another kind than the wanted
// one.
type KindError struct {
	Name       string
	Is, Wanted string // such as "counter" or "snowflake in strict order"
	Claimed    bool   // members claim its IDs, without node IDs
	Destroyed  bool   // it was
}

func (e *KindError) Error() string {
	if e.Destroyed {
		return fmt.Sprintf("the sequencer %q that was destroyed was a %s, and this one is a %s: an ID could come "+
			"again; want another name", e.Name, e.Is, e.Wanted)
	}
	return fmt.Sprintf("the sequencer %q is a %s; want a %s", e.Name, e.Is, e.Wanted)
}

// Reason returns the code of the error, as docs/errors.md has it.
func (*KindError) Reason() string { return "refused" }

// InUseError is returned by ResumeCounter while a living member has not noticed that the store has lost data: it may
// give numbers above that from which the counter is to go on.
type InUseError struct {
	Name string // of the counter
	Node string // the name of the member's node
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("the node %q may still give numbers of the counter %q, as it has not noticed yet that the "+
		"store has lost data; stop it, or wait until it has noticed", e.Node, e.Name)
}

// Reason returns the code of the error, as docs/errors.md has it.
func (*InUseError) Reason() string { return "refused" }

// AfterError is returned when IDs in strict order are to exceed one that was never given.
type AfterError struct {
	After firn.ID // which was to be exceeded
	Last  firn.ID // the greatest that was given
}

func (e *AfterError) Error() string {
	return fmt.Sprintf("after is %d, which was never given: the greatest ID that was is %d; want one that was given",
		int64(e.After), int64(e.Last))
}

// Reason returns the code of the error, as docs/errors.md has it.
func (*AfterError) Reason() string { return "bad_request" }

// kindOf returns what tells the IDs of a definition from others of the same name.
func kindOf(d cluster.Definition) string {
	if d.Kind == cluster.Snowflake && d.Claimed() {
		return "snowflake in strict order"
	}
	return d.Kind.String()
}

// mustBe returns a *KindError when the IDs of a sequencer are claimed and must not be, or the other way round.
func mustBe(name string, d cluster.Definition, claimed bool) error {
	if d.Claimed() == claimed {
		return nil
	}
	e := &KindError{Name: name, Is: kindOf(d), Wanted: "snowflake", Claimed: d.Claimed()}
	if claimed {
		e.Wanted = "counter, or one in strict order"
	}
	return e
}

// EarlyError is returned when the IDs of a definition do not exceed those that they must: Definition.After, and
// the IDs of earlier generations. They will only far in the future, or never.
type EarlyError struct {
	After firn.ID   // the ID to exceed
	From  time.Time // when IDs exceed it; zero: never

	// Mixed says that the IDs of earlier generations are scattered and those of the definition are not, or the other
	// way round: one could come again.
	Mixed bool
}

func (e *EarlyError) Error() string {
	if e.Mixed {
		return "a sequencer of this name was destroyed whose IDs are scattered, and those of this definition " +
			"are not, " +
			"or the other way round: " +
			"an ID could come again; want IDs like those before, or another name"
	}
	when := "never do"
	if !e.From.IsZero() {
		when = "do from " + e.From.UTC().Format(time.RFC3339) + " on"
	}
	return fmt.Sprintf("every ID must exceed %d, and those of this definition %s; want an earlier epoch, more bits "+
		"below the time, or another name",
		int64(e.After), when)
}

// UsedUntilError is returned by Destroy when the sequencer is destroyed, but its context ended before all owners
// had released their node IDs.
type UsedUntilError struct {
	Name  string
	Until time.Time // until when others may make IDs; zero: unknown
	Err   error     // of the context, or of the store
}

func (e *UsedUntilError) Error() string {
	until := "for a while"
	if !e.Until.IsZero() {
		until = "until " + e.Until.UTC().Format(time.RFC3339Nano)
	}
	return fmt.Sprintf("the sequencer %q is destroyed; members that are out of reach may still make IDs of it %s: %v",
		e.Name, until, e.Err)
}

// Unwrap returns why Destroy stopped waiting.
func (e *UsedUntilError) Unwrap() error { return e.Err }

// Reasons why no ID can be given, besides errors of the store and the fence.
var (
	errAttaching = errors.New("it has not read its attach in the log yet")
	errLostData  = errors.New("the store has lost data; the member is joining the cluster again")
	errRejoining = errors.New("it is joining the cluster again")
	errAtHorizon = errors.New("the horizon is reached, and the store has not confirmed a later one")
	errLost      = errors.New("it lost its node ID and has no other yet")
	errMissed    = errors.New("the outcome of a decline is unknown")
	errMoved     = errors.New("an operator has moved its node ID to another member, and it has no other yet")
	errLeft      = errors.New("it has left")
	errNotRead   = fmt.Errorf("%w: it has not read the log of the cluster yet", ErrNotReady)
	errOpening   = fmt.Errorf("%w: its store is not open yet", ErrNotReady)
	errJoining   = fmt.Errorf("%w: it is joining the cluster", ErrNotReady)
	errNoStore   = errors.New("the store is nil; want one")
	errTwin      = errors.New("another process goes on as this member")
	errResumed   = errors.New("the system resumed from a snapshot")
	errHasLeft   = fmt.Errorf("%w: %w", ErrNotReady, errLeft)
)
