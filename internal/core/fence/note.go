package fence

import (
	"time"

	"github.com/firn-id/firn/internal/core/journal"
)

// note writes a line into the journal, if there is one.
func (f *Fence) note(l journal.Line) {
	if f.config.Journal == nil {
		return
	}
	l.Node, l.Owner = f.node, f.operation
	f.config.Journal(l)
}

// noteStep notes what a step by e and with the action a was.
func (f *Fence) noteStep(e Event, a Action) {
	switch e := e.(type) {
	case Due:
		if a.Kind == Commit {
			f.note(journal.Line{Do: journal.Send, Version: uint64(a.Write.IfReported), Horizon: a.Write.Horizon})
		}
	case Applied:
		f.note(journal.Line{Do: journal.Applied, Version: uint64(e.Version), Horizon: e.Write.Horizon})
	case Conflict:
		f.note(journal.Line{Do: journal.Conflict})
	case Doubt:
		f.note(journal.Line{Do: journal.Doubt})
	case Seen:
		f.note(journal.Line{
			Do: journal.Seen, Version: uint64(e.View.Reported), By: e.View.ReportedBy,
			Horizon: e.View.Horizon,
		})
	case Stopped:
		f.note(journal.Line{Do: journal.Stop, Until: f.state.End})
	}
}

// Bound returns the horizon, as the bound of the generator that makes this owner's IDs.
func (f *Fence) Bound() time.Time {
	horizon := f.State().Horizon
	f.note(journal.Line{Do: journal.Bound, Until: horizon})
	return time.UnixMilli(horizon)
}
