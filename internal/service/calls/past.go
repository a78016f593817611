package calls

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
)

// MaxTimes is the most IDs of past instants that one call can ask for.
const MaxTimes = 1 << 16

// Past asks for IDs of past instants, as JSON.
type Past struct {
	Job    string      `json:"job"` // 1 to 64 bytes of text without control characters
	Key    string      `json:"key,omitempty"`
	Times  []time.Time `json:"times,omitempty"`
	IfFull IfFull      `json:"if_full,omitempty"`
	After  firn.ID     `json:"after,omitempty"`
	End    bool        `json:"end,omitempty"`
}

// IfFull is what happens to an instant whose tick has no ID left.
type IfFull string

// What happens; empty: RefuseFull.
const (
	RefuseFull IfFull = "refuse" // the call is refused
	NextTick   IfFull = "next"   // it gets an ID of the next tick that has one
)

// PastIDs are IDs of past instants, as JSON.
type PastIDs struct {
	IDs     []firn.ID `json:"ids"`              // in the order of the times
	Moved   int       `json:"moved"`            // how many are of a later tick than asked for
	Node    *int64    `json:"node,omitempty"`   // nil: the job was over before
	Reached time.Time `json:"reached,omitzero"` // later calls of the job ask for no earlier time
}

func (p Past) validate() error {
	switch {
	case p.Job == "" || len(p.Job) > 64 || strings.ContainsFunc(p.Job, unicode.IsControl):
		return fmt.Errorf(`"job" is %.80q; want a name of 1 to 64 bytes without control characters`, p.Job)
	case len(p.Key) > 64:
		return fmt.Errorf(`"key" has %d bytes; want at most 64`, len(p.Key))
	case len(p.Times) > MaxTimes:
		return fmt.Errorf(`"times" has %d; want at most %d`, len(p.Times), MaxTimes)
	case p.IfFull != "" && p.IfFull != RefuseFull && p.IfFull != NextTick:
		return fmt.Errorf(`"if_full" is %.40q; want %s or %s`, p.IfFull, RefuseFull, NextTick)
	case p.After < 0:
		return fmt.Errorf(`"after" is %d; want an ID of the job`, p.After)
	}
	return nil
}

// MayImport returns nil when a caller may have IDs of past instants of a sequencer.
func (s *Service) MayImport(who *auth.Caller, sequencer string) error {
	return who.May(auth.Import|auth.Admin, sequencer)
}

// GivePast gives IDs of past instants.
func (s *Service) GivePast(ctx context.Context, who *auth.Caller, sequencer string, p Past) (_ PastIDs, err error) {
	var given peer.PastIDs
	defer func(ctx context.Context) {
		if given.Began || p.End || err != nil { // else it is one of thousands
			s.changed(ctx, who, "past", sequencer, err)
		}
	}(ctx)
	ctx, end, err := s.administerFor(ctx, who, auth.Import|auth.Admin, sequencer, max(len(p.Times), 1))
	if err != nil {
		return PastIDs{}, err
	}
	defer end()
	if err := p.validate(); err != nil {
		return PastIDs{}, Input(err)
	}
	given, err = s.member.GivePast(ctx, sequencer, peer.Past{
		Job: p.Job, Key: p.Key, Times: p.Times, Move: p.IfFull == NextTick, After: p.After, End: p.End,
	})
	if err != nil {
		return PastIDs{}, err
	}
	answer := PastIDs{IDs: given.IDs, Moved: given.Moved, Reached: given.Reached}
	if answer.IDs == nil {
		answer.IDs = []firn.ID{}
	}
	if given.Node >= 0 {
		answer.Node = &given.Node
	}
	return answer, nil
}
