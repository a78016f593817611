package calls

import (
	"context"
	"fmt"
	"time"

	"github.com/firn-id/firn"
	"github.com/firn-id/firn/internal/core/cluster"
	"github.com/firn-id/firn/internal/core/peer"
	"github.com/firn-id/firn/internal/service/admit/auth"
	"github.com/firn-id/firn/internal/service/idtext"
)

// Texts writes the new IDs of a sequencer in a form for a caller. Make it with Service.Texts, before IDs are taken in
// vain.
type Texts struct {
	// Secret says that the caller may have the texts, and not the numbers: they are sealed, and the caller may not open
	// them.
	Secret bool

	name string
	form idtext.Form
	keys *idtext.Keys
}

// Of returns what writes the IDs of a batch.
func (t Texts) Of(b *Batch) (idtext.Append, error) {
	write, err := idtext.Of(t.name, b.definition, t.keys).In(t.form)
	if err != nil {
		return nil, Input(err)
	}
	return write, nil
}

// Texts returns what writes the new IDs of a sequencer. The error has the code BadRequest when they have no such form.
func (s *Service) Texts(ctx context.Context, who *auth.Caller, name string, f idtext.Form) (Texts, error) {
	if err := who.May(auth.Issue, name); err != nil {
		return Texts{}, err
	}
	within := newLazyTimeout(ctx, s.timeout)
	defer within.end()
	q, err := s.textsOf(within, name)
	if err != nil {
		return Texts{}, err
	}
	if _, err := q.In(f); err != nil {
		return Texts{}, Input(err)
	}
	return Texts{f == idtext.Sealed && who.May(auth.Open, name) != nil, name, f, q.Keys}, nil
}

// textsOf returns what the texts of a sequencer's IDs depend on.
func (s *Service) textsOf(ctx context.Context, name string) (idtext.Sequencer, error) {
	var keys *idtext.Keys
	if s.options.Keys != nil {
		keys = s.options.Keys()
	}
	if m, err := s.find(name); err == nil {
		return idtext.Of(name, m.Definition(), keys), nil
	}
	if name == peer.DefaultSequencer { // which this node creates
		return idtext.Of(name, cluster.Define(s.options.Layout), keys), nil
	}
	q, err := s.lookup(ctx, name)
	if err != nil {
		return idtext.Sequencer{}, err
	}
	return idtext.Of(name, q.Definition(), keys), nil
}

// Decoding is a call to decode an ID.
type Decoding struct {
	Text string       // of the ID
	As   *idtext.Form // in which the text is; nil: it is recognised
	Form *idtext.Form // in which the answer has the ID, too; nil: in none
}

// Decode decodes an ID of a sequencer. The member need not be attached to it. Who opens or seals an ID needs the right
// for it.
func (s *Service) Decode(ctx context.Context, who *auth.Caller, name string, d Decoding) (Parts, error) {
	ctx, end, err := s.begin(ctx, who, auth.All, name, 1)
	if err != nil {
		return Parts{}, err
	}
	defer end()
	opens := d.As == nil && idtext.IsSealed(d.Text) || d.As != nil && *d.As == idtext.Sealed
	if seals := d.Form != nil && *d.Form == idtext.Sealed; opens || seals {
		if err := who.May(auth.Open, name); err != nil {
			return Parts{}, err
		}
	}
	q, err := s.textsOf(ctx, name)
	if err != nil {
		return Parts{}, err
	}
	parts, err := decodeText(q, d)
	if err != nil {
		return Parts{}, Input(err)
	}
	if known, ok := s.member.Value().Sequencer(name); ok && !known.Definition().Claimed() {
		parts.NeverHeld = known.NeverHeld(parts.NodeID)
	}
	return parts, nil
}

func decodeText(q idtext.Sequencer, d Decoding) (parts Parts, err error) {
	var id firn.ID
	if d.As != nil {
		id, err = q.ReadIn(*d.As, d.Text)
	} else {
		id, _, err = q.Read(d.Text, time.Now())
		err = idtext.Explain(err, "as=")
	}
	if err != nil {
		return Parts{}, err
	}
	if parts, err = Decode(q, id); err != nil || d.Form == nil {
		return parts, err
	}
	write, err := q.In(*d.Form)
	if err != nil {
		return Parts{}, err
	}
	text, err := write(nil, id)
	if err != nil {
		return Parts{}, err
	}
	parts.Text = string(text)
	return parts, nil
}

// Span returns the first and the last ID of a sequencer's tick. The member need not be attached to it. The error has
// the code BadRequest when the layout has no IDs for the time, or when the sequencer scatters its IDs.
func (s *Service) Span(ctx context.Context, who *auth.Caller, name string, at time.Time) (Span, error) {
	ctx, end, err := s.begin(ctx, who, auth.All, name, 1)
	if err != nil {
		return Span{}, err
	}
	defer end()
	q, err := s.textsOf(ctx, name)
	if err != nil {
		return Span{}, err
	}
	if q.Kind == cluster.Counter {
		return Span{}, Input(fmt.Errorf("the sequencer %q is a counter: its numbers have no time, so a time has no "+
			"first and last one", name))
	}
	if q.Scattered {
		return Span{},
			Input(fmt.Errorf("the sequencer %q is scattered: its IDs do not lie in the order of their time, so a time "+
				"has no first and last one", name))
	}
	span, err := SpanOf(q.Layout, at)
	if err != nil {
		return Span{}, Input(err)
	}
	return span, nil
}
