package calls

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/codes"
)

// find returns the issuer of a sequencer's IDs. It returns a peer.ErrNotReady when the member is not attached
// to the sequencer.
func (s *Service) find(name string) (Issuer, error) {
	if s.options.Default != nil && name == peer.DefaultSequencer {
		return s.options.Default, nil
	}
	if q, ok := s.member.Sequencer(name); ok {
		return q, nil
	}
	if c, ok := s.member.Counter(name); ok {
		return c, nil
	}
	if err := s.member.Ready(); err != nil {
		return nil, err
	}
	return nil, errNotAttached
}

var errNotAttached = fmt.Errorf("%w: it is not attached to this sequencer", peer.ErrNotReady)

// detachedError says that the member is not attached to a sequencer, and that the call for an ID does not attach
// it.
type detachedError struct {
	name string
	why  error
}

var errNoAutoAttach = errors.New("the node was started with --no-auto-attach")

func (e *detachedError) Error() string {
	return fmt.Sprintf("this node is not attached to the sequencer %q, and this call does not attach it: %v; POST "+
		"/api/v1/sequencers/%[1]s/attach has it attach, or ask another node", e.name, e.why)
}

// Reason returns the code of the error, as docs/errors.md has it.
func (*detachedError) Reason() string { return string(codes.Detached) }

// attached returns the issuer to ask again after a call got no ID because of why. If the member is not attached
// and this caller's call may attach it, attached has it attach and waits for the outcome. It does not wait for a
// member that is attached: that gets by itself what it lacks.
func (s *Service) attached(ctx context.Context, who *auth.Caller, name string, why error) (Issuer, error) {
	q, ok := s.member.Sequencer(name)
	if !ok && name == peer.DefaultSequencer {
		return nil, why // the node attaches to it as soon as the member has joined
	}
	if ok {
		switch q.State().Phase {
		case peer.Detached, peer.Destroyed:
		case peer.Attaching:
			if s.attaches.running(name) {
				awaitAttached(ctx, q)
			}
			return q, nil
		default:
			return q, nil
		}
	}
	if _, ok := s.member.Counter(name); ok {
		return nil, why
	}
	if err := cluster.CheckName(name); err != nil {
		return nil, Input(err)
	}
	forbidden := who.MayAttachOnDemand(name)
	if s.options.NoAutoAttach {
		forbidden = errNoAutoAttach
	}
	if forbidden != nil {
		q, err := s.member.Lookup(ctx, name)
		if err != nil {
			return nil, err
		}
		if q.Definition().Claimed() {
			return s.open(ctx, name)
		}
		return nil, &detachedError{name, forbidden}
	}
	q, err := s.attachTo(ctx, name, s.member.AttachOnDemand)
	other, isOther := errors.AsType[*peer.KindError](err)
	switch {
	case isOther && other.Claimed:
		return s.open(ctx, name)
	case errors.Is(err, peer.ErrExplicit):
		return nil, &detachedError{name, peer.ErrExplicit}
	case err != nil:
		return nil, err
	}
	return q, nil
}

// attachTo attaches to a sequencer, and waits until the member may use a node ID, or knows that it won't get one
// at once.
func (s *Service) attachTo(ctx context.Context, name string,
	attach func(context.Context, string) (*peer.Sequencer, error),
) (*peer.Sequencer, error) {
	defer s.attaches.begin(name)()
	q, err := attach(ctx, name)
	if err != nil {
		return nil, err
	}
	awaitAttached(ctx, q)
	return q, nil
}

func awaitAttached(ctx context.Context, s *peer.Sequencer) {
	for state := range s.Changes(ctx) {
		if state.Phase != peer.Attaching {
			return
		}
	}
}

// attaches counts, by sequencer, the calls that have the member attach. While there are any, other calls wait for
// the outcome too.
type attaches struct {
	mu     sync.Mutex // guards byName
	byName map[string]int
}

// begin counts a call until end is called.
func (a *attaches) begin(name string) (end func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.byName[name]++
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.byName[name]--; a.byName[name] == 0 {
			delete(a.byName, name)
		}
	}
}

func (a *attaches) running(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.byName[name] > 0
}

// Attach attaches the member to a sequencer and returns the state it reaches. The error says why it makes no IDs
// there.
func (s *Service) Attach(ctx context.Context, who *auth.Caller, name string) (_ Here, err error) {
	defer func(ctx context.Context) { s.changed(ctx, who, "attach", name, err) }(ctx)
	ctx, end, err := s.administer(ctx, who, auth.Attach|auth.Admin, name)
	if err != nil {
		return Here{}, err
	}
	defer end()
	q, err := s.attachTo(ctx, name, s.member.Attach)
	if err == nil {
		err = q.Ready()
	}
	if err != nil {
		return Here{}, err
	}
	return s.here(name), nil
}

// Detach detaches the member from a sequencer and returns the state it reaches. It returns
// peer.ErrAttachedAgain when another call attached the member meanwhile.
func (s *Service) Detach(ctx context.Context, who *auth.Caller, name string) (_ Here, err error) {
	defer func(ctx context.Context) { s.changed(ctx, who, "detach", name, err) }(ctx)
	ctx, end, err := s.administer(ctx, who, auth.Admin, name)
	if err != nil {
		return Here{}, err
	}
	defer end()
	q, ok := s.member.Sequencer(name)
	if c, counts := s.member.Counter(name); counts {
		err = c.Detach(ctx)
	} else if ok {
		err = q.Detach(ctx)
	} else {
		_, err = s.member.Lookup(ctx, name)
	}
	if errors.Is(err, peer.ErrAttachedAgain) {
		err = fmt.Errorf("%w; it attaches when it is asked for an ID of %q, unless it is told not to attach by itself",
			err, name)
	}
	if err != nil {
		return Here{}, err
	}
	return s.here(name), nil
}

// administer begins a call that changes one sequencer, or attaches or detaches the member. The caller needs one
// of the rights.
func (s *Service) administer(ctx context.Context, who *auth.Caller, rights auth.Right, name string) (context.Context,
	func(), error,
) {
	return s.administerFor(ctx, who, rights, name, 1)
}

// administerFor is administer for a call that is worth so many IDs.
func (s *Service) administerFor(ctx context.Context, who *auth.Caller, rights auth.Right, name string,
	worth int,
) (context.Context, func(), error) {
	if err := cluster.CheckName(name); err != nil {
		return nil, nil, Input(err)
	}
	return s.begin(askedBy(ctx, who), who, rights, name, worth)
}

// askedBy returns a context for calls of the member by which the log says who asked for a change.
func askedBy(ctx context.Context, who *auth.Caller) context.Context {
	return peer.AskedBy(ctx, cmp.Or(who.Name(), Anonymous))
}
