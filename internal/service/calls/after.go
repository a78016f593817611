package calls

import (
	"errors"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/codes"
)

// anyonesAhead is how far ahead of the clock callers without the right auth.Order may move ID time.
const anyonesAhead = time.Second

// mostAhead returns how far ahead of the clock a caller may move ID time.
func mostAhead(who *auth.Caller, name string) time.Duration {
	if who.May(auth.Order, name) == nil {
		return peer.MaxAhead
	}
	return anyonesAhead
}

// ReadAfter parses the ID that all IDs of a call must exceed. Its error has the code BadRequest.
func ReadAfter(text string) (firn.ID, error) {
	id, err := firn.Decimal.Parse(text)
	if err != nil {
		return 0, Input(fmt.Errorf("after: %w", err))
	}
	return id, nil
}

// checkAfter returns an error with the code BadRequest when no ID of the definition can be the one to exceed.
func checkAfter(d cluster.Definition, after firn.ID) error {
	if after == 0 || d.Kind == cluster.Counter { // numbers ascend on each node, and that is all
		return nil
	}
	if d.Scattered {
		after = firn.Gather(after)
	}
	if _, err := d.IDLayout().Decompose(after); err != nil {
		return &notOfHereError{Input(fmt.Errorf("after: %w; want an ID of this sequencer", err))}
	}
	return nil
}

// notOfHereError says that the sequencer has no such ID as is to be exceeded.
type notOfHereError struct{ error }

func (e *notOfHereError) Unwrap() error { return e.error }

// NeverAfter reports whether an error says that the sequencer has not made the ID that is to be exceeded.
func NeverAfter(err error) bool {
	if _, ok := errors.AsType[*notOfHereError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*peer.AfterError](err); ok {
		return true
	}
	far, ok := errors.AsType[*aheadError](err)
	return ok && far.Reason() == string(codes.BadRequest)
}

// aheadError says that an ID to exceed lies too far ahead of this node's clock.
type aheadError struct {
	*firn.AheadError
	may time.Duration // for the caller
}

// explainAhead says what a caller may do, if an error is a *firn.AheadError.
func explainAhead(err error, may time.Duration) error {
	if e, ok := errors.AsType[*firn.AheadError](err); ok {
		return &aheadError{e, may}
	}
	return err
}

func (e *aheadError) Error() string {
	why := ""
	switch {
	case e.Ahead > peer.MaxAhead:
		why = ": want an ID that this sequencer has made"
	case e.Most < e.may:
		why = " now, by this node's window and horizon; try another server"
	case e.may < peer.MaxAhead:
		why = ", or " + peer.MaxAhead.String() + " for a token that allows order; try another server, or later"
	}
	return fmt.Sprintf("after lies %v ahead of this node's clock; it may lie at most %v ahead%s",
		e.Ahead.Round(time.Millisecond), e.Most.Round(time.Millisecond), why)
}

// Reason returns the code of the error, as docs/errors.md has it.
func (e *aheadError) Reason() string {
	if e.Ahead > peer.MaxAhead {
		return string(codes.BadRequest)
	}
	return string(codes.Clock)
}
